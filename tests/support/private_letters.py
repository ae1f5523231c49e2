"""Letters full of what is masked, and stores that keep it out of their plain columns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from redrive.dead_letter import Entry
from redrive.fingerprint import fingerprint
from redrive.message import Message
from redrive.privacy.maskers import Maskers
from redrive.stores import Store, open_store
from redrive.stores.private import Privacy
from redrive.testing.letters import NOON, a_failure, an_entry
from support import privacy_corpus

KINDS = ("CPF", "card", "e-mail", "password", "token")


@asynccontextmanager
async def private_store(url: str, maskers: Maskers | None = None, secret: bytes = b"") -> AsyncIterator[Store]:
    store = open_store(url, privacy=Privacy(maskers or Maskers(), secret))
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def plain_store(url: str) -> AsyncIterator[Store]:
    """As an older Redrive has it."""
    store = open_store(url)
    try:
        yield store
    finally:
        await store.close()


class Canary(NamedTuple):
    kind: str
    value: str

    @property
    def field(self) -> str:
        """A name under which a value of that kind is hidden, whether or not it is known by itself."""
        return {"CPF": "note", "card": "note", "e-mail": "contact"}.get(self.kind, f"the_{self.kind}")

    @property
    def in_a_text(self) -> str:
        return f"refused: {self.field}={self.value} is wrong"


def canaries(number: int, seed: str = "canaries") -> list[Canary]:
    """Different ones, of every kind equally many."""
    dice = privacy_corpus.seeded(seed)
    found: dict[str, Canary] = {}
    while len(found) < number:
        kind = KINDS[len(found) % len(KINDS)]
        value = _made(kind, dice)
        found[value] = Canary(kind, value)
    return list(found.values())


def _made(kind: str, dice: Random) -> str:
    if kind == "CPF":
        return privacy_corpus.cpfs(dice)
    if kind == "card":
        return privacy_corpus.cards(dice)
    if kind == "e-mail":
        return f"ana.{dice.randrange(10**6)}@canary{dice.randrange(10**6)}.example"
    return "".join(dice.choices("abcdefghjkmnpqrstuvwxyzABCDEFGHJKMNPQRSTUVWXYZ", k=14))


def letter_about(in_data: Canary, in_header: Canary, in_error: Canary, *, identity: str | None = None) -> Entry:
    message = Message.create(
        id=identity or in_data.value.encode().hex(),
        sent_at=NOON,
        queue="orders",
        data={"customer": {in_data.field: in_data.value}, "list": [[{in_data.field: in_data.value}]]},
        headers=((f"x-{in_header.field}", in_header.value),),
    )
    told = a_failure(text=in_error.in_a_text)
    entry = an_entry(identity, message=message, failures=(told,))
    return replace(entry, fingerprint=fingerprint(told, queue="orders"))
