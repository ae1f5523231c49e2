"""The frame of the command line (DESIGN 5.2): help, settings, first steps, sending and working."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from redrive.cli.main import COMMANDS, run
from redrive.headers import header
from support.desk import Desk
from support.terminal import on_terminal, python_on_terminal

HEAVY = {"pydantic", "sqlalchemy", "alembic", "structlog", "msgspec", "asyncio"}
HEAVY |= {"redrive.settings", "redrive.configuration", "redrive.wiring", "redrive.stores", "redrive.transports"}


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("REDRIVE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody's"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # pipes are buffered, as they are for everybody


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# Help


def modules_after(*arguments: str) -> tuple[set[str], str]:
    """What is imported after `redrive ARGUMENTS`, and what it printed."""
    script = (
        "import sys; from redrive.cli.main import run; run(sys.argv[1:]); print('\\n' + ' '.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    printed, _, modules = done.stdout.rstrip("\n").rpartition("\n")
    return set(modules.split()), printed


def test_help_lists_every_command_and_imports_none_of_them() -> None:
    modules, printed = modules_after("--help")
    for name, listed in COMMANDS.items():
        assert f" {name} " in printed
        assert listed.module not in modules
    assert not modules & HEAVY


@pytest.mark.parametrize("name", ["send", "work", "init", "list", "retry"])
def test_help_of_one_command_loads_no_settings_no_driver_and_no_database(name: str) -> None:
    modules, printed = modules_after(name, "--help")
    assert f"redrive {name}" in printed
    assert not modules & {"pydantic", "sqlalchemy", "alembic", "redrive.settings", "redrive.wiring"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_exists_and_explains_itself(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([name, "--help"]) == 0
    assert f"redrive {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "family",
    [
        *(["db", command] for command in ("upgrade", "check")),
        *(["config", command] for command in ("check", "show")),
        *(["groups", command] for command in ("show", "set", "merge", "split")),
        *(["stats", command] for command in ("pending", "errors", "rate", "types", "resolution")),
    ],
)
def test_families_have_their_commands(family: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*family, "--help"]) == 0
    assert f"redrive {' '.join(family)}" in capsys.readouterr().out


def test_without_a_command_the_help_is_shown_and_the_exit_code_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    assert "reprocess" in capsys.readouterr().out


def test_the_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("redrive 0.")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["lst"], "Did you mean 'list'?"),
        (["xyzzy"], "No such command 'xyzzy'"),
        (["config", "chekc"], "Did you mean 'check'?"),
        (["send"], "Missing argument 'QUEUE'"),
        (["list", "--colour"], "No such option"),
        (["send", "q", "1", "--count", "0"], "--count"),
        (["list", "--output", "xml"], "xml"),
    ],
)
def test_wrong_usage_is_one_line_with_the_way_to_the_help_and_exit_code_2(
    arguments: list[str], told: str, desk: Desk
) -> None:
    ended = desk.redrive(*arguments)
    assert ended.code == 2
    assert told in ended.err
    first, second = ended.err.splitlines()
    assert first.startswith("error: ")
    assert second.startswith("  hint: redrive")
    assert second.endswith("--help")


# Terminals and pipes


def test_colours_are_for_terminals_and_not_with_no_color(tmp_path: Path) -> None:
    assert "\x1b[" in on_terminal(tmp_path, "config", "show").text
    assert "\x1b[" not in on_terminal(tmp_path, "config", "show", NO_COLOR="1").text
    assert "\x1b[" not in Desk(tmp_path).process("config", "show", FORCE_COLOR="1").stdout


def test_a_table_fits_a_narrow_terminal(tmp_path: Path) -> None:
    url = f"sqlite:///{'x' * 100}.db"
    seen = on_terminal(tmp_path, "config", "show", columns=70, NO_COLOR="1", REDRIVE_STORE__URL=url)
    assert max(len(line) for line in seen.text.splitlines()) <= 70
    assert "…" in seen.text
    assert "dead_letters.notify_critical" in seen.text  # only the column that may shrink is cut
    assert url in Desk(tmp_path).process("config", "show", REDRIVE_STORE__URL=url).stdout


ASK = "from redrive.cli.changing import confirm; from redrive.cli.outcome import report; import sys\n"
ASK += "try: confirm('Delete 3 letters?', yes=False)\nexcept Exception as error: sys.exit(report(error))\n"


def test_a_terminal_is_asked_and_no_means_no(tmp_path: Path) -> None:
    yes = python_on_terminal(tmp_path, ASK, typed="y\n")
    assert yes.code == 0
    assert "Delete 3 letters? [y/N]" in yes.text
    no = python_on_terminal(tmp_path, ASK, typed="\n")
    assert no.code == 5
    assert "nothing was changed" in no.text


@pytest.mark.parametrize("output", ["table", "csv"])  # flushed by rich while it runs, and by us at the end
def test_a_reader_that_goes_away_is_no_reason_to_complain(output: str, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", "from redrive.cli.main import main; main()", "config", "show", "-o", output]
    done = subprocess.run(command, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert done.returncode == 1
    assert "error" not in done.stderr.lower()
    assert "Traceback" not in done.stderr


def test_an_interrupt_ends_with_130_and_without_a_stack_trace(tmp_path: Path) -> None:
    script = "import os, signal, redrive.cli.config as c; from redrive.cli.main import main\n"
    script += "c._rows = lambda *a, **k: os.kill(os.getpid(), signal.SIGINT)\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", script, "config", "show"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert "Traceback" not in done.stderr


# config


def test_config_check_says_what_is_used_or_everything_that_is_wrong(desk: Desk) -> None:
    assert desk.redrive("config", "check").out == "ok: no settings file, defaults\n"
    (desk.folder / "redrive.toml").write_text("[profiles.night.retry]\nattempts = 9\n")
    assert desk.redrive("--profile", "night", "config", "check").out == "ok: redrive.toml, profile night\n"
    (desk.folder / "redrive.toml").write_text("[retry]\nattemps = 9\n[log]\nlevel = 'loud'\n")
    ended = desk.redrive("config", "check")
    assert ended.code == 2
    assert "error: redrive.toml, line 2: unknown setting 'retry.attemps'" in ended.err
    assert "  hint: did you mean retry.attempts?" in ended.err
    assert "error: redrive.toml, line 4: log.level should be" in ended.err


def test_config_show_tells_each_value_and_where_it_comes_from(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    (desk.folder / "other.toml").write_text("[retry]\nattempts = 9\n[queues.orders]\nconcurrency = 2\n")
    monkeypatch.setenv("REDRIVE_BROKER__URL", "amqp://guest:hunter2@host")
    ended = desk.redrive("--config", "other.toml", "--verbose", "config", "show", "--output", "json")
    rows = {row["key"]: (row["value"], row["origin"]) for row in json.loads(ended.out)}
    assert rows["retry.attempts"] == (9, "other.toml, line 2")
    assert rows["retry.initial_delay"] == (5.0, "default")
    assert rows["retry.budget"] == (None, "default")
    assert rows["broker.url"] == ("amqp://guest:***@host", "variable REDRIVE_BROKER__URL")
    assert rows["log.level"] == ("debug", "option --verbose")
    assert rows["queues.orders.concurrency"] == (2, "other.toml, line 4")
    assert "queues.orders.handler_timeout" not in rows
    for output in ("table", "jsonl", "csv"):
        shown = desk.redrive("--config", "other.toml", "config", "show", "--output", output)
        assert shown.code == 0
        assert "hunter2" not in shown.out + shown.err


def test_the_level_of_the_log_is_what_the_command_line_says_over_every_setting(desk: Desk) -> None:
    (desk.folder / "redrive.toml").write_text("[log]\nlevel = 'error'\n[profiles.night.log]\nlevel = 'info'\n")

    def level(*options: str) -> tuple[str, str]:
        ended = desk.redrive(*options, "config", "show", "--output", "json")
        [row] = [row for row in json.loads(ended.out) if row["key"] == "log.level"]
        return row["value"], row["origin"]

    assert level("--log-level", "debug") == ("debug", "option --log-level")
    assert level("--profile", "night", "--log-level", "warning") == ("warning", "option --log-level")
    assert level("--verbose", "--log-level", "warning") == ("warning", "option --log-level")
    assert level("--profile", "night") == ("info", "redrive.toml, line 4")


@pytest.mark.parametrize("through", [(), ("--server", "http://127.0.0.1:1")], ids=["here", "a server"])
def test_a_level_that_is_none_is_refused_with_those_there_are(desk: Desk, through: tuple[str, ...]) -> None:
    ended = desk.redrive("--log-level", "loud", *through, "list")
    assert ended.code == 2
    assert "'debug', 'info', 'warning', 'error'" in ended.err


# First steps


def test_what_init_writes_runs_at_once(desk: Desk) -> None:
    ended = desk.redrive("init")
    assert ended.code == 0
    assert ended.out.splitlines() == ["redrive.toml", "app.py", ".gitignore"]
    for command in ("redrive work app:app", """redrive send hello '{"name": "world"}'""", "redrive list"):
        assert command in ended.err
    assert desk.redrive("config", "check").out == "ok: redrive.toml\n"
    desk.redrive("send", "hello", '{"name": "world"}')
    desk.redrive("send", "hello", "{}")
    worked = desk.process("work", "app:app", "--drain")
    assert worked.returncode == 0, worked.stderr
    assert worked.stdout == "Hello, world!\n"
    listed = json.loads(desk.redrive("list", "--output", "json").out)
    assert [letter["status"] for letter in listed] == ["PENDING"]


def test_init_overwrites_nothing_unless_forced(desk: Desk) -> None:
    app, ignore = desk.folder / "app.py", desk.folder / ".gitignore"
    app.write_text("mine")
    ignore.write_text("*.pyc\n")
    refused = desk.redrive("init")
    assert refused.code == 5
    assert "app.py would be overwritten" in refused.err
    assert "--force" in refused.err
    assert not (desk.folder / "redrive.toml").exists()
    forced = desk.redrive("init", "--force")
    assert forced.code == 0
    assert "App(" in app.read_text()
    assert ignore.read_text() == "*.pyc\n"
    assert "Add to .gitignore: redrive.db*" in forced.err


def test_init_can_be_tried_and_can_make_the_folder(desk: Desk) -> None:
    assert desk.redrive("init", "new/shop", "--dry-run").out.splitlines()[0] == "new/shop/redrive.toml"
    assert not (desk.folder / "new").exists()
    assert desk.redrive("init", "new/shop").code == 0
    assert (desk.folder / "new/shop/app.py").exists()


# db


def test_db_upgrade_makes_the_tables_and_db_check_looks_at_them(desk: Desk) -> None:
    assert desk.redrive("db", "check").code == 6
    assert not (desk.folder / "redrive.db").exists()
    upgraded = desk.redrive("db", "upgrade")
    assert upgraded.code == 0
    assert upgraded.out.startswith("sqlite:///redrive.db is at ")
    assert desk.redrive("db", "upgrade").out == upgraded.out
    assert desk.redrive("db", "check").out == f"ok: {upgraded.out}"
    assert "would be at" in desk.redrive("db", "upgrade", "--dry-run").out


# send


def test_send_prints_the_id_of_a_message_in_s3s_envelope(desk: Desk) -> None:
    arguments = ("--source", "checkout", "--metadata", "priority=high", "--header", "a=1", "--header", "a=2=3")
    ended = desk.redrive("send", "orders", '{"id": 12345678901234567890123}', *arguments, "--key", "k1")
    [delivery] = desk.take("orders")
    message = delivery.message
    assert ended.out == f"{message.id}\n"
    assert message.data == {"id": 12345678901234567890123}
    assert message.metadata == {"priority": "high"}
    assert message.envelope is not None
    assert message.envelope.source == "checkout"
    assert message.headers == (("a", "1"), ("a", "2=3"))
    assert message.key == b"k1"


def test_send_reads_stdin_and_files(desk: Desk) -> None:
    (desk.folder / "order.json").write_text(' {"from": "file"}\n')
    desk.redrive("send", "orders", stdin='{"from": "nothing"}')
    desk.redrive("send", "orders", "-", stdin='{"from": "dash"}')
    desk.redrive("send", "orders", "--file", "order.json")
    assert [each.message.data["from"] for each in desk.take("orders")] == ["nothing", "dash", "file"]


def test_send_does_not_wait_for_a_person_who_does_not_know_that_it_waits(tmp_path: Path) -> None:
    seen = on_terminal(tmp_path, "send", "orders")
    assert seen.code == 2
    assert "there is no DATA" in seen.text


def test_send_raw_sends_exactly_those_bytes(desk: Desk) -> None:
    raw = bytes(range(256))
    (desk.folder / "body").write_bytes(raw)
    assert desk.redrive("send", "orders", "--raw", "--file", "body", "--header", "x-a=é").code == 0
    [delivery] = desk.take("orders")
    assert delivery.message.body == raw
    assert delivery.message.envelope is None
    assert header(delivery.message.headers, "x-a") == "é"


def test_send_many_gives_each_its_own_id(desk: Desk) -> None:
    ids = desk.redrive("send", "orders", "1", "--count", "250").out.split()
    assert len(set(ids)) == 250
    assert [each.message.id for each in desk.take("orders")] == ids


def test_send_with_a_delay_is_not_ready_yet(desk: Desk) -> None:
    assert desk.redrive("send", "orders", "1", "--delay", "1h").code == 0
    assert desk.take("orders") == []


def test_sending_makes_no_store(desk: Desk) -> None:
    desk.redrive("send", "orders", "1")
    assert not (desk.folder / "redrive.db").exists()


# work

APP = """
from redrive import App
app = App("shop")
other = 3

@app.handler("orders")
def orders(data: dict) -> None:
    print("order", data["id"], flush=True)

@app.handler("mails")
def mails(data: dict) -> None:
    print("mail", data["id"], flush=True)
"""


def test_work_can_be_limited_to_one_queue(desk: Desk) -> None:
    (desk.folder / "shop.py").write_text(APP)
    desk.redrive("send", "orders", '{"id": 1}')
    desk.redrive("send", "mails", '{"id": 2}')
    worked = desk.process("work", "shop:app", "--queue", "mails", "--concurrency", "1", "--drain")
    assert worked.stdout == "mail 2\n"
    assert [each.message.data["id"] for each in desk.take("orders")] == [1]


def test_work_ends_cleanly_when_it_is_told_to(desk: Desk) -> None:
    (desk.folder / "shop.py").write_text(APP)
    desk.redrive("send", "orders", '{"id": 1}')
    command = [sys.executable, "-c", "from redrive.cli.main import main; main()", "work", "shop:app"]
    with subprocess.Popen(
        command, cwd=desk.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "order 1\n"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in err
