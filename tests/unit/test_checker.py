"""The checker of the kill tests must be able to fail: every kind of harm is planted, and has to be found."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import google_crc32c
import pytest

from chaos.lab.checker import Evidence, Verdict, gather, judge
from chaos.lab.embedded import Embedded
from chaos.lab.history import FAILED, OK, SEND, SENT, History
from chaos.lab.places import Letter, crc32c, digest, spooled
from redrive.upkeep.spool import Spool
from support.spooled import MEGABYTE, an_entry, segment_files

BODY = digest(b"{}")


def a_letter(message_id: str, status: str = "PENDING", how: str | None = None, **fields: object) -> Letter:
    values: dict[str, object] = {
        "id": f"letter-of-{message_id}",
        "message_id": message_id,
        "identity": f"embedded:1:{message_id}",
        "status": status,
        "how": how,
        "body": BODY,
        "generation": 1,
        "redrives": 0,
    }
    return Letter(**(values | fields))  # type: ignore[arg-type]  # the fields of a test are right


def all_is_well() -> Evidence:
    """One message of each kind, each in its right place, and one that its producer never heard of again."""
    evidence = Evidence()
    for message_id, expect in (
        ("done", "handled"),
        ("once", "effect"),
        ("dead", "letter"),
        ("back", "resolved"),
        ("free", "any"),
        ("half", "handled"),
    ):
        evidence.expect[message_id] = expect
        evidence.bodies[message_id] = BODY
        evidence.acknowledged.add(message_id)
    evidence.acknowledged.remove("half")
    evidence.handled.update({"done": 1, "back": 1, "free": 1})
    evidence.effects["once"] = 1
    evidence.letters["dead"] = [a_letter("dead")]
    evidence.letters["back"] = [a_letter("back", "RESOLVED", "confirmed", redrives=1)]
    evidence.redrive_ids["back"] = {"r1"}
    return evidence


def test_a_history_in_which_every_promise_was_kept_has_no_problem() -> None:
    verdict = judge(all_is_well())

    assert verdict.problems() == []
    assert verdict == Verdict(
        attempted=6,
        acknowledged=5,
        handled=4,
        letters=2,
        set_apart=0,
        lost=[],
        recovered=[],
        unexpected=[],
        duplicated=0,
        doubled=[],
        misplaced=[],
        damaged=[],
    )


@pytest.mark.parametrize("message_id", ["done", "once", "dead", "back", "free"])
def test_an_acknowledged_message_that_is_nowhere_is_lost(message_id: str) -> None:
    evidence = all_is_well()
    for place in (evidence.handled, evidence.effects, evidence.letters):
        place.pop(message_id, None)

    assert judge(evidence).lost == [message_id]
    assert judge(evidence, quiet=False).lost == [message_id]
    assert f"lost: {message_id}" in judge(evidence).problems()


@pytest.mark.parametrize("place", ["handled", "effects", "letters", "on_broker", "spooled"])
def test_a_message_that_is_found_anywhere_is_not_lost(place: str) -> None:
    evidence = Evidence(expect={"one": "any"}, acknowledged={"one"})
    if place == "letters":
        evidence.letters["one"] = [a_letter("one")]
    elif place == "spooled":
        evidence.spooled.add("one")
    else:
        getattr(evidence, place)["one"] = 1

    assert judge(evidence, quiet=False).lost == []


def test_a_message_that_was_sent_again_may_be_as_many_letters_as_it_was_sent_and_no_more() -> None:
    evidence = all_is_well()
    evidence.letters["dead"].append(a_letter("dead", id="second", identity="embedded:1:copy"))
    assert len(judge(evidence).problems()) == 1

    evidence.copies["dead"] = 1
    assert judge(evidence).problems() == []

    evidence.letters["dead"].append(a_letter("dead", id="third", identity="embedded:1:another"))
    assert judge(evidence).problems() == ["3 letters of message dead"]


def test_a_message_that_was_never_acknowledged_may_be_missing_or_found() -> None:
    evidence = all_is_well()
    assert judge(evidence).recovered == []

    evidence.handled["half"] = 1
    assert judge(evidence).recovered == ["half"]
    assert judge(evidence).problems() == []


def test_a_message_that_nobody_sent_is_unexpected_wherever_it_is() -> None:
    evidence = all_is_well()
    evidence.handled["ghost-1"] = 1
    evidence.on_broker["ghost-2"] = 1
    evidence.letters["ghost-3"] = [a_letter("ghost-3")]

    assert judge(evidence).unexpected == ["ghost-1", "ghost-2", "ghost-3"]
    assert len(judge(evidence, quiet=False).problems()) == 3


def test_successes_beyond_the_first_are_duplicates_and_have_a_bound() -> None:
    evidence = all_is_well()
    evidence.handled["done"] = 3
    verdict = judge(evidence)

    assert verdict.duplicated == 2
    assert verdict.problems(duplicates_allowed=1) == ["2 duplicates, at most 1 allowed"]
    assert verdict.problems(duplicates_allowed=2) == []
    assert verdict.problems(duplicates_allowed=None) == []


def test_an_effect_that_happened_twice_is_wrong_whatever_the_bound() -> None:
    evidence = all_is_well()
    evidence.effects["once"] = 2

    assert judge(evidence).problems(duplicates_allowed=None) != []


def plant_second_letter(evidence: Evidence) -> None:
    evidence.letters["dead"].append(a_letter("dead", id="another", identity="embedded:1:another"))


def plant_same_identity(evidence: Evidence) -> None:
    evidence.letters["free"] = [a_letter("free", identity="embedded:1:dead")]


def plant_second_redrive_id_at_the_handler(evidence: Evidence) -> None:
    evidence.redrive_ids["back"].add("r2")


def plant_second_redrive_id_in_the_store(evidence: Evidence) -> None:
    evidence.letters["back"] = [a_letter("back", "RESOLVED", "confirmed", redrives=2)]


def plant_an_id_used_twice(evidence: Evidence) -> None:
    evidence.attempted_twice.append("done")


@pytest.mark.parametrize(
    "plant",
    [
        plant_second_letter,
        plant_same_identity,
        plant_second_redrive_id_at_the_handler,
        plant_second_redrive_id_in_the_store,
        plant_an_id_used_twice,
    ],
)
def test_what_must_be_one_and_is_two_is_found(plant: Callable[[Evidence], None]) -> None:
    evidence = all_is_well()
    plant(evidence)

    assert judge(evidence).doubled != []
    assert judge(evidence, quiet=False).problems(duplicates_allowed=None) != []


def plant_success_with_a_letter(evidence: Evidence) -> None:
    evidence.letters["done"] = [a_letter("done")]


def plant_handled_instead_of_dead(evidence: Evidence) -> None:
    evidence.handled["dead"] = 1


def plant_no_letter_for_a_failure(evidence: Evidence) -> None:
    del evidence.letters["dead"]
    evidence.handled["dead"] = 1


def plant_sent_back_but_never_arrived(evidence: Evidence) -> None:
    evidence.letters["back"] = [a_letter("back", "REDRIVEN", redrives=1)]
    del evidence.handled["back"]


def plant_handled_but_never_confirmed(evidence: Evidence) -> None:
    evidence.letters["back"] = [a_letter("back", "REDRIVEN", redrives=1)]


def plant_resolved_but_never_handled(evidence: Evidence) -> None:
    del evidence.handled["back"]


def plant_left_on_the_broker(evidence: Evidence) -> None:
    evidence.on_broker["done"] = 1


def plant_left_in_the_spool(evidence: Evidence) -> None:
    evidence.spooled.add("dead")


@pytest.mark.parametrize(
    "plant",
    [
        plant_success_with_a_letter,
        plant_handled_instead_of_dead,
        plant_no_letter_for_a_failure,
        plant_sent_back_but_never_arrived,
        plant_handled_but_never_confirmed,
        plant_resolved_but_never_handled,
        plant_left_on_the_broker,
        plant_left_in_the_spool,
    ],
)
def test_a_message_in_the_wrong_place_is_found_when_all_is_quiet(plant: Callable[[Evidence], None]) -> None:
    evidence = all_is_well()
    plant(evidence)

    assert len(judge(evidence).misplaced) == 1
    assert judge(evidence, quiet=False).misplaced == []


@pytest.mark.parametrize("message_id", ["done", "once", "dead", "back"])
def test_a_message_set_apart_for_process_deaths_is_right_but_counted(message_id: str) -> None:
    evidence = all_is_well()
    evidence.letters[message_id] = [a_letter(message_id, "QUARANTINED", "3 process deaths")]
    verdict = judge(evidence)

    assert verdict.set_apart == 1
    assert verdict.problems(set_apart_allowed=1) == []
    assert verdict.problems(set_apart_allowed=0) != []


def test_a_letter_that_does_not_hold_the_bytes_that_were_sent_is_damage() -> None:
    evidence = all_is_well()
    evidence.letters["dead"] = [a_letter("dead", body=digest(b"{ }"))]

    assert judge(evidence).damaged == ["letter letter-of-dead does not hold the bytes that were sent"]


# What it reads


def a_store(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        CREATE TABLE letters (
            id, message_id, identity, status, how, generation, group_id, fingerprint, queue, handler, kind, type,
            created_at
        );
        CREATE TABLE revisions (letter_id, number, body);
        CREATE TABLE failures (letter_id);
        CREATE TABLE redrives (letter_id, outcome);
        CREATE TABLE claims (letter_id);
        CREATE TABLE audit (letter_id);
        CREATE TABLE groups (id, merged_into);
        CREATE TABLE facets (id, group_id, queue, handler, kind, type);
        CREATE TABLE totals (facet_id, status, letters);
        CREATE TABLE counters (facet_id, status, hour, letters);
        CREATE TABLE counter_deltas (group_id, queue, handler, kind, type, status, hour, letters);
        CREATE TABLE search_queue (letter_id);
        CREATE TABLE search_parts (letter_id);
        INSERT INTO letters VALUES
            ('l1', 'dead', 'embedded:1:1/charge', 'PENDING', NULL, 1, 'g', 'g', 'q', 'h', 'k', 't', 7200000000);
        INSERT INTO facets VALUES (1, 'g', 'q', 'h', 'k', 't');
        INSERT INTO totals VALUES (1, 'PENDING', 2);
        INSERT INTO counters VALUES (1, 'PENDING', 2, 2);
        INSERT INTO counter_deltas VALUES ('g', 'q', 'h', 'k', 't', 'PENDING', 2, -1);
        INSERT INTO search_queue VALUES ('l1');
        INSERT INTO revisions VALUES ('l1', 0, CAST('{}' AS BLOB));
        INSERT INTO failures VALUES ('l1');
        INSERT INTO audit VALUES ('l1');
        INSERT INTO groups VALUES ('g', NULL);
        """
    )
    return connection


def test_the_evidence_is_read_from_history_broker_store_and_handlers_database(tmp_path: Path) -> None:
    history = History(tmp_path / "history.jsonl")
    for message_id, expect in (("done", "handled"), ("dead", "letter"), ("gone", "handled"), ("wait", "any")):
        history.write(SEND, message_id, expect=expect, body=BODY)
        history.write(SENT, message_id)
    history.write(SEND, "half", expect="handled", body=BODY)
    history.write(OK, "done", redrive="r1")
    history.write(OK, "done", redrive="r1")
    history.write(FAILED, "dead")
    history.close()
    with closing(sqlite3.connect(tmp_path / "broker.db")) as broker:
        broker.executescript("CREATE TABLE messages (message_id); INSERT INTO messages VALUES ('wait')")
    with closing(sqlite3.connect(tmp_path / "effects.db")) as effects:
        effects.executescript("CREATE TABLE effects (message_id); INSERT INTO effects VALUES ('once')")
    a_store(tmp_path / "store.db").close()

    evidence = gather(
        tmp_path / "history.jsonl",
        broker=Embedded(str(tmp_path / "broker.db")),
        store=tmp_path / "store.db",
        effects=tmp_path / "effects.db",
        spool=tmp_path / "no spool",
    )
    verdict = judge(evidence)

    assert (verdict.attempted, verdict.acknowledged, verdict.duplicated) == (5, 4, 1)
    assert verdict.lost == ["gone"]
    assert verdict.unexpected == ["once"]
    assert [each.split(":")[0] for each in verdict.misplaced] == ["still under way"]
    assert verdict.doubled == verdict.damaged == []


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE totals SET letters = 1",
        "UPDATE counters SET letters = 1",
        "UPDATE counters SET hour = 3",
        "DELETE FROM counter_deltas",
        "UPDATE letters SET status = 'RESOLVED'",
        "UPDATE letters SET kind = 'another'",
        "UPDATE groups SET merged_into = 'another'",
        "DELETE FROM groups",
        "DELETE FROM search_queue",
        "INSERT INTO failures VALUES ('gone')",
        "INSERT INTO revisions VALUES ('gone', 0, NULL)",
        "INSERT INTO claims VALUES ('l1')",
        "UPDATE letters SET status = 'REDRIVING'",
        "DELETE FROM failures",
        "DELETE FROM audit",
        "UPDATE revisions SET body = CAST('{ }' AS BLOB)",
        "DELETE FROM revisions",
    ],
)
def test_a_store_that_contradicts_itself_is_damage(harm: str, tmp_path: Path) -> None:
    history = History(tmp_path / "history.jsonl")
    history.write(SEND, "dead", expect="letter", body=BODY)
    history.close()
    with closing(a_store(tmp_path / "store.db")) as store:
        assert judge(gather(tmp_path / "history.jsonl", store=tmp_path / "store.db")).damaged == []
        store.execute(harm)
        store.commit()

    assert judge(gather(tmp_path / "history.jsonl", store=tmp_path / "store.db")).damaged != []


def test_a_database_with_a_damaged_page_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "broker.db"
    with closing(sqlite3.connect(path)) as broker:
        broker.execute("CREATE TABLE messages (message_id, queue)")
        broker.executemany("INSERT INTO messages VALUES (1, ?)", [("x" * 500,)] * 100)
        broker.execute("CREATE INDEX by_queue ON messages (queue)")
        broker.commit()
    with path.open("r+b") as file:
        file.seek(-4096, 2)  # the last page belongs to the index
        file.write(b"\xff" * 4096)

    assert gather(tmp_path / "no history", broker=Embedded(str(path))).damage != []


async def test_whole_records_of_the_spool_count_and_torn_ones_do_not(tmp_path: Path) -> None:
    spool = Spool(tmp_path, max_bytes=MEGABYTE)
    await spool.append(an_entry("first"))
    await spool.append(an_entry("second"))
    await spool.close()
    (segment,) = segment_files(tmp_path)

    assert spooled(tmp_path, ["m-first", "m-second", "m-third"]) == {"m-first", "m-second"}
    segment.write_bytes(segment.read_bytes()[:-1])
    assert spooled(tmp_path, ["m-first", "m-second"]) == {"m-first"}


def test_the_checker_shares_no_code_with_what_it_checks() -> None:
    program = "import chaos.lab.checker, sys; print([name for name in sys.modules if name.startswith('redrive')])"
    imported = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, check=True
    )

    assert imported.stdout == b"[]\n"


def test_the_checkers_own_checksum_is_the_known_one() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == google_crc32c.value(b"")
