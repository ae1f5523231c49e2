"""`--server`: every command tells the same through a server as at the store, but for ids and times."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from redrive.cli.invocation import actor
from redrive.cli.outcome import ExitCode
from redrive.dead_letter import Status
from redrive.message import Headers
from redrive.stores import DeadLetterStore, RunStore
from redrive.transports import Transport
from support.dead_letters import an_order, dead, foreign
from support.desk import Desk, Ended
from support.hostile import corpus
from support.patience import until
from support.serving import Served, serving

HEADERS: Headers = (("trace", "abc"), ("trace", b"\xff"), ("big", 2**70), ("deep", {"a": [1, None]}))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    desk = Desk(tmp_path_factory.mktemp("served"))
    desk.record(
        dead(an_order(1, headers=HEADERS), age=timedelta(days=3)),
        dead(foreign(b"\x00\xff", queue="bills"), queue="bills", error=TimeoutError("card 4111 1111 1111 1111")),
        dead(foreign(b'{"cpf": "529.982.247-25", "text": "\\u2028"}', queue="bills"), queue="bills"),
        dead(foreign(None), error=KeyError("ann@example.org is not known")),
        dead(an_order(2, queue="kept"), queue="kept", lane="kept:1"),
        dead(an_order(3, queue="kept"), queue="kept", lane="kept:1"),
    )
    desk.send("orders", [an_order(7)])
    return desk


@pytest.fixture(scope="module")
def served(desk: Desk) -> Iterator[Served]:
    with serving(desk) as found:
        yield found


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("REDRIVE_")]:
        monkeypatch.delenv(name)


Command = Callable[..., Ended]


@pytest.fixture
def remote(desk: Desk, served: Served, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command through the server, from a folder where there is nothing."""
    elsewhere = Desk(desk.folder / "elsewhere")
    elsewhere.folder.mkdir(exist_ok=True)

    def command(*arguments: str, stdin: str = "") -> Ended:
        with monkeypatch.context() as said:
            said.setenv("REDRIVE_TOKEN", served.token)
            ended = elsewhere.redrive("--server", served.url, *arguments, stdin=stdin)
        assert list(elsewhere.folder.iterdir()) == []
        return ended

    return command


IDS = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|(?<![0-9a-f])[0-9a-f]{8,}-[0-9a-f-]+"
)
TIMES = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?")
AGES = re.compile(r"\b(\d+(\.\d+)?(ms|[smhd]))+\b")


def plain(text: str) -> str:
    """Without what differs by nature: ids, times and ages with the room they take, and how a name came in."""
    text = TIMES.sub("TIME", IDS.sub("ID", text))
    text = re.sub(rf"token:{actor()}( of {actor()})?", actor(), text)
    return re.sub(r" +", " ", AGES.sub("AGE", text))


def told(ended: Ended) -> tuple[int, str, str]:
    return ended.code, plain(ended.out), plain(ended.err)


LOOKING = [
    "list",
    "list --limit 2",
    "list --where queue:orders",
    "list --where age:>2d",
    "list --where header.trace:abc",
    "list --where customer",
    "list --where queue:nobodys",
    "list --where queue:",
    "list --output json",
    "list --status pending --queue bills --type TimeoutError",
    "list --count",
    "list --after {first} --limit 1",
    "show {first}",
    "show {first} --output json",
    "show {binary}",
    "show {blocked}",
    "show {binary} --payload",
    "show {personal}",
    "show {personal} --reveal asked",
    "show 01890000-0000-7000-8000-000000000000",
    "show 0189",
    "groups",
    "groups show {group}",
    "groups show {group} --output json",
    "stats",
    "stats pending",
    "stats errors",
    "stats rate",
    "stats types",
    "stats resolution",
    "queues",
    "queues --queue orders --output json",
    "check --max-pending 1 --max-age 400d",
    "check",
    "runs",
    "runs list --output json",
    "runs show {run}",
    "runs show {run} --output json --letters",
    "runs show 01890000-0000-7000-8000-000000000000",
    "runs pause {run}",
    "retry {first} --dry-run",
    "retry {first} 01890000-0000-7000-8000-000000000000 --dry-run --output json",
    "retry --where queue:bills --dry-run",
    "retry --where queue:bills --dry-run --set /cpf=1",
    "retry --where queue:nobodys --yes",
    "retry --where queue:bills",
    "resolve {first} --dry-run",
    "resolve {first}",
    "export",
    "export --whole",
    "export --output csv --queue bills",
    "export --queue bills --limit 1 --unmasked asked",
    "export --queue nobodys",
    "tokens list",
    "users list",
    "audit list --limit 3 --output json",
    "audit export",
]


@pytest.fixture(scope="module")
def names(desk: Desk) -> dict[str, str]:
    """What stands in the commands: of letters, a group, and a run that has ended."""
    rows = json.loads(desk.redrive("list", "--output", "json").out)
    by_queue = {row["queue"]: row for row in reversed(rows)}
    [sent] = desk.record(dead(an_order(5, queue="sent"), queue="sent"))
    desk.redrive("retry", sent, "--yes")
    desk.redrive(
        "users", "add", "ann", "--grant", "viewer:bills", "--password-stdin", stdin="correct horse battery\n"
    )
    run = json.loads(desk.redrive("runs", "list", "--output", "json").out)[0]["id"]
    bills = [row for row in rows if row["queue"] == "bills"]
    return {
        "first": rows[-1]["id"],
        "binary": next(row["id"] for row in bills if row["type"].endswith("TimeoutError")),
        "blocked": by_queue["kept"]["id"],
        "personal": next(row["id"] for row in bills if not row["type"].endswith("TimeoutError")),
        "group": by_queue["orders"]["group_id"],
        "run": run,
    }


@pytest.mark.parametrize("command", LOOKING)
def test_the_same_is_told(desk: Desk, remote: Command, names: dict[str, str], command: str) -> None:
    arguments = [each.format(**names) for each in command.split()]

    assert told(remote(*arguments)) == told(desk.redrive(*arguments))


CHANGING = [
    ("retry {} --yes", Status.REDRIVEN),
    ("retry --where id:{} --yes", Status.REDRIVEN),
    ("retry --where id:{} --yes --key again-{} --rate 100 --reason fixed", Status.REDRIVEN),
    ("retry {} --yes --to elsewhere --set /order_id=9", Status.REDRIVEN),
    ("retry {} --detach --yes", None),
    ("resolve {} --reason solved --yes", Status.RESOLVED),
    ("discard {} --reason nonsense --yes", Status.DISCARDED),
    ("quarantine {} --reason poison --yes", Status.QUARANTINED),
    ("restore {} --reason wrong --yes", Status.PENDING),
    ("purge {} --reason old --yes", Status.PENDING),
    ("edit {} --from - --reason typo --yes", Status.PENDING),
    ("edit {} --undo --reason typo --yes", Status.PENDING),
]


@pytest.mark.parametrize(("command", "status"), CHANGING, ids=[each for each, _ in CHANGING])
def test_the_same_is_done_and_told(desk: Desk, remote: Command, command: str, status: Status | None) -> None:
    here, there = desk.record(dead(an_order(1)), dead(an_order(1)))

    at_store = desk.redrive(*command.replace("{}", here).split(), stdin='{"order_id": 2}')
    through_server = remote(*command.replace("{}", there).split(), stdin='{"order_id": 2}')

    assert told(through_server) == told(at_store)
    assert status in {None, desk.letter(there).status}
    assert status is None or story(desk, there) == story(desk, here)


def story(desk: Desk, letter_id: str) -> list[tuple[str, str]]:
    return [(line.what, plain(line.reason)) for line in desk.letter(letter_id).history]


def test_several_at_once_and_those_that_are_not_there(desk: Desk, remote: Command) -> None:
    here, there = desk.record(dead(), dead()), desk.record(dead(), dead())
    nobody = "01890000-0000-7000-8000-000000000000"
    for change in ("discard", "discard", "restore", "resolve", "purge"):
        rest = (nobody, "--reason", "why", "--yes")
        assert told(remote(change, *there, *rest)) == told(desk.redrive(change, *here, *rest)), change


def test_bytes_are_exported_and_edited_as_they_are(desk: Desk, remote: Command, tmp_path: Path) -> None:
    [letter_id] = desk.record(dead(foreign(b"\x00\xfe\n\r", queue="raw", properties=b"\x01"), queue="raw"))
    (tmp_path / "new").write_bytes(b"\xff\x00")
    exporting = ("export", "--queue", "raw", "--whole", "--unmasked", "to move it")

    assert remote(*exporting).raw == desk.redrive(*exporting).raw
    edited = remote("edit", letter_id, "--from", str(tmp_path / "new"), "--reason", "typo", "--yes")
    assert (edited.code, desk.letter(letter_id).message.body) == (0, b"\xff\x00")


def test_a_body_of_many_megabytes_is_shown_and_edited(desk: Desk, remote: Command, tmp_path: Path) -> None:
    long, longer = b"\xff" + b"x" * (3 << 20), b'{"text": "' + b"y" * (9 << 20) + b'"}'
    [letter_id] = desk.record(dead(foreign(long, queue="long"), queue="long"))
    (tmp_path / "new").write_bytes(longer)

    shown = remote("show", letter_id, "--body", "--reveal", "to look")
    edited = remote("edit", letter_id, "--from", str(tmp_path / "new"), "--reason", "longer", "--yes")

    assert shown.raw == long
    assert edited.code == 0, edited.err
    assert desk.letter(letter_id).message.body == longer
    assert remote("show", letter_id, "--body", "--reveal", "to look").raw == longer


def test_groups_are_annotated_merged_and_split(desk: Desk, remote: Command) -> None:
    pairs = [desk.record(dead(error=ValueError(f"{one} {word}"))) for one in ("a", "b") for word in ("x", "y")]
    groups = [desk.letter(letter_id).group_id for [letter_id] in pairs]
    for command in (
        "groups set {0} --owner ann --verdict investigate --note seen --runbook rtfm --reason why",
        "groups show {0}",
        "groups set {0} --owner= --reason why",
        "groups merge {0} {1} --reason same --yes",
        "groups show {0} --output json",
        "groups split {0} {1} --reason other --yes",
        "groups split {0} {1} --reason other --yes",
    ):
        here, there = command.format(*groups[:2]), command.format(*groups[2:])
        ours, theirs = desk.redrive(*here.split()), remote(*there.split())
        words = {groups[2]: groups[0], groups[3]: groups[1]}
        assert _renamed(told(theirs), words) == _renamed(told(ours), words), command


def _renamed(ended: tuple[int, str, str], words: dict[str, str]) -> tuple[int, str, str]:
    code, out, err = ended
    for word, other in words.items():
        for cut in (32, 8):
            out, err = out.replace(word[:cut], other[:cut]), err.replace(word[:cut], other[:cut])
    return code, out.replace("b x", "a x").replace("b y", "a y"), err


def test_tokens_and_users_are_made_and_taken_away(desk: Desk, remote: Command) -> None:
    made = remote("tokens", "create", "robot", "--grant", "viewer:bills", "--expires", "2d")
    token_id = made.out.split("_")[1]
    added = remote("users", "add", "bob", "--grant", "viewer", "--password-stdin", stdin="correct horse battery\n")
    granted = remote("users", "grants", "bob", "--grant", "operator:pay*")
    disabled = remote("users", "disable", "bob", "--reason", "left")
    revoked = remote("tokens", "revoke", token_id, "--yes")

    assert [each.code for each in (made, added, granted, disabled, revoked)] == [0] * 5
    assert "operator:pay*" in desk.redrive("users", "list").out
    assert remote("users", "list").out == desk.redrive("users", "list").out
    assert remote("users", "disable", "nobody") == desk.redrive("users", "disable", "nobody")


def test_a_token_sees_and_does_what_it_is_for(desk: Desk, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    [other] = desk.record(dead(queue="elsewhere"))
    narrow = desk.redrive("tokens", "create", "narrow", "--grant", "viewer:bills").out.strip()
    monkeypatch.setenv("REDRIVE_TOKEN", narrow)
    monkeypatch.setenv("REDRIVE_SERVER", served.url)

    listed = json.loads(desk.redrive("list", "--output", "json").out)
    denied = desk.redrive("resolve", listed[0]["id"], "--reason", "why", "--yes")

    assert {each["queue"] for each in listed} == {"bills"}
    assert desk.redrive("show", other).code == ExitCode.NOTHING
    assert denied.code == ExitCode.REFUSED
    assert re.match(r"error: token:narrow.* lacks the permission letters:decide", denied.err)


def test_interrupting_pauses_the_run(desk: Desk, remote: Command, served: Served) -> None:
    desk.record(*(dead(an_order(number, queue="slow"), queue="slow") for number in range(3)))
    command = [sys.executable, "-c", "from redrive.cli.main import main; main()", "--server", served.url]
    command += ["retry", "--queue", "slow", "--yes", "--rate", "0.1"]
    variables = {**os.environ, "REDRIVE_TOKEN": served.token}
    with subprocess.Popen(
        command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        run_id = desk.do(_begun)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)

    assert (process.returncode, out) == (130, "Sent 1 letter back.\n")
    assert f"error: run {run_id} is paused: interrupted" in err
    assert remote("runs", "cancel", run_id, "--yes").code == 0


async def _begun(store: DeadLetterStore, _transport: Transport) -> str:
    """The id of the run that has sent its first letter."""

    async def look() -> str | None:
        found = await cast("RunStore", store).runs(active=True)
        return next((run.id for run in found if run.progress.sent), None)

    return str(await until(look))


def test_hostile_messages_are_told_exactly_the_same(desk: Desk, remote: Command) -> None:
    small = [each.message for each in corpus() if len(each.message.body or b"") < 100_000]
    desk.record(*(dead(message, queue="hostile") for message in small))
    exporting = ("export", "--queue", "hostile", "--whole")

    at_store = desk.redrive(*exporting)
    assert at_store.err == f"Exported {len(small)} letters.\n"
    assert remote(*exporting) == at_store
    assert remote(*exporting, "--unmasked", "why") == desk.redrive(*exporting, "--unmasked", "why")
    listing = ("list", "--queue", "hostile", "--limit", "500", "--output", "json")
    assert remote(*listing) == desk.redrive(*listing)
    strange = next(row["id"] for row in json.loads(remote(*listing).out) if "\ud800" in row["message_id"])
    assert told(remote("show", strange)) == told(desk.redrive("show", strange))
