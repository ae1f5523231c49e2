"""What traces tell of a message's way, and what they never tell (TH17)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.trace import SpanKind, StatusCode

from redrive import App, Message, Retry, control
from redrive.dead_letter import Status
from redrive.letter_query import LetterQuery
from redrive.run import RunPlan
from support.hostile import NOON
from support.patience import until
from support.traced import PRODUCER, TRACE, TRACEPARENT, Traced, facts, id_of, parent_of, trace_of
from support.workshop import Workshop, workshop

if TYPE_CHECKING:
    from pathlib import Path

    from redrive.dead_letter import DeadLetter
    from redrive.message import Headers

SENT = (("traceparent", TRACEPARENT), ("tracestate", "shop=1"))


@pytest.fixture
def traced() -> Traced:
    return Traced()


class Shop:
    """Its first charges fail."""

    def __init__(self, *, failures: int) -> None:
        self.app = App("shop", retry=Retry(2, "10ms"))
        self.failures = failures
        self.seen: list[Message] = []
        self.app.handler("orders", name="charge")(self.charge)

    async def charge(self, message: Message) -> None:
        self.seen.append(message)
        await asyncio.sleep(0)
        if len(self.seen) <= self.failures:
            raise TimeoutError("canary: no answer about Ana")


async def set_apart(shop: Workshop) -> DeadLetter:
    found: list[DeadLetter] = []

    async def there() -> bool:
        found[:] = await shop.letters(status=Status.PENDING)
        return bool(found) and await shop.empty()

    await until(there)
    return found[0]


async def sent_back_by_a_run(shop: Workshop, letter: DeadLetter) -> str:
    plan = RunPlan(selection=LetterQuery(ids=(letter.id,)))
    run = await shop.desk.create_run(await shop.desk.plan_run(plan))
    await shop.desk.carry_out(run.id)

    async def resolved() -> bool:
        return bool(await shop.letters(status=Status.RESOLVED)) and await shop.empty()

    await until(resolved)
    return run.id


async def test_the_trace_of_one_letter_from_its_first_receive_to_its_confirmed_redrive(
    traced: Traced, tmp_path: Path
) -> None:
    charging = Shop(failures=2)
    async with workshop(charging.app, tmp_path, spans=traced.spans) as shop:
        sent = await charging.app.send("orders", {"order_id": 17}, headers=SENT)
        letter = await set_apart(shop)
        run_id = await sent_back_by_a_run(shop, letter)
        await shop.stop()

    assert traced.names() == [
        *("receive orders", "process orders", "retry orders"),
        *("receive orders", "process orders", "dead_letter orders"),
        "redrive orders",
        *("receive orders", "process orders", "confirm orders"),
    ]
    [redrive] = traced.exported("redrive orders")
    story = [span for span in traced.exported() if span is not redrive]
    assert {trace_of(span) for span in story} == {TRACE}
    assert trace_of(redrive) != TRACE
    assert parent_of(redrive) is None
    [link] = redrive.links
    assert (link.context.trace_id, link.context.span_id) == (TRACE, PRODUCER)

    receives = traced.exported("receive orders")
    assert [parent_of(span) for span in receives] == [PRODUCER] * 3
    for received, *parts in (story[0:3], story[3:6], story[6:9]):
        assert {parent_of(part) for part in parts} == {id_of(received)}
    assert [facts(span)["redrive.attempt"] for span in traced.exported("process orders")] == [1, 2, 1]
    [dead], [confirmed] = traced.exported("dead_letter orders"), traced.exported("confirm orders")
    assert {facts(span)["redrive.letter_id"] for span in (dead, redrive, confirmed)} == {letter.id}
    assert facts(redrive)["redrive.run_id"] == run_id
    assert {facts(span)["messaging.message.id"] for span in traced.exported()} == {sent.id}
    # The bytes that were sent are what the letter has and what every attempt gets (G2).
    assert letter.message.headers == SENT
    assert [control.strip(message.headers) for message in charging.seen] == [SENT] * 3


async def test_spans_have_the_kinds_and_attributes_of_the_conventions(traced: Traced, tmp_path: Path) -> None:
    charging = Shop(failures=1)
    async with workshop(charging.app, tmp_path, spans=traced.spans) as shop:
        sent = await charging.app.send("orders", {"order_id": 17}, headers=SENT)
        await until(lambda: len(traced.exported("process orders")) == 2)
        await shop.stop()

    received, failed, retried, _, succeeded = traced.exported()
    kinds = [span.kind for span in (received, failed, retried)]
    assert kinds == [SpanKind.CLIENT, SpanKind.CONSUMER, SpanKind.CLIENT]
    of = {"messaging.system": "redrive", "messaging.destination.name": "orders", "messaging.message.id": sent.id}
    size = {"messaging.message.body.size": len(sent.body or b"")}
    operation = {"messaging.operation.type": "receive", "messaging.operation.name": "receive"}
    assert facts(received) == of | size | operation | {"redrive.attempt": 1, "redrive.redelivered": False}
    operation = {"messaging.operation.type": "process", "messaging.operation.name": "process"}
    ours = {"redrive.handler": "charge", "redrive.attempt": 1}
    assert facts(failed) == of | size | operation | ours | {"error.type": "TimeoutError"}
    assert facts(retried)["messaging.operation.type"] == "settle"
    assert facts(retried)["messaging.operation.name"] == "retry"
    assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, None)
    assert succeeded.status.status_code is StatusCode.UNSET
    [link] = failed.links
    assert (link.context.trace_id, link.context.span_id) == (TRACE, PRODUCER)
    assert dict(link.context.trace_state) == {"shop": "1"}


async def test_no_span_holds_a_payload_a_header_or_the_text_of_an_error(traced: Traced, tmp_path: Path) -> None:
    charging = Shop(failures=2)
    headers = (("canary", "canary"), (control.LETTER, "canary"), (control.SIGNATURE, "canary"))
    async with workshop(charging.app, tmp_path, spans=traced.spans) as shop:
        await shop.send_foreign("orders", b'{"canary": "canary"}', headers=headers, key=b"canary", source="canary")
        await sent_back_by_a_run(shop, await set_apart(shop))
        await shop.stop()

    assert {"retry orders", "dead_letter orders", "redrive orders", "confirm orders"} <= set(traced.names())
    assert [span for span in traced.exported() if span.events] == []
    assert "canary" not in "".join(span.to_json() for span in traced.exported())


async def test_what_lies_in_a_dead_letter_queue_is_sent_home_in_a_span_that_links_to_its_trace(
    traced: Traced, tmp_path: Path
) -> None:
    charging = Shop(failures=0)
    forged = (*SENT, (control.LETTER, "canary"))
    async with workshop(charging.app, tmp_path, spans=traced.spans, start=False) as shop:
        await shop.send_foreign("orders_dlq", b"{}", headers=forged)
        await shop.desk.reprocess(await shop.desk.select_dead("orders_dlq", with_store=False))

    [redrive] = traced.exported()
    assert redrive.name == "redrive orders"
    assert [link.context.trace_id for link in redrive.links] == [TRACE]
    assert "canary" not in redrive.to_json()


# However a handler ends


async def test_the_span_of_a_handler_that_takes_too_long_ends_with_its_time(
    traced: Traced, tmp_path: Path
) -> None:
    app = App("shop", retry=Retry(1, 0))

    @app.handler("orders")
    async def hang(_message: Message) -> None:
        await asyncio.Event().wait()

    async with workshop(app, tmp_path, spans=traced.spans, worker={"handler_timeout": "20ms"}) as shop:
        await app.send("orders", {})
        await set_apart(shop)
        await shop.stop()

    [process] = traced.exported("process orders")
    assert facts(process)["error.type"] == "TimeoutError"
    assert traced.names() == ["receive orders", "process orders", "dead_letter orders"]


async def test_the_span_of_a_handler_that_is_cancelled_ends_and_nothing_was_settled(
    traced: Traced, tmp_path: Path
) -> None:
    app, began = App("shop"), asyncio.Event()

    @app.handler("orders")
    async def hang(_message: Message) -> None:
        began.set()
        await asyncio.Event().wait()

    async with workshop(app, tmp_path, spans=traced.spans) as shop:
        await app.send("orders", {})
        await began.wait()
        await shop.stop()
        assert (await shop.depth("orders")).ready == 1

    assert traced.names() == ["receive orders", "process orders"]
    assert facts(traced.exported()[1])["error.type"] == "asyncio.exceptions.CancelledError"


@pytest.mark.parametrize("raised", [SystemExit, GeneratorExit, asyncio.CancelledError, StopAsyncIteration])
async def test_the_span_of_a_handler_that_raises_anything_ends_with_its_type(
    raised: type[BaseException], traced: Traced, tmp_path: Path
) -> None:
    app = App("shop", retry=Retry(1, 0))

    @app.handler("orders")
    async def fail(_message: Message) -> None:
        raise raised

    async with workshop(app, tmp_path, spans=traced.spans) as shop:
        await app.send("orders", {})
        await set_apart(shop)
        await shop.stop()

    [process] = traced.exported("process orders")
    assert str(facts(process)["error.type"]).endswith(raised.__name__)


async def test_bytes_that_do_not_decode_are_an_attempt_with_a_span_too(traced: Traced, tmp_path: Path) -> None:
    app = App("shop")

    @app.handler("orders")
    async def charge(_order: dict[str, int]) -> None:
        pass

    async with workshop(app, tmp_path, spans=traced.spans) as shop:
        await shop.send_foreign("orders", b"\xff")
        await set_apart(shop)
        await shop.stop()

    assert traced.names() == ["receive orders", "process orders", "dead_letter orders"]
    assert str(facts(traced.exported()[1])["error.type"]).endswith("Undecodable")


# Between messages


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "never waits"])
async def test_each_handler_is_in_the_trace_of_its_own_message_and_in_no_other(
    traced: Traced, tmp_path: Path, *, waits: bool
) -> None:
    app, seen = App("shop"), {}

    @app.handler("orders", concurrency=5)
    async def charge(message: Message) -> None:
        if waits:
            await asyncio.sleep(0)
        seen[message.id] = trace.get_current_span().get_span_context()
        contexts.attach(contexts.set_value("left behind", message.id))  # and never taken away

    async with workshop(app, tmp_path, spans=traced.spans, start=False) as shop:
        for number in range(1, 21):
            headers: Headers = (("traceparent", f"00-{number:032x}-{number:016x}-01"),) if number % 2 else ()
            await app.send("orders", {"number": number}, headers=headers)
        shop.start()
        await until(lambda: len(seen) == 20)
        await until(shop.empty)
        await shop.stop()

    processes = {facts(span)["messaging.message.id"]: span for span in traced.exported("process orders")}
    assert {each: (trace_of(span), id_of(span)) for each, span in processes.items()} == {
        each: (there.trace_id, there.span_id) for each, there in seen.items()
    }
    told = [there.trace_id for there in seen.values() if there.trace_id <= 20]
    assert sorted(told) == list(range(1, 21, 2))
    assert len({there.trace_id for there in seen.values()}) == 20
    assert not trace.get_current_span().get_span_context().is_valid


async def test_a_plain_function_runs_within_the_span_of_its_message(traced: Traced, tmp_path: Path) -> None:
    app, seen = App("shop"), []

    @app.handler("orders")
    def charge(_message: Message) -> None:
        seen.append(trace.get_current_span().get_span_context().span_id)

    async with workshop(app, tmp_path, spans=traced.spans) as shop:
        await app.send("orders", {})
        await until(lambda: traced.exported("process orders"))
        await shop.stop()

    assert seen == [id_of(span) for span in traced.exported("process orders")]


# What producers write there


NONSENSE: dict[str, Headers] = {
    "no text": (("traceparent", 17),),
    "nothing": (("traceparent", None),),
    "a table": (("traceparent", {"00": TRACEPARENT}), ("tracestate", [1, 2])),
    "empty": (("traceparent", ""),),
    "no hexadecimal": (("traceparent", "00-xyz"),),
    "zeros": (("traceparent", f"00-{0:032x}-{0:016x}-01"),),
    "a version that is none": (("traceparent", TRACEPARENT.replace("00-", "ff-", 1)),),
    "more than there may be": (("traceparent", f"{TRACEPARENT}-01"),),
    "capitals": (("traceparent", TRACEPARENT.upper()),),
    "very long": (("traceparent", TRACEPARENT + "-" + "0" * 1_000_000),),
    "a surrogate": (("traceparent", TRACEPARENT + "\ud800"),),
    "bytes that are no text": (("traceparent", b"\xff" * 55),),
    "digits of other scripts": (("traceparent", TRACEPARENT.replace("4", "٤")),),
}


@pytest.mark.parametrize("name", NONSENSE)
async def test_a_message_whose_trace_context_is_nonsense_begins_a_trace(
    name: str, traced: Traced, tmp_path: Path
) -> None:
    charging = Shop(failures=0)
    async with workshop(charging.app, tmp_path, spans=traced.spans) as shop:
        await charging.app.send("orders", {}, headers=NONSENSE[name])
        await until(lambda: traced.exported("process orders"))
        await shop.stop()

    received, process = traced.exported()
    assert parent_of(received) is None
    assert not process.links
    assert charging.seen[0].headers == NONSENSE[name]


STATES = ["=" * 512, "a=1," * 100, "x" * 100_000, 17, b"\xff", "a=\x00", "ключ=1"]


@pytest.mark.parametrize("state", STATES, ids=range(len(STATES)))
async def test_a_trace_goes_on_whatever_its_state_is(state: Any, traced: Traced, tmp_path: Path) -> None:
    charging = Shop(failures=0)
    headers = (("traceparent", TRACEPARENT.encode()), ("tracestate", state))  # as bytes: so Kafka has them
    async with workshop(charging.app, tmp_path, spans=traced.spans) as shop:
        await charging.app.send("orders", {}, headers=headers)
        await until(lambda: traced.exported("process orders"))
        await shop.stop()

    assert {trace_of(span) for span in traced.exported()} == {TRACE}
    assert charging.seen[0].headers == headers


async def test_ids_and_names_that_nobody_could_write_down_are_told_in_a_way_that_everybody_can(
    traced: Traced, tmp_path: Path
) -> None:
    charging = Shop(failures=0)
    message = Message(id="\ud800" + "x" * 10_000, queue="orders", body=b"{}", sent_at=NOON)
    async with workshop(charging.app, tmp_path, spans=traced.spans) as shop:
        await shop.transport.send(message)
        await until(lambda: traced.exported("process orders"))
        await shop.stop()

    told = str(facts(traced.exported()[0])["messaging.message.id"])
    assert told.startswith("\\ud800xx")
    assert len(told.encode()) < 300


class Broken(SpanProcessor):
    """An app's own, and it fails at everything."""

    def on_start(self, *_args: Any, **_kwargs: Any) -> None:
        raise RuntimeError("canary")

    def on_end(self, *_args: Any) -> None:
        raise RuntimeError("canary")


async def test_messages_are_handled_though_a_processor_of_spans_fails(traced: Traced, tmp_path: Path) -> None:
    traced.provider.add_span_processor(Broken())
    charging = Shop(failures=2)
    async with workshop(charging.app, tmp_path, spans=traced.spans) as shop:
        await charging.app.send("orders", {})
        await sent_back_by_a_run(shop, await set_apart(shop))
        await shop.stop()

    assert len(charging.seen) == 3
