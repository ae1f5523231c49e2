"""Whatever somebody does to the ledger in the database, or to its checkpoints, `verify` finds it (TH21)."""

from __future__ import annotations

import base64
import hashlib
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from sqlalchemy import Connection, NullPool, create_engine

from redrive.ledger import GENESIS, LETTERS, RUN, TOKEN, Deed, Head, LedgerKey, LedgerPage, StoredRow, Subject
from redrive.ledger_checking import sign, verify
from redrive.ledger_checkpoints import Checkpoint, CheckpointFile
from redrive.ledger_verifying import Fault
from redrive.stores import sql_ledger
from redrive.stores.sqlite import SqliteStore
from redrive.testing.clock import ManualClock
from redrive.testing.letters import NOON
from redrive.testing.store_contract_ledger import ANN, BOB, KEY

OTHER = LedgerKey(b"a secret that the thief has made up")
SEEDS = range(40)
_INSERT = "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
ROWS = 45


class Ledger(NamedTuple):
    rows: list[StoredRow]
    head: Head | None
    lines: list[bytes]
    """Of the file of checkpoints."""


class Place:
    """A ledger that was written by a store, in a file that can be put into any state."""

    def __init__(self, connection: Connection, checkpoints: Path) -> None:
        self.connection = connection
        self.checkpoints = checkpoints
        page = sql_ledger.page(connection, 0, 1000)
        self.written = Ledger(page.rows, page.head, checkpoints.read_bytes().split(b"\n")[:-1])

    async def ledger_page(self, after: int, limit: int) -> LedgerPage:
        return sql_ledger.page(self.connection, after, limit)

    @contextmanager
    def holding(self, ledger: Ledger) -> Iterator[None]:
        self.checkpoints.write_bytes(b"".join(line + b"\n" for line in ledger.lines))
        run = self.connection.exec_driver_sql
        run("BEGIN")
        run("DELETE FROM ledger")
        run("DELETE FROM ledger_head")
        run(_INSERT, [tuple(row) for row in ledger.rows])
        if ledger.head is not None:
            run("INSERT INTO ledger_head VALUES (1, ?, ?, ?, ?)", tuple(ledger.head))
        try:
            yield
        finally:
            run("ROLLBACK")

    async def faults(self, ledger: Ledger, *keys: LedgerKey) -> list[Fault]:
        with self.holding(ledger):
            found = await verify(self, keys or (KEY,), [self.checkpoints])  # type: ignore[arg-type]  # a reader
        return [each.fault for each in found.findings]


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    clock, file = ManualClock(NOON), CheckpointFile(tmp_path / "checkpoints.jsonl", KEY)
    store = SqliteStore(f"sqlite:///{tmp_path}/letters.db", clock=clock, ledger_key=KEY)
    for number in range(ROWS):
        kind = (LETTERS, RUN, TOKEN)[number % 3]
        deed = Deed(what=f"done {number % 7}", subject=Subject.of(kind, [f"id {number}"]), before="a", after="b")
        await store.note(deed, by=(ANN, BOB)[number % 2])
        clock.advance(60)
        if number % 15 == 14:
            assert await sign(store, file, clock) is not None
    await store.close()
    engine = create_engine(f"sqlite:///{tmp_path}/letters.db", isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with engine.connect() as connection:
        yield Place(connection, file.path)


def linked(rows: list[StoredRow], key: LedgerKey, begin: int = 0) -> list[StoredRow]:
    """As if they had been written so: numbered, chained and sealed from there on."""
    done = list(rows[:begin])
    for row in rows[begin:]:
        last = done[-1] if done else None
        seq, previous = (1, GENESIS) if last is None else (last.seq + 1, last.mac)
        done.append(row._replace(seq=seq, previous=previous).sealed(key))
    return done


def swapped(rows: list[StoredRow], one: int, other: int) -> list[StoredRow]:
    """Each in the place of the other, with its number."""
    new = list(rows)
    new[one] = rows[other]._replace(seq=rows[one].seq)
    new[other] = rows[one]._replace(seq=rows[other].seq)
    return new


# Somebody who can write to the database, and has no key


def edits_a_row(ledger: Ledger, dice: random.Random) -> Ledger:
    place, name = dice.randrange(len(ledger.rows)), dice.choice(StoredRow._fields[1:])
    value, values = getattr(ledger.rows[place], name), [getattr(row, name) for row in ledger.rows]
    others = [*values, "", "x", 0, 1, 2, -1, b"x", 1.5, f"{value}0", str(value)[:-1]]
    rows = list(ledger.rows)
    rows[place] = rows[place]._replace(**{name: dice.choice([each for each in others if each != value])})
    return ledger._replace(rows=rows)


def takes_rows_out(ledger: Ledger, dice: random.Random) -> Ledger:
    first = dice.randrange(len(ledger.rows) - 1)
    last = min(first + dice.choice([1, 1, 1, 5]), len(ledger.rows) - 1)
    return ledger._replace(rows=ledger.rows[:first] + ledger.rows[last:])


def takes_a_row_out_and_counts_anew(ledger: Ledger, dice: random.Random) -> Ledger:
    gone = dice.randrange(len(ledger.rows))
    rest = ledger.rows[:gone] + ledger.rows[gone + 1 :]
    rows = [row._replace(seq=number) for number, row in enumerate(rest, 1)]
    assert ledger.head is not None
    return ledger._replace(rows=rows, head=ledger.head._replace(seq=len(rows)))


def swaps_two_rows(ledger: Ledger, dice: random.Random) -> Ledger:
    one, other = dice.sample(range(len(ledger.rows)), 2)
    return ledger._replace(rows=swapped(ledger.rows, one, other))


def adds_a_row(ledger: Ledger, dice: random.Random) -> Ledger:
    last, copied = ledger.rows[-1], dice.choice(ledger.rows)
    mac = dice.choice([copied.mac, hashlib.sha256(b"x").hexdigest()])
    new = copied._replace(seq=last.seq + 1, previous=last.mac, mac=mac)
    assert ledger.head is not None
    head = dice.choice([ledger.head, ledger.head._replace(seq=new.seq, mac=new.mac)])
    return ledger._replace(rows=[*ledger.rows, new], head=head)


def cuts_off_the_end(ledger: Ledger, dice: random.Random) -> Ledger:
    left = ledger.rows[: dice.randrange(1, len(ledger.rows))]
    end = left[-1]
    assert ledger.head is not None
    heads = [ledger.head, None, Head(), ledger.head._replace(seq=end.seq, mac=end.mac), Head.of(end, OTHER)]
    return ledger._replace(rows=left, head=dice.choice(heads))


def builds_the_chain_anew_by_another_key(ledger: Ledger, dice: random.Random) -> Ledger:
    begin = dice.randrange(len(ledger.rows))
    key_id = dice.choice([KEY.id, OTHER.id])
    rows = linked([row._replace(key_id=key_id, who="nobody") for row in ledger.rows], OTHER, 0)
    rows = (
        rows
        if begin % 2
        else ledger.rows[:begin] + linked(ledger.rows[:begin] + rows[begin:], OTHER, begin)[begin:]
    )
    return ledger._replace(rows=rows, head=Head.of(rows[-1], OTHER)._replace(key_id=key_id))


def builds_the_chain_anew_without_a_key(ledger: Ledger, dice: random.Random) -> Ledger:
    begin = dice.randrange(len(ledger.rows))
    rows = ledger.rows[:begin]
    for row in ledger.rows[begin:]:
        new = row._replace(previous=rows[-1].mac if rows else GENESIS, who="nobody")
        rows.append(new._replace(mac=hashlib.sha256(new.canonical()).hexdigest()))
    assert ledger.head is not None
    return ledger._replace(rows=rows, head=ledger.head._replace(mac=rows[-1].mac))


def puts_in_a_row_of_another_ledger_by_the_same_key(ledger: Ledger, dice: random.Random) -> Ledger:
    """Such as of a copy of the database that was worked on: sealed, and in its place."""
    rows, place = list(ledger.rows), dice.randrange(len(ledger.rows) - 1)
    rows[place] = rows[place]._replace(who="nobody").sealed(KEY)
    return ledger._replace(rows=rows)


def changes_the_head(ledger: Ledger, dice: random.Random) -> Ledger:
    assert ledger.head is not None
    other = dice.choice(ledger.rows[:-1])
    changes = [{"seq": other.seq}, {"mac": other.mac}, {"seal": other.mac}, {"key_id": "x"}, {"seq": 999}]
    return ledger._replace(head=dice.choice([None, Head(), *[ledger.head._replace(**each) for each in changes]]))


# Somebody who can write to the file of checkpoints


def takes_checkpoints_out(ledger: Ledger, dice: random.Random) -> Ledger:
    left = dice.sample(range(len(ledger.lines)), dice.randrange(len(ledger.lines)))
    return ledger._replace(lines=[ledger.lines[place] for place in sorted(left)])


def edits_a_checkpoint(ledger: Ledger, dice: random.Random) -> Ledger:
    lines, place = list(ledger.lines), dice.randrange(len(ledger.lines))
    line = bytearray(lines[place])
    at = dice.randrange(len(line))
    line[at] = (line[at] + dice.randrange(1, 9)) % 128 or 1
    lines[place] = bytes(line).replace(b"\n", b" ")
    return ledger._replace(lines=lines)


def swaps_two_checkpoints(ledger: Ledger, dice: random.Random) -> Ledger:
    lines = list(ledger.lines)
    one, other = dice.sample(range(len(lines)), 2)
    lines[one], lines[other] = lines[other], lines[one]
    return ledger._replace(lines=lines)


def signs_checkpoints_by_another_key(ledger: Ledger, dice: random.Random) -> Ledger:
    row = dice.choice(ledger.rows)
    file = CheckpointFile(Path("none"), OTHER)
    lines, previous = [], ""
    for line in ledger.lines:
        old = msgspec.json.decode(line, type=Checkpoint)
        new = file._signed(msgspec.structs.replace(old, mac=row.mac), previous, NOON)
        lines.append(new.line())
        previous = new.digest
    return ledger._replace(lines=lines)


# Somebody who has the key, and not the checkpoints


def rewrites_the_past_with_the_key(ledger: Ledger, dice: random.Random) -> Ledger:
    changed = dice.randrange(ROWS - 2)  # before the last checkpoint
    rows = list(ledger.rows)
    rows[changed] = rows[changed]._replace(who="nobody")
    rows = linked(rows, KEY, changed)
    return ledger._replace(rows=rows, head=Head.of(rows[-1], KEY))


def cuts_off_the_end_with_the_key(ledger: Ledger, dice: random.Random) -> Ledger:
    rows = ledger.rows[: dice.randrange(1, ROWS)]
    return ledger._replace(rows=rows, head=Head.of(rows[-1], KEY))


Tampering = Callable[[Ledger, random.Random], Ledger]
BROKEN = {Fault.BROKEN_SEAL, Fault.TRUNCATED, Fault.MISSING}
ANEW = {Fault.EDITED, Fault.UNKNOWN_KEY}
CHECKPOINTS = {Fault.CHECKPOINT_EDITED, Fault.CHECKPOINT_MISSING}
FOUND: dict[Tampering, set[Fault]] = {
    edits_a_row: {Fault.EDITED, Fault.UNKNOWN_KEY, Fault.REPLACED},
    takes_rows_out: {Fault.MISSING},
    takes_a_row_out_and_counts_anew: {Fault.MOVED, Fault.BROKEN_SEAL},
    swaps_two_rows: {Fault.MOVED},
    adds_a_row: {Fault.EDITED, Fault.BROKEN_SEAL},
    cuts_off_the_end: BROKEN | {Fault.UNKNOWN_KEY},
    builds_the_chain_anew_by_another_key: ANEW,
    builds_the_chain_anew_without_a_key: ANEW,
    puts_in_a_row_of_another_ledger_by_the_same_key: {Fault.REPLACED},
    changes_the_head: BROKEN | {Fault.UNKNOWN_KEY},
    takes_checkpoints_out: {Fault.CHECKPOINT_MISSING},
    edits_a_checkpoint: CHECKPOINTS,
    swaps_two_checkpoints: CHECKPOINTS,
    signs_checkpoints_by_another_key: {Fault.CHECKPOINT_EDITED},
    rewrites_the_past_with_the_key: {Fault.REBUILT},
    cuts_off_the_end_with_the_key: {Fault.TRUNCATED},
}


@pytest.mark.parametrize("tampering", FOUND, ids=lambda each: each.__name__)
async def test_every_tampering_is_found_and_called_by_its_name(place: Place, tampering: Tampering) -> None:
    assert await place.faults(place.written) == []
    for seed in SEEDS:
        tampered = tampering(place.written, random.Random(seed))  # noqa: S311  no secret
        assert tampered != place.written, f"seed {seed} tampers with nothing"
        found = await place.faults(tampered)
        assert FOUND[tampering] & set(found), f"seed {seed}: {found}"
    assert await place.faults(place.written) == []


def test_that_is_more_than_five_hundred() -> None:
    assert len(FOUND) * len(SEEDS) >= 500


async def test_the_finding_names_the_row(place: Place) -> None:
    rows = place.written.rows

    async def told(new: list[StoredRow]) -> list[str]:
        with place.holding(place.written._replace(rows=new)):
            found = await verify(place, [KEY], [place.checkpoints])  # type: ignore[arg-type]  # as above
        return [each.text for each in found.findings]

    assert await told([*rows[:6], rows[6]._replace(who="eve"), *rows[7:]]) == [
        "row 7 was edited, or never written by us"
    ]
    assert await told(rows[:6] + rows[7:]) == ["row 7 is missing"]
    assert await told(rows[:6] + rows[9:]) == ["the rows from 7 to 9 are missing"]
    assert await told(swapped(rows, 6, 20)) == [
        "row 7 holds what was written as row 21",
        "row 21 holds what was written as row 7",
    ]


async def test_a_value_of_another_type_that_is_written_alike_is_found(place: Place) -> None:
    rows = list(place.written.rows)
    [alike, *_] = [index for index, row in enumerate(rows) if row.reason == "seen"]
    rows[alike] = rows[alike]._replace(reason=base64.b64decode("seen"))
    assert rows[alike].canonical() == place.written.rows[alike].canonical()

    assert await place.faults(place.written._replace(rows=rows)) == [Fault.EDITED]


async def test_an_end_that_is_cut_off_is_not_hidden_by_a_change_of_keys(place: Place, tmp_path: Path) -> None:
    """Who cannot seal the end could say that another key did."""
    run = place.connection.exec_driver_sql
    run("DELETE FROM ledger WHERE seq > 40")
    mac = "mac = (SELECT mac FROM ledger WHERE seq = 40)"
    run(f"UPDATE ledger_head SET seq = 40, {mac}, key_id = ?", (OTHER.id,))  # noqa: S608  a constant
    store = SqliteStore(f"sqlite:///{tmp_path}/letters.db", ledger_key=KEY)
    await store.note(Deed(what="next", subject=Subject(TOKEN)), by=ANN)
    found = await verify(store, [KEY, OTHER], [])
    await store.close()

    assert (Fault.BROKEN_SEAL, 41) in [(each.fault, each.seq) for each in found.findings]


async def test_what_is_cut_off_is_told_for_good_by_the_next_row(place: Place, tmp_path: Path) -> None:
    """The next change seals the end anew, and says that it was not as it was left."""
    run = place.connection.exec_driver_sql
    for end, head in ((40, True), (30, True), (20, False)):
        run("DELETE FROM ledger WHERE seq > ?", (end,))
        run("UPDATE ledger_head SET seq = ?, mac = (SELECT mac FROM ledger WHERE seq = ?)", (end, end))
        if not head:
            run("DELETE FROM ledger_head")
        store = SqliteStore(f"sqlite:///{tmp_path}/letters.db", ledger_key=KEY)
        await store.note(Deed(what="next", subject=Subject(TOKEN)), by=ANN)
        found = await verify(store, [KEY], [])
        await store.close()

        assert [(each.fault, each.seq) for each in found.findings[:1]] == [(Fault.BROKEN_SEAL, end + 1)]
        assert found.rows == end + 2
