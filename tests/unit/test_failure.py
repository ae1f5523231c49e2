from __future__ import annotations

import asyncio
import json
import traceback
from datetime import UTC, datetime
from typing import Any, NoReturn

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import redrive.message
from redrive.execute import execute_with_retry
from redrive.failure import (
    MAX_CHAIN,
    MAX_FRAMES,
    TEXT_BUDGET,
    Failure,
    FailureKind,
    Frame,
    Host,
    Raised,
    attempts_in,
    capture,
    decode_trail,
    encode_trail,
    identity_in,
    type_name,
)
from redrive.letter_query import LetterQuery
from redrive.message import Message
from redrive.policy import FailurePolicy, Retry
from redrive.stores import open_store

NOW = datetime(2026, 2, 28, 22, 53, 42, 123456, tzinfo=UTC)
HOST = Host(name="box", process=7, app="shop", app_version="1.2", environment="test")


class OrderFailed(Exception):
    pass


def plain() -> NoReturn:
    raise OrderFailed("no stock")


def caused() -> NoReturn:
    try:
        plain()
    except OrderFailed as error:
        raise ValueError("cannot ship") from error


def during() -> NoReturn:
    try:
        plain()
    except OrderFailed:
        int("x")
    raise AssertionError


def suppressed() -> NoReturn:
    try:
        plain()
    except OrderFailed:
        raise ValueError("quiet") from None


def without_text() -> NoReturn:
    raise OrderFailed


def endless(depth: int = 0) -> int:
    return endless(depth + 1)


def raised_by(function: Any) -> BaseException:
    try:
        function()
    except BaseException as error:  # noqa: BLE001  any of them is wanted
        return error
    raise AssertionError("it should have raised")


def captured(error: BaseException, attempt: int = 1) -> Failure:
    return capture(error, attempt=attempt, at=NOW, kind=FailureKind.TRANSIENT, handler="charge", host=HOST)


def as_python_prints(error: BaseException) -> list[str]:
    """Without the lines of carets, which show nothing that the line above does not say."""
    lines = "".join(traceback.format_exception(error)).splitlines()
    return [line for line in lines if not line.strip() or set(line.strip()) - set("^~")]


@pytest.mark.parametrize("function", [plain, caused, during, suppressed, without_text])
def test_a_trace_looks_as_pythons_own(function: Any) -> None:
    error = raised_by(function)
    assert captured(error).trace.splitlines() == as_python_prints(error)


def test_an_exception_that_was_never_raised_has_a_trace_too() -> None:
    error = OrderFailed("made, not raised")
    assert captured(error).trace.splitlines() == as_python_prints(error)


def test_the_trace_names_the_exceptions_of_other_modules_in_full() -> None:
    failure = captured(raised_by(lambda: json.loads("{")))
    assert failure.type == "json.decoder.JSONDecodeError"
    assert failure.trace.splitlines()[-1].startswith("json.decoder.JSONDecodeError: Expecting")


def test_a_failure_tells_what_the_handler_raised_and_keeps_the_root_cause_first() -> None:
    failure = captured(raised_by(caused))
    assert (failure.type, failure.text) == ("ValueError", "cannot ship")
    assert [(raised.text, raised.link) for raised in failure.chain] == [("no stock", "cause"), ("cannot ship", "")]
    assert failure.frames[-1].source == 'raise ValueError("cannot ship") from error'


def test_a_failure_tells_where_and_when_it_happened() -> None:
    failure = captured(raised_by(plain), attempt=3)
    assert (failure.attempt, failure.at, failure.handler, failure.host) == (3, NOW, "charge", HOST)


def test_a_deep_recursion_is_bounded_keeps_both_ends_and_says_what_is_missing() -> None:
    error = raised_by(endless)
    failure = captured(error)
    assert len(failure.frames) == MAX_FRAMES + 1
    assert failure.frames[0].function == "raised_by"
    assert failure.frames[-1].function == "endless"
    assert "frames left out" in failure.trace
    assert failure.trace.splitlines()[-1] == as_python_prints(error)[-1]


def test_a_chain_is_bounded_and_a_chain_that_closes_on_itself_ends() -> None:
    error: Exception = OrderFailed("0")
    for number in range(1, 50):
        newer = OrderFailed(str(number))
        newer.__cause__ = error
        error = newer
    assert [raised.text for raised in captured(error).chain] == [str(n) for n in range(50 - MAX_CHAIN, 50)]
    one, two = OrderFailed("one"), OrderFailed("two")
    one.__cause__, two.__cause__ = two, one
    assert [raised.text for raised in captured(one).chain] == ["two", "one"]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Endless(Exception):
    def __str__(self) -> str:
        return str(self)


@pytest.mark.parametrize("error", [Unspeakable(), Endless()], ids=["raises", "recurses"])
def test_an_exception_whose_text_cannot_be_made_is_a_failure_like_any_other(error: Exception) -> None:
    failure = captured(error)
    assert failure.text == "<its text could not be made>"
    assert failure.type.endswith(type(error).__name__)


def test_texts_with_lone_surrogates_can_be_stored() -> None:
    failure = captured(OrderFailed("bad \ud800 byte"))
    assert failure.text == "bad \\ud800 byte"
    assert failure.trace.encode()
    assert decode_trail(encode_trail((failure,), 10_000)) == (failure,)


def test_a_huge_text_is_cut_and_says_so() -> None:
    failure = captured(OrderFailed("x" * 2**20))
    assert failure.text == "x" * TEXT_BUDGET + f"...[{2**20 - TEXT_BUDGET} characters cut]"


def test_a_type_with_an_impossible_name_is_a_failure_like_any_other() -> None:
    strange = type("Strange", (Exception,), {"__module__": "m\udfff"})
    failure = captured(strange("x"))
    assert decode_trail(encode_trail((failure,), 10_000)) == (failure,)


def test_code_with_a_file_name_that_no_file_can_have_is_a_failure_like_any_other() -> None:
    code = compile("raise ValueError('generated')", "generated", "exec").replace(co_filename="gener\x00ated\ud800")
    failure = captured(raised_by(lambda: exec(code, {})))  # noqa: S102  generated code is the case
    assert failure.frames[-1].source == ""
    assert failure.trace.endswith("ValueError: generated")


def test_the_members_of_a_group_are_told() -> None:
    async def handler() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(plain))

    failure = captured(raised_by(lambda: asyncio.run(handler())))
    assert failure.type == "ExceptionGroup"
    assert failure.chain[0].text == "no stock"
    assert "OrderFailed: no stock\n\nThe above exception is the first one of the following group:" in failure.trace


def test_the_teams_own_frames_are_told_from_pythons_and_ours() -> None:
    failure = captured(raised_by(lambda: json.loads("{")))
    own = {frame.function: frame.own for frame in failure.frames}
    assert own["raised_by"]
    assert not own["loads"]
    ours = captured(raised_by(lambda: redrive.message.read_json(b"{")))
    assert not ours.frames[-1].own
    library = captured(raised_by(lambda: pytest.fail("x")))
    assert not library.frames[-1].own


def test_generated_code_is_nobodys_own() -> None:
    code = compile("raise ValueError('x')", "<string>", "exec")
    failure = captured(raised_by(lambda: exec(code, {})))  # noqa: S102  generated code is the case
    assert not failure.frames[-1].own


def test_the_demonstration_shop_counts_as_a_teams_own() -> None:
    folder = redrive.message.__file__.rpartition("/")[0]
    code = compile("raise ValueError('x')", f"{folder}/demo/shop.py", "exec")
    failure = captured(raised_by(lambda: exec(code, {})))  # noqa: S102  a file of that name is the case
    assert failure.frames[-1].own


def test_types_are_named_as_python_names_them() -> None:
    assert type_name(TimeoutError) == "TimeoutError"
    assert type_name(json.JSONDecodeError) == "json.decoder.JSONDecodeError"
    assert type_name(type("X", (Exception,), {"__module__": "__main__"})) == "X"


def trail_of(count: int, text: str = "x" * 300) -> tuple[Failure, ...]:
    error = raised_by(caused)
    whole = captured(error)
    chain = (*whole.chain[:-1], msgspec.structs.replace(whole.chain[-1], text=text))
    return tuple(msgspec.structs.replace(whole, attempt=n, chain=chain) for n in range(1, count + 1))


def test_a_trail_within_its_budget_comes_back_whole() -> None:
    trail = trail_of(5)
    assert decode_trail(encode_trail(trail, 64 * 1024)) == trail


@pytest.mark.parametrize("budget", [600, 1500, 4000, 16_000])
def test_a_trail_over_its_budget_keeps_the_newest(budget: int) -> None:
    trail = trail_of(40)
    encoded = encode_trail(trail, budget)
    kept = decode_trail(encoded)
    assert len(encoded) <= budget
    assert kept
    assert [failure.attempt for failure in kept] == list(range(41 - len(kept), 41))
    assert kept[-1].text == trail[-1].text


def test_over_budget_the_oldest_lose_their_frames_before_any_goes() -> None:
    trail = trail_of(10, text="short")
    kept = decode_trail(encode_trail(trail, len(encode_trail(trail, 10**9)) - 1))
    assert [failure.attempt for failure in kept] == list(range(1, 11))
    assert kept[0].frames == ()
    assert kept[0].text == "short"
    assert kept[1:] == trail[1:]


def test_a_budget_that_is_too_small_for_anything_gives_an_empty_trail() -> None:
    assert decode_trail(encode_trail(trail_of(3), 10)) == ()
    assert decode_trail(encode_trail((), 10)) == ()


@pytest.mark.parametrize("budget", [0, 1, 2, 600])
def test_a_trail_is_never_longer_than_its_budget(budget: int) -> None:
    assert len(encode_trail(trail_of(3), budget)) <= budget
    assert decode_trail(encode_trail((), budget)) == ()


def test_a_copy_of_a_letter_starts_its_attempts_afresh() -> None:
    copied = encode_trail(trail_of(3), 100_000, identity="it")
    assert (len(decode_trail(copied)), identity_in(copied), attempts_in(copied)) == (3, "it", ())
    assert attempts_in(encode_trail(trail_of(3), 100_000)) == trail_of(3)


@given(st.binary(max_size=80) | st.none())
@example(b"\x91" * 5000)
def test_a_trail_that_cannot_be_read_is_an_empty_one(trail: bytes | None) -> None:
    assert isinstance(decode_trail(trail), tuple)


@given(st.integers(min_value=0), st.integers(min_value=0, max_value=255))
def test_a_trail_with_one_wrong_byte_is_read_or_empty_and_can_be_shown(place: int, byte: int) -> None:
    raw = bytearray(encode_trail(trail_of(2), 10**6))
    raw[place % len(raw)] = byte
    for failure in decode_trail(bytes(raw)):
        assert isinstance(failure.trace, str)
        assert isinstance(failure.type, str)
        assert failure.at.tzinfo is not None


def test_a_trail_that_somebody_made_up_does_not_break_whoever_reads_it() -> None:
    failure = trail_of(1)[0]
    hollow = msgspec.msgpack.encode((msgspec.structs.replace(failure, chain=()),))
    assert decode_trail(hollow) == ()
    naive = msgspec.structs.replace(failure, at=NOW.replace(tzinfo=None))
    assert decode_trail(msgspec.msgpack.encode((naive,))) == ()
    odd = msgspec.structs.replace(failure, chain=(Raised("T", "t", (Frame("f", 1, "g", "", own=True),), "odd"),))
    assert decode_trail(msgspec.msgpack.encode((odd,)))[0].trace.endswith("T: t")


async def test_the_way_from_our_code_to_the_handler_is_not_told() -> None:
    def fail(_: Message) -> None:
        raise KeyError("x")

    store = open_store("sqlite:///:memory:")
    message = Message.create(id="m-1", sent_at=NOW, queue="orders", data=1)
    await execute_with_retry(message, fail, policy=FailurePolicy(Retry(attempts=1)), store=store)
    (found,) = await store.find(LetterQuery())
    letter = await store.get(found.id)
    await store.close()
    assert letter is not None
    (frame,) = letter.failures[0].frames
    assert frame.function.endswith("fail")


def test_a_failure_of_our_own_keeps_its_frames() -> None:
    with pytest.raises(ValueError, match="not JSON") as raised:
        redrive.message.read_json(b"{")
    trace = raised.value.__traceback__
    assert trace is not None
    error = raised.value.with_traceback(trace.tb_next)
    failure = capture(error, attempt=1, at=NOW, kind=FailureKind.PERMANENT, handler="h", host=HOST)
    assert [frame.function for frame in failure.frames] == ["read_json"]
