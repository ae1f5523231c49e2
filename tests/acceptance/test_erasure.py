"""LGPD: what is kept about a person is found by a keyed hash and erased, if one asks for it and a second agrees.
On both stores, sealed and plain, and killed at every step.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select

from redrive.dead_letter import Status
from redrive.faults import POINTS
from redrive.stores.schema import audit
from redrive.testing.letters import a_message, an_entry
from redrive.upkeep.archive import Archive
from support.desk import Desk
from support.retained import in_store
from support.server_desk import ServerDesk

if TYPE_CHECKING:
    from support.desk import Ended

CPF, WRITTEN = "52998224725", "529.982.247-25"
OTHER = "11144477735"
STEPS = [point for point in POINTS if point.startswith("erasure.")]


@pytest.fixture(params=["sqlite", "postgresql", "sealed"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    if request.param == "postgresql":
        return ServerDesk(tmp_path, request.getfixturevalue("postgres_store_url"))
    desk = Desk(tmp_path)
    if request.param == "sealed":
        assert desk.redrive("keys", "new").code == 0
        (tmp_path / "redrive.toml").write_text("[encryption]\nenabled = true\n")
    return desk


@pytest.fixture
def plain(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def about(cpf: str, *, queue: str = "orders", number: int = 0) -> str:
    """A failure of a message about that person, as `redrive import` reads it."""
    told = {"queue": queue, "at": "2026-03-01T12:00:00Z", "id": f"{cpf} {number}", "error": {"text": "no"}}
    return json.dumps(told | {"data": {"customer": {"cpf": cpf}, "number": number}})


def masked(desk: Desk, *lines: str) -> list[str]:
    """Recorded with masking, so that the values are in the index as keyed hashes alone."""
    before = set(in_store(desk))
    ended = desk.redrive("import", "-", "--format", "jsonl", "--yes", stdin="\n".join(lines))
    assert ended.code == 0, ended.err
    return sorted(set(in_store(desk)) - before)


def asked(desk: Desk, value: str = CPF) -> str:
    given = ("erase", "request", "--subject", "-", "--reason", "asked by letter 17", "--yes")
    ended = desk.redrive(*given, stdin=value, account="ann")
    assert ended.code == 0, ended.err
    return ended.out.strip()


def approved(desk: Desk, erasure: str, value: str = CPF, who: str = "bob") -> Ended:
    return desk.redrive("erase", "approve", erasure, "--subject", value, "--as", who, "--yes")


def test_what_one_asks_for_and_another_agrees_to_is_gone_and_a_tombstone_stays(desk: Desk) -> None:
    masked(desk, about(CPF), about(WRITTEN, queue="mail"))
    stays = masked(desk, about(OTHER), about(OTHER, queue="mail"))

    ended = approved(desk, asked(desk))

    assert (ended.code, ended.out, ended.err) == (0, "Erased 2 letters.\n", "")
    assert sorted(in_store(desk)) == sorted(stays)
    assert desk.redrive("list", "--where", CPF).code == 3
    assert desk.redrive("db", "check").code == 0


def test_nothing_of_the_person_is_left_in_the_file_of_a_sealed_store(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert desk.redrive("keys", "new").code == 0
    (tmp_path / "redrive.toml").write_text("[encryption]\nenabled = true\n")
    masked(desk, about(CPF))

    approved(desk, asked(desk))

    for file in tmp_path.glob("redrive.db*"):
        assert CPF.encode() not in file.read_bytes()


def test_nobody_agrees_to_what_they_have_asked_for(desk: Desk) -> None:
    [letter_id] = masked(desk, about(CPF))
    erasure = asked(desk)
    me = json.loads(desk.redrive("erase", "list", "--output", "json").out)[0]["requested_by"]

    assert me == "ann"
    mine = ("erase", "approve", erasure, "--subject", CPF, "--yes", "--as", "bob")
    for refused in (
        *(approved(desk, erasure, who=who) for who in (me, "ANN")),
        desk.redrive(*mine, account="ann"),
    ):
        assert (refused.code, "nobody approves their own" in refused.err) == (5, True)

    assert letter_id in in_store(desk)


def test_whoever_agrees_has_to_mean_the_same_value_however_it_is_written(desk: Desk) -> None:
    masked(desk, about(CPF), about(OTHER))
    erasure = asked(desk, CPF)

    refused = approved(desk, erasure, OTHER)
    assert (refused.code, "another value" in refused.err, OTHER in refused.err) == (5, True, False)
    assert len(in_store(desk)) == 2

    assert approved(desk, erasure, WRITTEN).out == "Erased 1 letter.\n"


def test_the_value_stands_nowhere_but_in_the_letters(desk: Desk) -> None:
    masked(desk, about(CPF))
    erasure = asked(desk)
    approved(desk, erasure)

    trail = desk.redrive("audit", "list", "--output", "json").out
    told = desk.redrive("erase", "list", "--output", "json").out
    assert [row["what"] for row in json.loads(trail)][:4] == [
        "erasure ended",
        "erased",
        "erasure approved",
        "erasure requested",
    ]
    assert CPF not in trail + told
    [row] = json.loads(told)
    assert (row["status"], row["found"], row["erased"]) == ("DONE", 1, 1)
    assert row["approved_by"].startswith("bob")
    assert desk.redrive("audit", "verify").code == 0


def test_a_letter_that_was_erased_does_not_come_back_from_a_file(desk: Desk) -> None:
    [letter_id] = masked(desk, about(CPF))
    desk.redrive("export", "--whole", "--unmasked", "a copy", "--file", "copy.jsonl")
    approved(desk, asked(desk))

    ended = desk.redrive("import", "copy.jsonl", "--yes")

    assert ended.out == "Imported 0 letters; 0 were there already, 1 was erased and stays so.\n"
    assert letter_id not in in_store(desk)


def test_letters_of_every_status_go_but_one_that_is_being_sent(desk: Desk) -> None:
    ids = masked(desk, *(about(CPF, number=number) for number in range(4)))
    desk.redrive("resolve", ids[0], "--reason", "x", "--yes")
    desk.redrive("discard", ids[1], "--reason", "x", "--yes")
    desk.do(lambda store, _transport: store.claim([ids[2]], owner="engine", lease=600.0))
    erasure = asked(desk)

    first = approved(desk, erasure)

    assert (first.code, first.out) == (4, "Erased 3 letters.\n")
    assert f"{ids[2]} is REDRIVING" in first.err
    assert {each: letter.status for each, letter in in_store(desk).items()} == {ids[2]: Status.REDRIVING}


def test_a_value_that_was_edited_away_is_found_in_the_revision_before(desk: Desk) -> None:
    [letter_id] = masked(desk, about(CPF))
    edited = desk.redrive("edit", letter_id, "--from", "-", "--reason", "x", "--yes", stdin="{}")
    assert edited.code == 0, edited.err

    assert approved(desk, asked(desk)).out == "Erased 1 letter.\n"
    assert in_store(desk) == {}


def test_what_people_wrote_into_its_history_goes_too(plain: Desk) -> None:
    [letter_id] = masked(plain, about(CPF))
    plain.redrive("resolve", letter_id, "--reason", f"called {CPF}", "--yes")
    copy = plain.letter(letter_id)
    approved(plain, asked(plain))

    history = plain.do(lambda store, _transport: _lines(store, letter_id))

    assert [line[0] for line in history] == [*(each.what for each in copy.history), "erased"]
    assert all(CPF not in line[1] for line in history)
    assert history[-1][1].startswith("erasure ")


async def _lines(store: Any, letter_id: str) -> list[tuple[str, str]]:
    query = select(audit.c.what, audit.c.reason).where(audit.c.letter_id == letter_id).order_by(audit.c.id)
    found: list[tuple[str, str]] = await store._read(
        lambda connection: [(row.what, row.reason) for row in connection.execute(query)]
    )
    return found


def archived(desk: Desk, *ids: str) -> Path:
    desk.redrive("resolve", *ids, "--reason", "x", "--yes")
    assert desk.redrive("retention", "run", "--keep", "0s", "--yes").code == 0
    return Archive(desk.folder / ".redrive/archive").files()[0]


def test_what_is_in_archives_alone_goes_from_there_and_from_their_copies(desk: Desk) -> None:
    (desk.folder / "copies").mkdir()
    with (desk.folder / "redrive.toml").open("a") as file:
        file.write(f'[retention]\ncopy_to = "file://{desk.folder}/copies"\n')
    ids = masked(desk, about(CPF), about(OTHER))
    path = archived(desk, *ids)
    [theirs] = [
        each for each in ids if desk.redrive("archive", "search", f"id:{each} data.customer.cpf:{CPF}").code == 0
    ]
    copy = path.read_bytes()

    would = desk.redrive("erase", "request", "--subject", CPF, "--dry-run")
    assert would.err == "Would ask to erase 1 letter (in archives 1). Nothing was changed.\n"
    ended = approved(desk, asked(desk))

    assert (ended.code, ended.out, ended.err) == (0, "Erased 1 letter.\n", "")
    assert desk.redrive("archive", "restore", theirs, "--yes").code == 3
    assert path.read_bytes() == (desk.folder / "copies" / path.name).read_bytes() != copy
    verified = desk.redrive("retention", "verify")
    assert (verified.code, "1 letter" in verified.out) == (0, True)
    path.write_bytes(copy)  # somebody brings back a backup of the archive
    assert desk.redrive("retention", "verify").code == 6
    restored = desk.redrive("archive", "restore", *ids, "--yes")
    assert restored.out == "Restored 1 letter; 0 were there already, 1 was erased and stays so.\n"
    assert theirs not in in_store(desk)
    assert desk.redrive("audit", "verify").code == 0


def test_an_erasure_is_not_done_while_an_archive_cannot_be_searched(plain: Desk) -> None:
    first, second = masked(plain, about(CPF), about(WRITTEN))
    path = archived(plain, first)
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    erasure = asked(plain)

    ended = approved(plain, erasure)

    assert (ended.code, ended.out, path.name in ended.err) == (4, "Erased 1 letter.\n", True)
    assert second not in in_store(plain)
    [row] = json.loads(plain.redrive("erase", "list", "--output", "json").out)
    assert row["status"] == "APPROVED"
    path.write_bytes(whole)
    assert approved(plain, erasure).out == "Erased 2 letters.\n"


def test_nothing_is_approved_while_letters_are_being_archived(plain: Desk) -> None:
    masked(plain, about(CPF))
    erasure = asked(plain)

    with Archive(plain.folder / ".redrive/archive").alone():
        refused = approved(plain, erasure)

    assert (refused.code, "another process is archiving" in refused.err) == (5, True)
    [row] = json.loads(plain.redrive("erase", "list", "--output", "json").out)
    assert row["status"] == "REQUESTED"


@pytest.mark.parametrize("where", ["key", "header", "id"])
def test_a_value_that_stands_beside_the_body_alone_is_found(plain: Desk, where: str) -> None:
    message = {
        "key": a_message(key=CPF.encode()),
        "header": a_message(headers=(("customer", WRITTEN),)),
        "id": a_message(id=f"order {CPF}"),
    }[where]
    plain.do(lambda store, _transport: store.record(an_entry(message=message)))

    assert approved(plain, asked(plain)).out == "Erased 1 letter.\n"
    assert in_store(plain) == {}


def test_a_request_can_be_seen_first_refused_and_is_not_asked_for_without_letters(plain: Desk) -> None:
    masked(plain, about(CPF), about(CPF, queue="mail"))

    would = plain.redrive("erase", "request", "--subject", CPF, "--dry-run")
    assert would.err == "Would ask to erase 2 letters (mail PENDING 1, orders PENDING 1). Nothing was changed.\n"
    assert plain.redrive("erase", "request", "--subject", OTHER, "--reason", "x", "--yes").code == 3
    assert plain.redrive("erase", "request", "--subject", OTHER, "--dry-run").code == 3
    assert plain.redrive("erase", "request", "--subject", "ab", "--reason", "x", "--yes").code == 2
    assert plain.redrive("erase", "request", "--reason", "x", "--yes").code == 2

    erasure = asked(plain)
    assert plain.redrive("erase", "reject", erasure, "--reason", "not theirs").code == 0
    assert approved(plain, erasure).code == 5
    assert approved(plain, "018f0000-0000-7000-8000-00000000000f").code == 3
    assert len(in_store(plain)) == 2


@pytest.mark.parametrize("point", [*STEPS, "store.before_commit", "store.after_commit"])
def test_killed_at_this_step_it_goes_on_when_it_is_approved_again(desk: Desk, point: str) -> None:
    masked(desk, *(about(CPF, number=number) for number in range(3)))
    [stays] = masked(desk, about(OTHER))
    erasure = asked(desk)

    given = ("erase", "approve", erasure, "--subject", CPF, "--as", "bob", "--yes")
    assert desk.process(*given, faults=f"{point}=kill9").returncode == -signal.SIGKILL

    ended = approved(desk, erasure, who="cal")
    assert ended.code == 0, ended.err
    assert list(in_store(desk)) == [stays]
    [row] = json.loads(desk.redrive("erase", "list", "--output", "json").out)
    assert (row["status"], row["erased"]) == ("DONE", 3)
    assert desk.redrive("audit", "verify").code == 0
    assert desk.redrive("db", "check").code == 0
