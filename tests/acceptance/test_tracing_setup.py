"""Where traces go: what the settings and the standard variables say, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace

from redrive import tracing_wiring
from redrive.errors import ConfigurationError
from redrive.settings import Settings
from redrive.testing.letters import a_message
from support.desk import Desk
from support.traced import TRACE, TRACEPARENT, Traced

if TYPE_CHECKING:
    from pathlib import Path

ENABLED = Settings.model_validate({"tracing": {"enabled": True}})
SHOP = """
from redrive import App, Message, Permanent
app = App("checkout")

@app.handler("orders")
async def charge(_message: Message) -> None:
    raise Permanent("no")
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "redrive.toml").write_text("[tracing]\nenabled = true\n[log]\nformat = 'json'\n")
    return Desk(tmp_path)


def test_a_worker_exports_as_the_standard_variables_say_and_its_log_bears_the_ids(desk: Desk) -> None:
    assert desk.process("send", "orders", "{}", "--header", f"traceparent={TRACEPARENT}").returncode == 0
    ended = desk.process("work", "shop:app", "--drain", OTEL_TRACES_EXPORTER="console")
    assert ended.returncode == 0, ended.stderr

    exported = _objects(ended.stdout)
    assert [span["name"] for span in exported] == ["receive orders", "process orders", "dead_letter orders"]
    dead = exported[-1]
    assert dead["context"]["trace_id"] == f"0x{TRACE:032x}"
    assert dead["resource"]["attributes"]["service.name"] == "checkout"
    [line] = [each for each in _lines(ended.stderr) if each["event"] == "message sent to dead letter queue"]
    assert line["trace_id"] == f"{TRACE:032x}"


def test_a_service_is_named_as_its_environment_says_first(desk: Desk) -> None:
    assert desk.process("send", "orders", "{}").returncode == 0
    ended = desk.process(
        "work", "shop:app", "--drain", OTEL_TRACES_EXPORTER="console", OTEL_SERVICE_NAME="elsewhere"
    )
    assert _objects(ended.stdout)[0]["resource"]["attributes"]["service.name"] == "elsewhere"


def test_a_ratio_of_none_exports_nothing_that_begins_here(desk: Desk) -> None:
    (desk.folder / "redrive.toml").write_text("[tracing]\nenabled = true\nsample_ratio = 0\n")
    assert desk.process("send", "orders", "{}").returncode == 0
    assert desk.process("send", "orders", "{}", "--header", f"traceparent={TRACEPARENT}").returncode == 0
    ended = desk.process("work", "shop:app", "--drain", OTEL_TRACES_EXPORTER="console")
    assert {span["context"]["trace_id"] for span in _objects(ended.stdout)} == {f"0x{TRACE:032x}"}


def test_tracing_without_a_place_to_export_to_is_refused_before_work_begins(desk: Desk) -> None:
    ended = desk.process("work", "shop:app", "--drain")
    assert ended.returncode == 2
    assert "nothing says where traces go" in ended.stderr
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in ended.stderr
    looking = desk.process("list")
    assert looking.returncode in {0, 3, 6}
    assert "trac" not in looking.stderr


def test_an_exporter_that_nobody_has_is_refused_by_its_name(desk: Desk) -> None:
    ended = desk.process("work", "shop:app", "--drain", OTEL_TRACES_EXPORTER="pigeon")
    assert ended.returncode == 2
    assert "'pigeon'" in ended.stderr


@pytest.mark.parametrize("variables", [{"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_SDK_DISABLED": "true"}])
def test_nothing_is_exported_where_the_environment_says_so(desk: Desk, variables: dict[str, str]) -> None:
    assert desk.process("send", "orders", "{}").returncode == 0
    ended = desk.process("work", "shop:app", "--drain", **variables)
    assert (ended.returncode, ended.stdout) == (0, "")
    [line] = [each for each in _lines(ended.stderr) if each["event"] == "message sent to dead letter queue"]
    assert ("trace_id" in line) == ("OTEL_SDK_DISABLED" not in variables)


UNTRACED = """
import asyncio, sys
from redrive import App
from redrive.settings import Settings
from redrive.wiring import run_worker

app = App("checkout")
seen = []

@app.handler("orders")
async def charge(order: dict) -> None:
    seen.append(order)

async def work():
    await app.send("orders", {"order_id": 17})
    await run_worker(app, Settings(), drain=True)

asyncio.run(work())
assert seen, "nothing was handled"
print(sorted(name for name in sys.modules if name.startswith("opentelemetry")))
"""


def test_without_tracing_nothing_of_opentelemetry_is_imported(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", UNTRACED], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "[]"


def test_tracing_without_its_packages_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ConfigurationError) as refused:
        tracing_wiring.opened(ENABLED)
    assert "redrive[otel]" in refused.value.remedy


def test_an_unknown_protocol_is_refused_with_those_that_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "telex")
    with pytest.raises(ConfigurationError, match="telex") as refused:
        tracing_wiring.opened(ENABLED)
    assert "http/protobuf" in refused.value.remedy


@pytest.mark.parametrize(
    ("variables", "announced"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, "otlp_proto_http"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, "otlp_proto_http"),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "otlp_proto_http"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "otlp_proto_grpc"),
    ],
)
def test_an_endpoint_asks_for_the_exporter_of_its_protocol(
    variables: dict[str, str], announced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the names under which OpenTelemetry's packages announce them; a machine without any, faked."""
    asked: list[str] = []

    def nobody(*, group: str, name: str) -> tuple[()]:
        asked.append(f"{group}: {name}")
        return ()

    monkeypatch.setattr(tracing_wiring, "entry_points", nobody)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=announced) as refused:
        tracing_wiring.opened(ENABLED)
    assert asked == [f"opentelemetry_traces_exporter: {announced}"]
    assert "redrive[otel]" in refused.value.remedy


async def test_an_app_that_has_a_provider_of_its_own_gets_our_spans_there(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = Traced()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", traced.provider)
    opened = tracing_wiring.opened(ENABLED)
    assert opened.spans is not None
    opened.spans.redrive(a_message(), "orders").end()
    await opened.close()
    opened.spans.redrive(a_message(), "orders").end()  # theirs is not shut down
    assert traced.names() == ["redrive orders"] * 2


def _lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def _objects(text: str) -> list[dict[str, Any]]:
    """Of JSON objects one behind the other."""
    found, rest = [], text.strip()
    while rest:
        value, end = json.JSONDecoder().raw_decode(rest)
        found.append(value)
        rest = rest[end:].strip()
    return found
