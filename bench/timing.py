"""TH12: whether the time that a wrong token takes tells how wrong it is: nanoseconds per try, without a database.

Every kind of wrong token is tried 100,000 times, in turns that are shuffled, so that what the machine does
meanwhile hits all of them. Two kinds that are the same tell how large differences are that mean nothing; a
comparison that stops at the first difference tells how large one is that does.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, cast
from unittest.mock import patch

from bench.measuring import RUNS, Benchmark
from redrive.access import Grant, Role
from redrive.accounts import AccountStore, ApiToken, KeptToken
from redrive.clock import SystemClock
from redrive.identity.tokens import Tokens, digest, new_token

TRIES = 100_000 // RUNS
OF_EACH = 100
"""Tokens: one alone might be quicker to find than another."""
UNKNOWN, ALIKE, AGAIN, NEARLY, NONE = (
    *("unknown id", "digest wrong from its first byte on", "the same again"),
    *("digest wrong in its last byte", "no token at all"),
)


class Shelf:
    """An account store that knows a few tokens and takes no time to find them."""

    def __init__(self) -> None:
        self.kept: dict[str, KeptToken] = {}

    async def token(self, token_id: str) -> KeptToken | None:
        return self.kept.get(token_id)

    def put(self, change: Callable[[bytes], bytes]) -> str:
        """The text of a token that is wrong, as its digest is kept changed."""
        shown, now = new_token(), SystemClock().now()
        token = ApiToken(
            id=shown.id,
            name="bench",
            grants=(Grant(Role.VIEWER),),
            created_at=now,
            created_by="bench",
            expires_at=now + timedelta(days=1),
        )
        self.kept[shown.id] = KeptToken(token, change(digest(shown.secret)))
        return shown.text


def _at_first(right: bytes) -> bytes:
    return bytes(each ^ 0xFF for each in right)


def _at_last(right: bytes) -> bytes:
    return right[:-1] + bytes([right[-1] ^ 1])


def kinds(shelf: Shelf) -> dict[str, list[str]]:
    ways: dict[str, Callable[[], str]] = {
        ALIKE: lambda: shelf.put(_at_first),
        AGAIN: lambda: shelf.put(_at_first),
        NEARLY: lambda: shelf.put(_at_last),
        UNKNOWN: lambda: new_token().text,
        NONE: lambda: "rdv_" + "x" * 77,
    }
    turns = [*ways] * OF_EACH
    random.shuffle(turns)
    found: dict[str, list[str]] = {name: [] for name in ways}
    for name in turns:
        found[name].append(ways[name]())
    return found


def _tried(found: Tokens, text: str) -> int:
    asked = found.identify(text)
    started = time.perf_counter_ns()
    try:
        asked.send(None)
    except StopIteration as ended:
        took, who = time.perf_counter_ns() - started, ended.value
    else:
        raise AssertionError("it waits for something")
    assert who is None
    return took


def _round(found: Tokens, texts: Mapping[str, Sequence[str]]) -> dict[str, float]:
    turns = [(name, each) for name in texts for each in random.choices(texts[name], k=TRIES)]
    random.shuffle(turns)
    took: dict[str, list[int]] = {name: [] for name in texts}
    for name, text in turns:
        took[name].append(_tried(found, text))
    return {name: statistics.median(each) for name, each in took.items()}


def together(texts: Mapping[str, Sequence[str]], found: Tokens) -> dict[str, Callable[[], float]]:
    """One system for each kind; the first that is asked measures all of them."""
    waiting: dict[str, float] = {}

    def median_of(name: str) -> float:
        if name not in waiting:
            waiting.update(_round(found, texts))
        return waiting.pop(name)

    return {name: lambda name=name: median_of(name) for name in texts}  # type: ignore[misc]  # bound now, not later


def stops_early(one: Any, other: Any) -> bool:
    """What `compare_digest` is there to avoid."""
    return len(one) == len(other) and all(a == b for a, b in zip(one, other, strict=True))


def main() -> None:
    benchmark = Benchmark(
        "timing", "ns", (), f"median of {TRIES * RUNS:,} tries of each kind of wrong token, in shuffled turns"
    )
    shelf = Shelf()
    texts, found = kinds(shelf), Tokens(cast("AccountStore", shelf), SystemClock())
    benchmark.measure("as it is", together(texts, found))
    leaking = {name: texts[name] for name in (ALIKE, AGAIN, NEARLY)}
    with patch("redrive.identity.tokens.hmac.compare_digest", stops_early):
        benchmark.measure("stopping at the first difference", together(leaking, found))
    medians = {(row["case"], row["system"]): row["median"] for row in benchmark.rows}
    for case in dict.fromkeys(case for case, _ in medians):
        noise = abs(medians[case, ALIKE] - medians[case, AGAIN])
        tells = abs(medians[case, ALIKE] - medians[case, NEARLY])
        benchmark.facts[case] = (
            f"first byte against last byte {tells:.0f} ns, the same against itself {noise:.0f} ns"
        )
    benchmark.save()
