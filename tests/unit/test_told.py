"""A failure as it is stored: the same when it is read again, whatever it holds, and never too big."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest

from redrive.failure import Failure, Frame, Raised
from redrive.stores.told import BUDGET, retell, tell
from redrive.testing.letters import NOON, a_failure


def of(**given: object) -> Failure:
    return msgspec.structs.replace(a_failure(), **given)


@pytest.mark.parametrize(
    "failure",
    [
        a_failure(),
        of(attempt=2**63),
        of(handler='\x00"\\\u2028\U0001f600'),
        of(chain=(Raised("E", "", (), ""),)),
        of(at=datetime.min.replace(tzinfo=UTC)),
        of(at=datetime.max.replace(tzinfo=UTC)),
        of(at=NOON.astimezone(timezone(timedelta(minutes=19, seconds=32)))),
    ],
)
def test_what_is_told_is_read_again_as_it_was(failure: Failure) -> None:
    assert retell(tell(failure)) == failure


def test_what_the_first_version_wrote_is_still_read() -> None:
    assert retell(msgspec.msgpack.encode(a_failure())) == a_failure()


def test_it_is_json_for_whoever_reads_the_table() -> None:
    assert json.loads(tell(a_failure()))["chain"][-1][:2] == ["shop.errors.NoCustomer", "order 17 has no customer"]


def test_a_lone_surrogate_is_escaped() -> None:
    assert retell(tell(of(handler="\ud800"))).handler == "\\ud800"


def test_beyond_the_budget_the_last_exception_stays_without_its_frames() -> None:
    frames = tuple(Frame("f" * 1000, 1, "g", "s", own=True) for _ in range(100))
    huge = of(chain=tuple(Raised("E", "\x00" * 8000, frames, "cause") for _ in range(5)))

    told = tell(huge)

    assert len(told) < BUDGET
    assert [(raised.type, raised.frames) for raised in retell(told).chain] == [("E", ())]
