"""The files for containers: two linters have nothing against them, and what they name is there.

No engine has run them; what can be known without one is known here.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import yaml

from redrive.api.health import health
from redrive.configuration import inspect, load
from redrive.server_settings import ServerSettings
from redrive.telemetry.address import Address
from support.command_lines import parsed
from support.desk import Desk
from support.loopback_ports import free_ports
from support.prometheus_programs import promtool
from support.serving import serving_at

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "docker"
DOCKERFILE = FOLDER / "Dockerfile"
COMPOSED = (FOLDER / "compose.yml", FOLDER / "compose.rabbitmq.yml")
PAGE = ROOT / "docs" / "deployment.md"
BROKERS = ("embedded", "rabbitmq")
OURS = ("tables", "server", "worker")
VARIABLE = re.compile(r"\$\{(\w+)(?::\?([^}]+))?\}")


class Instruction(NamedTuple):
    name: str
    rest: str


def instructions() -> list[Instruction]:
    lines = [line for line in DOCKERFILE.read_text().splitlines() if line.strip() and not line.startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [Instruction(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in whole)]


def last(name: str) -> str:
    return [each.rest for each in instructions() if each.name == name][-1]


def services(broker: str = "embedded") -> dict[str, Any]:
    """As Compose would put the files together, of which the second only adds."""
    found: dict[str, Any] = {}
    for path in COMPOSED[: 1 + BROKERS.index(broker)]:
        for name, service in yaml.safe_load(path.read_text())["services"].items():
            before = found.setdefault(name, {})
            for key in ("environment", "depends_on"):
                service[key] = before.get(key, {}) | service.get(key, {})
            found[name] = before | service
    return found


def variables(service: dict[str, Any]) -> dict[str, str]:
    """With the password that somebody has exported."""
    return {name: VARIABLE.sub("s3cret", value) for name, value in service["environment"].items()}


def program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def linted(*command: str | Path) -> None:
    ended = subprocess.run(
        [*map(str, command)], cwd=FOLDER, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_hadolint_has_nothing_against_the_dockerfile() -> None:
    linted(program("hadolint"), "--failure-threshold", "style", DOCKERFILE)


@pytest.mark.parametrize("path", COMPOSED, ids=lambda path: path.name)
def test_the_schema_of_compose_has_nothing_against_its_files(path: Path) -> None:
    linted(program("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", path)


def test_everything_that_is_copied_is_there_and_no_secret_of_the_folder_is_sent_along() -> None:
    ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert ignored[0] == "*"
    let_through = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = [each.rest.split()[:-1] for each in instructions() if each.name == "COPY"]
    sources = {source for each in copied if not each[0].startswith("--from=") for source in each}
    assert {source.partition("/")[0] for source in sources} == let_through
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_what_one_stage_copies_of_another_is_what_that_one_makes() -> None:
    stages = {each.rest.partition(" AS ")[2] for each in instructions() if each.name == "FROM"}
    copied = [each.rest for each in instructions() if each.name == "COPY" and "--from=" in each.rest]
    assert {each.split()[0].removeprefix("--from=") for each in copied} == stages - {""}
    config = (ROOT / "console" / "vite.config.ts").read_text()
    assert "outDir: here('../src/redrive/console')" in config
    assert "--from=console /build/src/redrive/console src/redrive/console" in copied


def test_the_console_and_the_metadata_of_the_wheel_are_among_what_it_is_built_from() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = {project["project"]["readme"], *project["project"]["license-files"], "pyproject.toml", "src"}
    copied = {source for each in instructions() if each.name == "COPY" for source in each.rest.split()[:-1]}
    assert needed <= copied
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["artifacts"] == ["/src/redrive/console"]


def test_the_extras_are_extras_and_the_entry_point_is_a_script() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = last("ARG").removeprefix("EXTRAS=").split(",")
    assert set(asked) <= set(project["optional-dependencies"]) - {"dev", "bench"}
    assert json.loads(last("ENTRYPOINT"))[0] in project["scripts"]


def test_every_package_that_is_asked_for_has_the_version_that_was_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {each for extra in project["optional-dependencies"].values() for each in extra} | {
        *project["dependencies"]
    }
    pinned = {named(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    assert {named(each) for each in asked} - pinned == set()


def named(requirement: str) -> str:
    """As the packages' index knows it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=! ;]", requirement, maxsplit=1)[0]).lower()


def test_the_image_is_not_root_and_its_state_is_a_volume_that_it_may_write() -> None:
    user, _, _group = last("USER").partition(":")
    assert int(user) > 0
    made = " ".join(each.rest for each in instructions() if each.name == "RUN")
    assert f"useradd --uid {user} " in made
    assert last("VOLUME") == last("WORKDIR")
    assert re.search(rf"install --directory --owner redrive .*{last('VOLUME')}\b", made)


def test_no_registry_is_named() -> None:
    images = [each.rest.split()[0] for each in instructions() if each.name == "FROM"]
    images += [service["image"] for service in services("rabbitmq").values()]
    for image in images:
        host, slash, _ = image.partition("/")
        assert not slash or not re.search(r"[.:]|^localhost$", host), image


def test_secrets_come_from_the_environment_and_their_absence_is_told() -> None:
    for path in COMPOSED:
        text = path.read_text()
        assert VARIABLE.findall(text)
        assert all(remedy for _, remedy in VARIABLE.findall(text))
    for service in services("rabbitmq").values():
        for name, value in service["environment"].items():
            if "PASS" in name or "://" in str(value).replace("embedded://", ""):
                assert VARIABLE.search(value), name


@pytest.mark.parametrize("broker", BROKERS)
@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_a_setting(
    name: str, broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = variables(services(broker)[name])
    inspection = inspect(environ=told)
    assert [str(each) for each in inspection.problems] == []
    assert {each for each in told if not each.startswith("REDRIVE_")} <= {"PYTHONPATH"}


def test_every_command_is_one() -> None:
    parsed(json.loads(last("CMD")))
    for name in OURS:
        parsed(services()[name]["command"])
    shown = [
        line for line in PAGE.read_text().splitlines() if re.search(r"^docker .*(run|exec) .* redrive \w", line)
    ]
    assert len(shown) == 3
    for line in shown:
        parsed(shlex.split(line.rpartition(" redrive ")[2], comments=True))


def test_a_command_that_is_none_would_be_noticed() -> None:
    for wrong in (["serve", "--hots", "localhost"], ["db", "upgrad"], ["work"]):
        with pytest.raises(Exception, match=r"No such|Missing"):
            parsed(wrong)


def test_ports_are_the_defaults_and_the_same_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found, port = services(), ServerSettings().port
    assert last("EXPOSE") == str(port)
    assert found["server"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    listen = load(environ=variables(found["worker"])).settings.metrics.listen
    assert listen is not None
    worker = Address.parse(listen)
    scraped = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]
    assert scraped[0]["static_configs"] == [{"targets": [f"server:{port}"]}]
    assert scraped[1]["dns_sd_configs"] == [{"names": ["worker"], "type": "A", "port": worker.first}]
    assert asked_by(image_check()).port == port
    asked = asked_by(found["worker"]["healthcheck"]["test"])
    assert (asked.port, asked.path) == (worker.first, "/livez")


def image_check() -> list[str]:
    return ["CMD", *json.loads(last("HEALTHCHECK").partition(" CMD ")[2])]


def asked_by(test: list[str]) -> Any:
    return urlsplit(re.findall(r"http://[^']+", test[-1])[0])


def test_health_is_asked_where_it_is_told_and_a_dead_server_is_unhealthy(tmp_path: Path) -> None:
    assert asked_by(image_check()).path in {route.path for route in health.routes if hasattr(route, "path")}
    (port,) = free_ports(1)
    _, interpreter, *rest = image_check()
    assert interpreter == "python"
    check = [sys.executable, *(each.replace(str(ServerSettings().port), str(port)) for each in rest)]
    with serving_at(Desk(tmp_path), port):
        assert subprocess.run(check, capture_output=True, check=False, timeout=60).returncode == 0
    assert subprocess.run(check, capture_output=True, check=False, timeout=60).returncode == 1


def test_handlers_have_their_grace_before_the_container_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    worker = services()["worker"]
    grace = load(environ=variables(worker)).settings.worker.grace
    assert float(worker["stop_grace_period"].removesuffix("s")) > grace


@pytest.mark.parametrize("broker", BROKERS)
def test_whoever_waits_for_another_waits_for_something_that_can_come_true(broker: str) -> None:
    found = services(broker)
    for service in found.values():
        for name, how in service["depends_on"].items():
            other = found[name]
            if how["condition"] == "service_completed_successfully":
                assert other["restart"] == "no"
            else:
                assert "test" in other.get("healthcheck", {}) or other["image"] == "redrive"


def test_what_is_mounted_from_the_repository_is_there_and_volumes_have_names() -> None:
    for path in COMPOSED:
        written = yaml.safe_load(path.read_text())
        for service in written["services"].values():
            for mount in service.get("volumes", []):
                source = mount.partition(":")[0]
                assert (FOLDER / source).exists() if source.startswith(".") else source in written["volumes"], (
                    mount
                )
    assert (ROOT / "examples" / "checkout.py").exists()


def test_prometheus_can_read_its_file_where_compose_puts_it(tmp_path: Path) -> None:
    for mount in services()["prometheus"]["volumes"]:
        source, inside, *_ = mount.split(":")
        if source.startswith("."):
            shutil.copy(FOLDER / source, tmp_path / Path(inside).name)
    promtool("check", "config", tmp_path / "prometheus.yml")
