"""The ledger's nouns: keys that do not show themselves, subjects, rows in ECS; and the file of its checkpoints."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from redrive.dead_letter import Actor
from redrive.errors import ConfigurationError, CorruptFile, Refused, Unreachable
from redrive.ledger import LETTERS, TOKEN, Deed, LedgerEntry, LedgerKey, LedgerQuery, Subject, digest_of
from redrive.ledger_checking import EVERY, EVERY_ROWS, keep_checkpoints, sign, verify
from redrive.ledger_checkpoints import BEFORE_ALL, CheckpointFile, public_pem, read_checkpoints, signer_of
from redrive.ledger_ecs import ecs
from redrive.ledger_keys import kept_key, key_in, key_of
from redrive.ledger_verifying import Fault
from redrive.secret_text import SecretText
from redrive.settings import Settings
from redrive.stores.sqlite import SqliteStore
from redrive.testing.clock import ManualClock
from redrive.testing.letters import NOON
from redrive.wiring import ledger_key
from support.patience import until

SECRET = "0123456789abcdef" * 4
KEY = key_of(SECRET)
ANN = Actor("ann")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
async def store(clock: ManualClock) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore("sqlite:///:memory:", clock=clock, ledger_key=KEY)
    yield opened
    await opened.close()


@pytest.fixture
def file(tmp_path: Path) -> CheckpointFile:
    return CheckpointFile(tmp_path / "deep" / "checkpoints.jsonl", KEY)


async def note(store: SqliteStore, what: str = "done", times: int = 1) -> None:
    for number in range(times):
        await store.note(Deed(what=f"{what} {number}", subject=Subject(TOKEN)), by=ANN)


# Keys


def test_a_key_never_shows_itself() -> None:
    assert SECRET not in repr(KEY) + str(KEY) + KEY.id
    assert KEY.id == key_of(f" {SECRET}\n").id != key_of(SECRET[:-1]).id
    assert KEY.derived("rows") != KEY.derived("checkpoints")
    assert SECRET not in f"{SecretText(SECRET)} {SecretText(SECRET)!r}"


def test_a_key_that_is_too_short_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"audit\.key is too short") as refused:
        key_of("short")
    assert "openssl rand" in refused.value.remedy


def test_a_key_is_made_when_it_is_needed_first_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "ledger.key"
    key = kept_key(path)
    assert not path.parent.exists()

    known = key.id

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert known == kept_key(path).id == key_in(path).id
    assert [each.name for each in path.parent.iterdir()] == ["ledger.key"]


def test_of_many_who_make_a_key_at_once_all_have_the_same(tmp_path: Path) -> None:
    path = tmp_path / "ledger.key"
    with ThreadPoolExecutor(16) as threads:
        ids = set(threads.map(lambda _: kept_key(path).id, range(64)))
    assert ids == {key_in(path).id}


def test_a_key_that_cannot_be_had_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "binary").write_bytes(b"\xff" * 64)
    for get in (
        lambda: kept_key(tmp_path / "file" / "ledger.key").id,
        lambda: key_in(tmp_path / "missing"),
        lambda: key_in(tmp_path / "binary"),
        lambda: key_in(tmp_path / "file"),
    ):
        with pytest.raises(ConfigurationError) as refused:
            get()
        assert refused.value.remedy


def test_settings_say_which_key(tmp_path: Path) -> None:
    path = tmp_path / "ledger.key"
    given = Settings.model_validate({"audit": {"key": SECRET, "key_path": str(path)}})
    assert ledger_key(given).id == KEY.id
    assert not path.exists()
    assert SECRET not in repr(given)
    made = ledger_key(Settings.model_validate({"audit": {"key_path": str(path)}}))
    assert made.id == key_in(path).id


# Subjects and exports


def test_a_digest_is_of_the_set_and_of_nothing_else() -> None:
    many = [str(number) for number in range(150)]
    assert Subject.of(LETTERS, many) == Subject.of(LETTERS, [*reversed(many), "7"])
    assert Subject.of(LETTERS, many).count == 150
    assert Subject.of(LETTERS, many).digest == digest_of(many)
    assert digest_of(["a", "b"]) != digest_of(["a,b"]) != digest_of(['a", "b'])
    assert not Subject.of(LETTERS, many[:100]).digest


def test_a_row_in_the_elastic_common_schema() -> None:
    entry = LedgerEntry(
        seq=7,
        at=NOON + timedelta(microseconds=5),
        who="ann",
        token="t1",  # noqa: S106  an id
        what="purge",
        subject=Subject.of(LETTERS, ["b", "a"]),
        before="x",
        after="",
        reason="why",
        request_id="r1",
        allowed=False,
        key_id="k",
        previous="p",
        mac="m",
    )
    assert ecs(entry) == {
        "@timestamp": "2026-01-01T12:00:00.000005Z",
        "ecs": {"version": "8.17.0"},
        "event": {
            "kind": "event",
            "category": ["configuration"],
            "type": ["denied"],
            "module": "redrive",
            "dataset": "redrive.audit",
            "action": "letters purge",
            "outcome": "failure",
            "reason": "why",
            "sequence": 7,
            "hash": "m",
        },
        "user": {"name": "ann"},
        "related": {"user": ["ann"], "hash": ["m", "p"]},
        "labels": {"before": "x", "token": "t1", "key_id": "k", "previous_hash": "p"},
        "redrive": {"subject": {"kind": "letters", "ids": ["a", "b"], "count": 2}},
        "http": {"request": {"id": "r1"}},
    }


# Checkpoints


async def test_a_checkpoint_is_signed_and_told_of_in_the_ledger(
    store: SqliteStore, file: CheckpointFile, clock: ManualClock
) -> None:
    await note(store, times=3)

    made = await sign(store, file, clock)

    assert made is not None
    assert (made.seq, made.count, made.previous, made.at) == (3, 3, "", NOON.isoformat())
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    [row] = await store.ledger(LedgerQuery(limit=1))
    assert (row.subject.ids, row.after) == ((made.digest,), file.place)
    found = await verify(store, [KEY], [file.path])
    assert (found.rows, found.checkpoints, found.sound) == (4, 1, True)
    assert signer_of(load_pem_public_key(public_pem(KEY).encode())) == made.signer  # type: ignore[arg-type]  # Ed25519


async def test_the_file_alone_tells_what_was_done_to_it(
    store: SqliteStore, file: CheckpointFile, clock: ManualClock
) -> None:
    made = []
    for _ in range(3):
        await note(store)
        made.append(await sign(store, file, clock))
    lines = file.path.read_bytes().splitlines(keepends=True)

    def found(*left: bytes) -> list[tuple[Fault, str]]:
        file.path.write_bytes(b"".join(left))
        findings = read_checkpoints([file.path], [KEY]).findings
        return [(each.fault, each.text.partition(", ")[2]) for each in findings]

    gone = (Fault.CHECKPOINT_MISSING, "line 2: the line before is not the one that was there when this was signed")
    forged = lines[1].replace(made[1].mac.encode(), made[0].mac.encode())  # type: ignore[union-attr]  # it was signed
    assert found(*lines) == []
    assert found(lines[0], lines[2]) == [gone]
    assert found(lines[0], forged) == [(Fault.CHECKPOINT_EDITED, "line 2: the signature is not of these words")]
    assert found(lines[0], lines[1].replace(b":", b": ", 1)) == [
        (Fault.CHECKPOINT_EDITED, "line 2: this is no checkpoint")
    ]
    assert read_checkpoints([file.path], [KEY]).anchors == {1: {made[0].mac}}  # type: ignore[union-attr]  # as above


async def test_nothing_is_signed_when_nothing_happened(
    store: SqliteStore, file: CheckpointFile, clock: ManualClock
) -> None:
    assert await sign(store, file, clock) is None
    await note(store)
    first = await sign(store, file, clock)
    assert first is not None
    assert await sign(store, file, clock) is None
    await note(store)
    second = await sign(store, file, clock)
    assert second is not None
    assert (second.seq, second.count, second.previous) == (3, 3, first.digest)


async def test_what_is_not_sound_is_not_signed(
    store: SqliteStore, file: CheckpointFile, clock: ManualClock
) -> None:
    await note(store, times=3)
    await store._write(
        lambda connection: connection.exec_driver_sql("UPDATE ledger SET who = 'eve' WHERE seq = 2")
    )

    with pytest.raises(Refused, match="row 2 was edited"):
        await sign(store, file, clock)

    assert not file.path.exists()
    assert await sign(store, file, clock, anyway=True) is not None


async def test_a_seal_that_was_broken_is_held_fast(
    store: SqliteStore, file: CheckpointFile, clock: ManualClock
) -> None:
    await note(store, times=3)
    await store._write(lambda connection: connection.exec_driver_sql("DELETE FROM ledger WHERE seq = 3"))
    with pytest.raises(Refused, match="gone"):
        await sign(store, file, clock)
    await note(store)

    assert await sign(store, file, clock) is not None
    assert [each.fault for each in (await verify(store, [KEY], [file.path])).findings] == [Fault.BROKEN_SEAL]


async def test_of_two_who_sign_at_once_one_does(
    store: SqliteStore, file: CheckpointFile, clock: ManualClock
) -> None:
    await note(store, times=5)

    made = await asyncio.gather(*(sign(store, CheckpointFile(file.path, KEY), clock) for _ in range(8)))

    assert len([each for each in made if each is not None]) == 1
    assert (await verify(store, [KEY], [file.path])).sound


async def test_half_a_line_of_a_process_that_was_killed_is_cut_off(
    store: SqliteStore, file: CheckpointFile, clock: ManualClock
) -> None:
    await note(store)
    await sign(store, file, clock)
    with file.path.open("ab") as stream:
        stream.write(b'{"seq":9,"mac"')
    assert (await verify(store, [KEY], [file.path])).sound
    await note(store)

    assert await sign(store, file, clock) is not None

    assert len(file.path.read_bytes().splitlines()) == 2
    assert (await verify(store, [KEY], [file.path])).sound


async def test_a_checkpoint_is_due_after_many_rows_or_some_minutes(
    store: SqliteStore, file: CheckpointFile, clock: ManualClock
) -> None:
    keeping = asyncio.create_task(keep_checkpoints(store, file, clock))

    async def looked(seconds: float) -> int:
        await until(lambda: clock.sleeping)
        clock.advance(seconds)
        await until(lambda: clock.sleeping)
        return len(file.path.read_bytes().splitlines()) if file.path.exists() else 0

    assert await looked(EVERY) == 0
    await note(store)
    assert await looked(10) == 1
    await note(store)
    assert await looked(EVERY - 20) == 1
    assert await looked(20) == 2
    assert await looked(EVERY) == 2
    await note(store, "many", EVERY_ROWS)
    assert await looked(10) == 3
    keeping.cancel()
    assert (await verify(store, [KEY], [file.path])).sound


async def test_keeping_goes_on_when_a_checkpoint_cannot_be_signed(
    store: SqliteStore, file: CheckpointFile, clock: ManualClock
) -> None:
    file.path.parent.write_text("no folder")
    await note(store)
    keeping = asyncio.create_task(keep_checkpoints(store, file, clock))
    await until(lambda: clock.sleeping)
    file.path.parent.unlink()
    clock.advance(10)
    await until(file.path.exists)
    keeping.cancel()


async def test_a_file_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="cannot use"):
        read_checkpoints([tmp_path], [KEY])
    (tmp_path / "file").write_text("no checkpoint\n")
    with pytest.raises(CorruptFile):
        CheckpointFile(tmp_path / "file", KEY).last()
    assert CheckpointFile(tmp_path / "none", KEY).last() is BEFORE_ALL


async def test_verifying_goes_through_any_number_of_pages(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await note(store, times=23)
    monkeypatch.setattr("redrive.ledger_checking.PAGE", 5)
    seen: list[int] = []
    found = await verify(store, [KEY, LedgerKey(b"another")], [], on_progress=seen.append)
    assert (found.rows, found.sound, seen) == (23, True, [5, 5, 5, 5, 3])
