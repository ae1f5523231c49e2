"""Encryption at rest as people use it: keys, a worker whose store is away, retention, verifying, importing."""

from __future__ import annotations

import asyncio
import json
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from redrive.clock import new_id
from redrive.dead_letter import Entry
from redrive.encryption_settings import EncryptionSettings
from redrive.encryption_wiring import file_keys
from redrive.message import Message
from redrive.settings import Settings
from redrive.testing.letters import NOON
from redrive.upkeep.archive import Archive
from redrive.upkeep.spool import Spool
from support.dead_letters import dead
from support.desk import Desk
from support.private_letters import Canary, canaries
from support.server_desk import settled
from support.spooled import MEGABYTE, Sink

ON = "[encryption]\nenabled = true\n"
AWAY = '[store]\nurl = "postgresql://nobody@127.0.0.1:1/nothing"\nconnect_timeout = "1s"\n'
SHOP = """
from redrive import App, Permanent, Retry

app = App("shop", retry=Retry(1, "1s"))

@app.handler("orders")
async def charge(data: dict) -> None:
    raise Permanent(f"refused: {data}")
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "shop.py").write_text(SHOP)
    return Desk(tmp_path)


@pytest.fixture
def sealed(desk: Desk) -> Desk:
    """A folder with a key and encryption on, and a store where something has just failed."""
    assert desk.redrive("keys", "new").code == 0
    (desk.folder / "redrive.toml").write_text(ON)
    desk.record(dead())
    return desk


def key_of(desk: Desk) -> Path:
    return desk.folder / ".redrive/encryption.key"


def archives(desk: Desk) -> list[Path]:
    return Archive(desk.folder / ".redrive/archive").files()


# Keys


def test_a_key_is_made_once_and_listed_without_its_secret(desk: Desk) -> None:
    made = desk.redrive("keys", "new")
    assert (made.code, stat.S_IMODE(key_of(desk).stat().st_mode)) == (0, 0o600)
    secret = key_of(desk).read_text().strip()
    assert secret not in made.out + made.err
    assert "Keep a copy" in made.err
    again = desk.redrive("keys", "new")
    assert (again.code, key_of(desk).read_text().strip()) == (5, secret)
    other = desk.redrive("keys", "new", "second.key").out.strip()
    (desk.folder / "redrive.toml").write_text(ON + 'old_keys = ["second.key"]\n')

    listed = desk.redrive("keys", "list", "--output", "json")

    assert listed.code == 0
    first = made.out.strip()
    assert listed.out.index(first) < listed.out.index(other)
    assert listed.out.count('"opens"') == listed.out.count('"seals and opens"') == 1
    assert secret not in listed.out + listed.err
    assert secret not in desk.redrive("config", "show").out


def test_without_a_key_nobody_starts_sealing(desk: Desk) -> None:
    (desk.folder / "redrive.toml").write_text(ON)
    for command in (("work", "shop:app", "--drain"), ("retention", "run", "--yes"), ("keys", "list")):
        ended = desk.redrive(*command)
        assert ended.code == 2, command
        assert "redrive keys new" in ended.err
    assert not key_of(desk).exists()


# The spool


def test_200_canaries_of_a_worker_whose_store_is_away_are_in_no_byte_of_the_spool(desk: Desk) -> None:
    desk.redrive("keys", "new")
    (desk.folder / "redrive.toml").write_text(AWAY + ON)
    planted = canaries(200)
    desk.send("orders", [_message(planted[at : at + 4]) for at in range(0, 200, 4)])

    spooled = desk.process("work", "shop:app", "--drain")

    assert spooled.returncode == 0, spooled.stderr
    files = list((desk.folder / ".redrive/spool").iterdir())
    lying = b"".join(path.read_bytes() for path in files)
    assert len(lying) > 50_000, "they are there"
    assert [each for each in planted if each.value.encode() in lying] == []
    bodies = b"".join(entry.message.body or b"" for entry in _replayed(desk))
    assert [each for each in planted if each.value.encode() not in bodies] == []


def _replayed(desk: Desk) -> list[Entry]:
    keys = file_keys(Settings(encryption=EncryptionSettings(enabled=True, key_path=key_of(desk))))

    async def replay() -> list[Entry]:
        spool, sink = Spool(desk.folder / ".redrive/spool", max_bytes=MEGABYTE, keys=keys), Sink()
        await spool.replay(sink.take)
        await spool.close()
        return sink.entries

    return asyncio.run(replay())


def _message(own: list[Canary]) -> Message:
    data = {f"field{number}": each.value for number, each in enumerate(own)}
    return Message.create(id=new_id(), sent_at=NOON, queue="orders", data=data)


# Archives


def test_retention_seals_verify_reads_it_and_import_brings_it_back(sealed: Desk) -> None:
    old = settled(sealed, 3)
    whole = {each: sealed.letter(each) for each in old}

    ended = sealed.redrive("retention", "run", "--yes")

    assert (ended.code, ended.out) == (0, "Purged 3 letters, archived in 1 file.\n")
    [file] = archives(sealed)
    assert file.name.endswith(".sealed")
    assert not any(each.encode() in file.read_bytes() for each in (*old, "redrive_archive", "orders"))
    verified = sealed.redrive("retention", "verify")
    kek = sealed.redrive("keys", "list", "--output", "json")
    assert (verified.code, verified.err) == (0, "")
    assert "3 letters, sealed with the key" in verified.out
    assert verified.out.strip().rpartition(" ")[2] in kek.out
    imported = sealed.redrive("import", str(file.parent), "--yes")
    assert (imported.code, imported.out) == (0, "Imported 3 letters; 0 were there already.\n")
    assert {each: sealed.letter(each).revisions for each in old} == {each: whole[each].revisions for each in old}


def test_without_the_key_everybody_says_so_and_nothing_is_changed(sealed: Desk) -> None:
    settled(sealed, 2)
    sealed.redrive("retention", "run", "--yes")
    [file] = archives(sealed)
    key_of(sealed).rename(sealed.folder / "away.key")
    later = settled(sealed, 2)
    (sealed.folder / "redrive.toml").write_text("")

    for command, code in (
        (("retention", "verify"), 2),
        (("retention", "run", "--yes"), 2),
        (("import", str(file), "--yes"), 1),
    ):
        ended = sealed.redrive(*command)
        assert ended.code == code, command
        assert "is sealed with the key" in ended.err, command
        assert "encryption.old_keys" in ended.err, command
        assert "damaged" not in ended.err
        assert "Traceback" not in ended.err
    assert [sealed.letter(each).id for each in later] == later
    assert archives(sealed) == [file]
    (sealed.folder / "redrive.toml").write_text('[encryption]\nold_keys = ["away.key"]\n')
    assert sealed.redrive("retention", "verify").code == 0
    assert sealed.redrive("import", str(file), "--yes").code == 0


def test_plain_and_sealed_archives_are_verified_and_damage_is_named(sealed: Desk) -> None:
    (sealed.folder / "redrive.toml").write_text("")
    settled(sealed, 1)
    sealed.redrive("retention", "run", "--yes")
    (sealed.folder / "redrive.toml").write_text(ON)
    settled(sealed, 2)
    sealed.redrive("retention", "run", "--yes")

    verified = sealed.redrive("retention", "verify")

    assert verified.code == 0
    assert [line.partition(": 1 ")[2] or line.partition(": 2 ")[2] for line in verified.out.splitlines()][
        1
    ] == "letter"
    [newest, oldest] = archives(sealed)
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    damaged = sealed.redrive("retention", "verify")
    assert damaged.code == 6
    assert newest.name in damaged.err
    assert oldest.name in damaged.out
    assert sealed.redrive("retention", "verify", str(oldest)).code == 0


def test_with_no_archive_there_is_nothing_to_verify(desk: Desk) -> None:
    ended = desk.redrive("retention", "verify")
    assert (ended.code, ended.out) == (0, "There are no archives.\n")


@pytest.mark.parametrize(
    "point", ["retention.before_archive", "retention.after_archive", "retention.before_purge"]
)
def test_killed_while_sealing_archives_nothing_is_lost_and_the_next_run_ends_it(sealed: Desk, point: str) -> None:
    old = settled(sealed, 4)

    assert sealed.process("retention", "run", "--yes", faults=f"{point}=kill9").returncode == -signal.SIGKILL
    assert sealed.redrive("retention", "run", "--yes").code == 0

    verified = sealed.redrive("retention", "verify")
    assert (verified.code, "4 letters, sealed" in verified.out) == (0, True)
    sealed.redrive("import", str(sealed.folder / ".redrive/archive"), "--yes")
    assert [sealed.letter(each).id for each in old] == old


# The store


def _letter(desk: Desk) -> dict[str, Any]:
    [listed] = json.loads(desk.redrive("list", "--output", "json").out)
    found: dict[str, Any] = json.loads(desk.redrive("show", listed["id"], "--output", "json").out)
    return found


def test_a_shredded_letter_is_shown_as_that_and_nothing_can_be_done_with_it(desk: Desk) -> None:
    assert desk.redrive("keys", "new").code == 0
    (desk.folder / "redrive.toml").write_text(ON)
    desk.send("orders", [Message.create(id=new_id(), sent_at=NOON, queue="orders", data={"name": "Grace"})])
    assert desk.process("work", "shop:app", "--drain").returncode == 0
    letter = _letter(desk)
    assert "Grace" in letter["message"]["body"]
    day = letter["created_at"][:10]
    named = ("--from", day, "--to", day, "--reason", "asked for by its subject")

    dry = desk.redrive("keys", "shred", "--queue", "orders", *named, "--dry-run")
    assert (dry.code, dry.out) == (0, f"Would shred 1 letter of orders, {day} to {day}. Nothing was changed.\n")
    unasked = desk.redrive("keys", "shred", "--queue", "orders", *named)
    assert (unasked.code, _letter(desk)) == (5, letter)
    done = desk.redrive("keys", "shred", "--queue", "orders", *named, "--yes")
    assert (done.code, done.out) == (0, f"Destroyed 1 data key: 1 letter of orders, {day} to {day}.\n")

    shown = _letter(desk)
    assert (shown["unreadable"], shown["message"]["body"], shown["status"]) == ("shredded", None, "PENDING")
    page = desk.redrive("show", letter["id"]).out
    assert "Payload (shredded)" in page
    assert "gone for good" in page
    revealed = desk.redrive("show", letter["id"], "--reveal", "curious")
    assert (revealed.code, "was shredded" in revealed.err) == (3, True)
    edited = desk.redrive("edit", letter["id"], "--from", "-", "--reason", "r", "--yes", stdin="{}")
    assert (edited.code, "was shredded" in edited.err) == (3, True)
    retried = desk.redrive("retry", letter["id"], "--yes", "--reason", "r")
    assert retried.code != 0
    assert "cannot be read" in retried.out + retried.err
    assert desk.redrive("resolve", letter["id"], "--yes", "--reason", "its subject wants it gone").code == 0
    assert "keys shredded" in desk.redrive("audit", "list").out


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--from", "2026-01-01", "--to", "2026-01-02"), "of which queue?"),
        (("--queue", "q", "--all-queues", "--from", "2026-01-01", "--to", "2026-01-02"), "of which queue?"),
        (("--queue", "q", "--from", "yesterday", "--to", "2026-01-02"), "'yesterday' is no day"),
        (("--queue", "q", "--from", "2026-01-03", "--to", "2026-01-02", "--yes"), "after the last"),
    ],
)
def test_days_to_shred_have_to_be_said_clearly(sealed: Desk, given: tuple[str, ...], told: str) -> None:
    ended = sealed.redrive("keys", "shred", *given, "--reason", "r")
    assert (ended.code, told in ended.err) == (2, True), ended.err


def test_letters_from_before_encryption_are_sealed_and_a_missing_key_is_found_out(desk: Desk) -> None:
    desk.record(dead())
    refused = desk.redrive("keys", "reencrypt")
    assert (refused.code, "encryption is off" in refused.err) == (2, True)
    first = desk.redrive("keys", "new").out.strip()
    (desk.folder / "redrive.toml").write_text(ON)
    assert desk.redrive("keys", "reencrypt").out == "Sealed 1 letter.\n"
    assert desk.redrive("keys", "reencrypt").out == "Sealed 0 letters.\n"
    assert desk.redrive("keys", "reencrypt", "--all").out == "Sealed 1 letter.\n"
    assert "everything that is sealed can be opened" in desk.redrive("doctor").out

    other = desk.redrive("keys", "new", "other.key").out.strip()
    (desk.folder / "redrive.toml").write_text(ON + 'key_path = "other.key"\n')
    listed = {row["id"]: row for row in json.loads(desk.redrive("keys", "list", "--output", "json").out)}
    assert (listed[first]["use"], listed[first]["wraps"], listed[other]["wraps"]) == ("missing", 2, 0)
    examined = desk.redrive("doctor")
    assert examined.code != 0
    assert f"the key {first}, which is not here, is needed for 2 of the store's data keys" in examined.out
    assert _letter(desk)["unreadable"] == "key missing"
    partly = desk.redrive("keys", "rotate")
    assert (partly.code, first in partly.err) == (4, True)

    both = 'key_path = "other.key"\nold_keys = [".redrive/encryption.key"]\n'
    (desk.folder / "redrive.toml").write_text(ON + both)
    assert desk.redrive("keys", "rotate").out == "Wrapped 2 data keys again.\n"
    (desk.folder / "redrive.toml").write_text(ON + 'key_path = "other.key"\n')
    assert _letter(desk)["unreadable"] is None


def test_retention_leaves_what_cannot_be_read_for_now(sealed: Desk) -> None:
    sealed.record(dead())
    letters = json.loads(sealed.redrive("list", "--output", "json").out)
    ids = [each["id"] for each in letters]
    assert sealed.redrive("resolve", *ids, "--yes", "--reason", "r").code == 0
    assert sealed.redrive("keys", "reencrypt").code == 0
    sealed.redrive("keys", "new", "other.key")
    (sealed.folder / "redrive.toml").write_text(ON + 'key_path = "other.key"\n')
    ended = sealed.redrive("retention", "run", "--keep", "0s", "--yes")
    assert len(json.loads(sealed.redrive("list", "--output", "json").out)) == len(ids), ended
