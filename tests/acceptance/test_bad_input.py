"""Bad input: one clear line with the remedy, the right exit code, no stack trace (issue: "Bad input")."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from redrive import transports
from redrive.registry import Driver
from support.desk import Desk
from support.forked import REDRIVE

UNKNOWN_ID = "01990000-0000-7000-8000-000000000000"


class Case(NamedTuple):
    name: str
    arguments: tuple[str, ...]
    code: int
    told: str
    remedy: str
    files: dict[str, bytes] = {}  # noqa: RUF012  never changed
    environment: dict[str, str] = {}  # noqa: RUF012  never changed
    stdin: str = ""


SHOP = b"from redrive import App\nshop = App('shop')\nnumber = 3\n"
WORK = ("work", "shop:shop", "--drain")
CASES = (
    # settings
    Case(
        "unknown setting in the file",
        ("list",),
        2,
        "redrive.toml, line 2: unknown setting 'retry.attemps'",
        "did you mean retry.attempts?",
        files={"redrive.toml": b"[retry]\nattemps = 3\n"},
    ),
    Case(
        "unknown setting in a variable",
        ("stats",),
        2,
        "variable REDRIVE_STORE__URI: unknown setting",
        "did you mean REDRIVE_STORE__URL?",
        environment={"REDRIVE_STORE__URI": "x"},
    ),
    Case(
        "settings that are no TOML",
        ("list",),
        2,
        "redrive.toml is not TOML",
        "correct that line",
        files={"redrive.toml": b"[retry\n"},
    ),
    Case("settings file that is missing", ("--config", "no.toml", "list"), 2, "no.toml", "redrive init"),
    Case("settings file that is a folder", ("--config", ".", "list"), 2, "cannot read .", "a file"),
    Case("profile that is missing", ("--profile", "x", "list"), 2, "profile 'x'", "redrive init"),
    # drivers
    Case(
        "store of an unknown kind",
        ("list",),
        2,
        "no store for",
        "use one of: sqlite://",
        environment={"REDRIVE_STORE__URL": "mysql://u:hunter2@h/d"},
    ),
    Case(
        "broker of an unknown kind",
        ("send", "q", "1"),
        2,
        "no transport for",
        "use one of: embedded://",
        environment={"REDRIVE_BROKER__URL": "mqtt://u:hunter2@h"},
    ),
    Case(
        "tables of a store of an unknown kind",
        ("db", "upgrade"),
        2,
        "no store for",
        "use one of: sqlite://",
        environment={"REDRIVE_STORE__URL": "mysql://u:hunter2@h/d"},
    ),
    Case(
        "SQLite URL with a host and a password",
        ("db", "check"),
        2,
        "sqlite://u:***@h/d",
        "sqlite:///redrive.db",
        environment={"REDRIVE_STORE__URL": "sqlite://u:hunter2@h/d"},
    ),
    # files of ours
    Case("store that is no database", ("list",), 6, "redrive.db", "backup", files={"redrive.db": b"x" * 4096}),
    Case(
        "store that is no database, checked",
        ("db", "check"),
        6,
        "redrive.db",
        "backup",
        {"redrive.db": b"x" * 9999},
    ),
    Case(
        "store in a folder that is missing",
        ("list",),
        6,
        "redrive.db",
        "check that the folder exists",
        environment={"REDRIVE_STORE__URL": "sqlite:///missing/redrive.db"},
    ),
    Case(
        "broker that is no database",
        ("send", "q", "1"),
        6,
        "redrive-broker.db",
        "backup",
        files={"redrive-broker.db": b"x" * 4096},
    ),
    Case(
        "broker in a folder that is missing",
        ("send", "q", "1"),
        6,
        "broker.db",
        "check that the folder exists",
        environment={"REDRIVE_BROKER__URL": "embedded:///missing/broker.db"},
    ),
    # ids and names
    Case("id that nobody has", ("show", UNKNOWN_ID), 3, f"no letter {UNKNOWN_ID}", "redrive list"),
    Case("id that is too short", ("show", "0199"), 2, "too short", "redrive list"),
    Case("retry of an id that nobody has", ("retry", UNKNOWN_ID, "--yes"), 3, "no letter", "redrive list"),
    Case("edit of an id that nobody has", ("edit", UNKNOWN_ID, "--reason", "x"), 3, "no letter", "redrive list"),
    Case(
        "resolve of an id that nobody has",
        ("resolve", UNKNOWN_ID, "--reason", "x", "--yes"),
        3,
        "no letter",
        "redrive list",
    ),
    Case("queue that is no dead-letter queue", ("reprocess", "--queue", "orders"), 2, "orders", "_dlq"),
    Case("queue without a name", ("send", " ", "1"), 2, "cannot be the name of a queue", "visible characters"),
    Case("queue with a control character", ("send", "a\x1b[2J", "1"), 2, r"'a\x1b[2J'", "visible characters"),
    # data
    Case("data that is no JSON", ("send", "q", "{order: 1}"), 2, "not JSON: Expecting property name", "--raw"),
    Case("data that is NaN", ("send", "q", "NaN"), 2, "NaN is no JSON number", "--raw"),
    Case("data that nests without end", ("send", "q", "-"), 2, "not JSON", "--raw", stdin="[" * 100_000),
    Case("no data", ("send", "q"), 2, "not JSON: Expecting value", "--raw"),
    Case(
        "data in a file that is missing", ("send", "q", "--file", "no.json"), 2, "cannot read no.json", "readable"
    ),
    Case("data given twice", ("send", "q", "1", "--file", "x"), 2, "both DATA and --file", "one of the two"),
    Case(
        "header without a value", ("send", "q", "1", "--header", "x"), 2, "--header 'x' is no pair", "name=value"
    ),
    Case("delay that is no duration", ("send", "q", "1", "--delay", "soon"), 2, "--delay", "'5s'"),
    # apps
    Case("app without a name", ("work", "shop"), 2, "'shop' does not name an App", "MODULE:APP"),
    Case("app as a path", ("work", "./shop.py:shop"), 2, "does not name an App", "MODULE:APP"),
    Case("module that is missing", WORK, 2, "there is no module 'shop'", "redrive init"),
    Case(
        "module that needs another one",
        WORK,
        2,
        "shop needs 'nowhere_to_be_found'",
        "install it",
        {"shop.py": b"\nimport nowhere_to_be_found\n"},
    ),
    Case("module with a typing error", WORK, 2, "SyntaxError", "correct it", {"shop.py": b"def f(:\n"}),
    Case(
        "module that fails",
        WORK,
        2,
        "shop.py, line 2",
        "correct it",
        {"shop.py": b"import os\nos.environ['MISSING_IN_EVERY_ENVIRONMENT']\n"},
    ),
    Case("app that is missing", ("work", "shop:shp"), 2, "shop has no 'shp'", "shop:shop?", {"shop.py": SHOP}),
    Case("app that is none", ("work", "shop:number"), 2, "no App but a int", "shop:shop?", {"shop.py": SHOP}),
    Case(
        "queue that the app does not handle",
        ("work", "shop:shop", "--queue", "mails"),
        2,
        "no handler for queue 'mails'",
        "it handles: none",
        {"shop.py": SHOP},
    ),
    # decisions without anybody to ask
    Case(
        "init over existing files",
        ("init",),
        5,
        "app.py would be overwritten",
        "--force",
        {"app.py": b"mine"},
    ),
)


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("REDRIVE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody's"))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_bad_input_is_answered_with_one_clear_line_and_its_remedy(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in case.files.items():
        (tmp_path / name).write_bytes(content)
    for variable, value in case.environment.items():
        monkeypatch.setenv(variable, value)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    if case.arguments[0] == "work":  # modules are imported once per process
        done = Desk(tmp_path).process(*case.arguments)
        code, out, err = done.returncode, done.stdout, done.stderr
    else:
        code, raw, err = Desk(tmp_path).redrive(*case.arguments, stdin=case.stdin)
        out = raw.decode()
    assert code == case.code, err
    assert out == "" or " 0 letters" in out
    assert len(err.splitlines()) <= 2, err
    error, _, hint = err.partition("\n")
    assert error.startswith("error: ")
    assert case.told in error
    assert case.remedy in (hint or error)
    assert "Traceback" not in err
    assert "hunter2" not in err
    for path, content in before.items():
        assert path.read_bytes() == content


def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(transports.DRIVERS, "kafka", Driver("not_installed_anywhere", "Kafka", "kafka"))
    monkeypatch.setenv("REDRIVE_BROKER__URL", "kafka://u:hunter2@h")
    ended = Desk(tmp_path).redrive("send", "q", "1")
    assert ended.code == 2
    assert ended.err == (
        "error: kafka:// needs a package that is not installed\n  hint: pip install 'redrive[kafka]'\n"
    )


@pytest.mark.parametrize("command", [("setup", "-q", "q"), ("work", "app:app")])
@pytest.mark.parametrize(
    ("url", "package", "extra"),
    [
        ("sqs://eu-west-1", "aiobotocore", "sqs"),
        ("kafka://u:hunter2@h", "confluent_kafka", "kafka"),
    ],
)
def test_whatever_needs_a_driver_names_the_extra_that_is_missing(
    tmp_path: Path, command: tuple[str, ...], url: str, package: str, extra: str
) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / f"{package}.py").write_text(f"raise ModuleNotFoundError(name={package!r})\n")
    (tmp_path / "app.py").write_text("from redrive import App\napp = App('shop')\n")
    found = os.pathsep.join([str(hidden), os.environ.get("PYTHONPATH", "")])
    variables = {**os.environ, "REDRIVE_BROKER__URL": url, "PYTHONPATH": found}
    ended = subprocess.run(
        [sys.executable, "-c", REDRIVE, *command],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2, ended.stderr
    scheme = url.partition(":")[0]
    assert ended.stderr == (
        f"error: {scheme}:// needs a package that is not installed\n  hint: pip install 'redrive[{extra}]'\n"
    )


def test_a_database_with_damaged_pages_is_told_as_damaged(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert desk.redrive("db", "upgrade").code == 0
    database = tmp_path / "redrive.db"
    whole = database.read_bytes()
    database.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    for arguments in (("list",), ("db", "check")):
        ended = desk.redrive(*arguments)
        assert ended.code == 6, ended
        assert "damaged" in ended.err
        assert "backup" in ended.err
        assert "Traceback" not in ended.err
