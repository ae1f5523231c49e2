"""What every transport must do: a driver's test subclasses `TransportContract` and says how to open one.

    class TestEmbedded(TransportContract):
        @pytest.fixture(autouse=True)
        def broker(self, tmp_path):
            self.url, self.clock = f"embedded:///{tmp_path}/broker.db", ManualClock()

        async def make_transport(self):
            return EmbeddedTransport(self.url, names=Names(), clock=self.clock, lease=self.lease)

        async def pass_time(self, seconds):
            self.clock.advance(seconds)

No test is overridden: a driver declares its `Capabilities`, and what they exclude is skipped.
"""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from redrive.errors import LeaseLost, PublishRefused, Unreachable
from redrive.testing.transport_contract_at_once import AtOnceContract
from redrive.testing.transport_contract_in_place import InPlaceContract
from redrive.testing.transport_corpus import BODIES, HEADERS, OVERLAY, TEXTS

if TYPE_CHECKING:
    from redrive.transports import Transport


class TransportContract(AtOnceContract, InPlaceContract):
    """A promise per test, in the order of the protocol's methods."""

    # send

    async def test_a_message_arrives_as_it_was_sent(self, transport: Transport) -> None:
        message = self.message(headers=(("a", 1),), key=b"k", overlay=OVERLAY)
        await transport.send(message)
        delivery = await self.take_one(transport)
        assert delivery.message == message
        assert (delivery.queue, delivery.attempt, delivery.redelivered) == (self.queue, 1, False)
        assert (delivery.first_attempt_at, delivery.trail) == (None, None)

    async def test_a_message_made_here_has_no_properties_of_a_broker(self, transport: Transport) -> None:
        await transport.send(self.message(properties=None))
        first = await self.take_one(transport)
        await transport.retry(first, first.message, delay=0, trail=b"")
        again = await self.take_one(transport)
        assert (first.message.properties, again.message.properties) == (None, None)

    async def test_a_trail_that_is_sent_along_comes_with_the_delivery(self, transport: Transport) -> None:
        await transport.send(self.message(), trail=b"\x00one\xff")
        first = await self.take_one(transport)
        assert (first.attempt, first.trail) == (1, b"\x00one\xff")
        await transport.retry(first, first.message, delay=0, trail=b"one, two")
        assert (await self.take_one(transport)).trail == b"one, two"

    async def test_a_trail_waits_with_a_delayed_message(self, transport: Transport) -> None:
        if not self.can(transport).delays:
            pytest.skip("no delays")
        await transport.send(self.message(), delay=self.delay, trail=b"trail")
        await self.pass_time(self.delay)
        assert (await self.take_one(transport)).trail == b"trail"

    @pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
    async def test_bodies_keep_their_bytes(self, transport: Transport, body: bytes | None) -> None:
        await transport.send(self.message(body=body))
        assert (await self.take_one(transport)).message.body == body

    @pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS)
    async def test_headers_keep_order_repeats_and_types(self, transport: Transport, headers: Any) -> None:
        await transport.send(self.message(headers=headers))
        found = (await self.take_one(transport)).message.headers
        assert found == headers
        assert [type(value) for _, value in found] == [type(value) for _, value in headers]

    @pytest.mark.parametrize("key", [None, b"", b"\x00\xff"], ids=["none", "empty", "bytes"])
    async def test_no_key_is_not_an_empty_key(self, transport: Transport, key: bytes | None) -> None:
        await transport.send(self.message(key=key))
        assert (await self.take_one(transport)).message.key == key

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    async def test_ids_and_sources_are_any_text(self, transport: Transport, text: str) -> None:
        await transport.send(self.message(id=text, source=text))
        message = (await self.take_one(transport)).message
        assert (message.id, message.source) == (text, text)

    async def test_no_source_is_not_an_empty_source(self, transport: Transport) -> None:
        await transport.send(self.message(source=None))
        await transport.send(self.message(source=""))
        taken = await self.handle(transport, 2)
        assert {delivery.message.source for delivery in taken} == {None, ""}

    async def test_what_was_sent_survives_the_sender(self, transport: Transport) -> None:
        if not self.can(transport).durable:
            pytest.skip("not durable")
        message = self.message()
        await transport.send(message)
        await transport.close()
        assert (await self.take_one(await self.open())).message == message

    async def test_others_see_it_when_send_returns(self, transport: Transport) -> None:
        other = await self.open_another(transport)
        await self.depths_of(transport)
        message = self.message()
        await other.send(message)
        assert (await self.take_one(transport)).message == message

    async def test_sent_twice_is_two_messages(self, transport: Transport) -> None:
        message = self.message()
        await transport.send(message)
        await transport.send(message)
        first, second = await self.handle(transport, 2)
        assert first.message == second.message == message
        assert first.identity != second.identity

    async def test_queues_do_not_mix(self, transport: Transport) -> None:
        elsewhere = self.message(queue=f"elsewhere_{self.queue}")
        await transport.send(elsewhere)
        await self.expect_only(transport)
        async with aclosing(transport.receive(elsewhere.queue, prefetch=1)) as deliveries:
            assert (await self.next(deliveries)).message == elsewhere

    async def test_a_message_sent_elsewhere_keeps_its_own_queue(self, transport: Transport) -> None:
        message, dead = self.message(), transport.names.dead_of(self.queue)
        await transport.send(message, queue=dead)
        assert set(await self.depths_of(transport)) == {dead}
        async with aclosing(transport.receive(dead, prefetch=1)) as deliveries:
            delivery = await self.next(deliveries)
        assert (delivery.queue, delivery.message) == (dead, message)

    async def test_a_header_that_cannot_travel_is_refused_for_good(self, transport: Transport) -> None:
        with pytest.raises(PublishRefused) as refused:
            await transport.send(self.message(headers=(("a", object()),)))
        assert refused.value.permanent
        assert await self.total(transport) == 0

    async def test_a_delayed_message_holds_nobody_up_and_comes_when_it_is_due(self, transport: Transport) -> None:
        if not self.can(transport).delays:
            pytest.skip("no delays")
        late = self.aside()
        await transport.send(late, delay=self.delay)
        await transport.ack(await self.expect_only(transport))
        await self.pass_time(self.delay)
        assert (await self.take_one(transport)).message == late

    async def test_a_delayed_message_is_never_early(self, transport: Transport) -> None:
        if not (self.can(transport).delays and self.exact_time):
            pytest.skip("no delays, or no exact time")
        late = self.aside()
        await transport.send(late, delay=self.delay)
        await self.pass_time(self.delay - 0.001)
        await transport.ack(await self.expect_only(transport))
        await self.pass_time(0.001)
        assert (await self.take_one(transport)).message == late

    async def test_a_shorter_delay_overtakes_a_longer_one(self, transport: Transport) -> None:
        if not self.can(transport).delays:
            pytest.skip("no delays")
        longer, shorter = self.aside(), self.aside()
        await transport.send(longer, delay=self.delay * 2)
        await transport.send(shorter, delay=self.delay)
        await self.pass_time(self.delay)
        first = await self.take_one(transport)
        await transport.ack(first)
        await self.pass_time(self.delay)
        second = await self.take_one(transport)
        assert (first.message, second.message) == (shorter, longer)

    # receive

    async def test_messages_arrive_in_the_order_they_were_sent(self, transport: Transport) -> None:
        if not self.can(transport).ordered:
            pytest.skip("no order")
        messages = [self.message() for _ in range(50)]
        for message in messages:
            await transport.send(message)
        arrived = []
        async with aclosing(transport.receive(self.queue, prefetch=7)) as deliveries:
            for _ in messages:
                delivery = await self.next(deliveries)
                arrived.append(delivery.message)
                await transport.ack(delivery)
        assert arrived == messages

    async def test_no_more_than_prefetch_are_unsettled(self, transport: Transport) -> None:
        self.need_side_by_side(transport)
        for _ in range(5):
            await transport.send(self.message())
        async with aclosing(transport.receive(self.queue, prefetch=3)) as deliveries:
            taken = [await self.next(deliveries) for _ in range(3)]
            fourth = asyncio.create_task(self.next(deliveries))
            for _ in range(3):
                await self.depths_of(transport)  # time enough for the broker to send too much
            assert not fourth.done()
            await transport.ack(taken[1])
            await fourth
            await self.expect_nothing(transport, deliveries)

    async def test_a_waiting_receiver_gets_what_is_sent_later(self, transport: Transport) -> None:
        message = self.message()
        async with aclosing(transport.receive(self.queue, prefetch=1)) as deliveries:
            waiting = asyncio.create_task(self.next(deliveries))
            await self.depths_of(transport)
            await transport.send(message)
            assert (await waiting).message == message

    async def test_a_waiting_receiver_gets_what_another_process_sends(self, transport: Transport) -> None:
        other, message = await self.open_another(transport), self.message()
        async with aclosing(transport.receive(self.queue, prefetch=1)) as deliveries:
            waiting = asyncio.create_task(self.next(deliveries))
            await self.depths_of(transport)
            await other.send(message)
            assert (await waiting).message == message

    async def test_two_receivers_never_have_the_same_message(self, transport: Transport) -> None:
        await asyncio.gather(*(transport.send(self.message()) for _ in range(100)))
        several = self.can(transport).several_processes and self.can(transport).competing
        second = await self.open() if several else transport
        taken = await asyncio.gather(self.take(transport, 50), self.take(second, 50))
        assert len({delivery.identity for share in taken for delivery in share}) == 100

    async def test_closing_the_iterator_gives_back_what_was_not_handed_out(self, transport: Transport) -> None:
        for _ in range(5):
            await transport.send(self.message())
        async with aclosing(transport.receive(self.queue, prefetch=10)) as deliveries:
            kept = await self.next(deliveries)
        rest = await self.take(transport, 4)
        assert kept.identity not in {delivery.identity for delivery in rest}
        self.expect_unmarked(transport, *rest)
        await transport.ack(kept)

    async def test_a_cancelled_receiver_loses_nothing(self, transport: Transport) -> None:
        message = self.message()
        await transport.send(message)
        for moment in range(12):  # before, while and after it fetches
            async with aclosing(transport.receive(self.queue, prefetch=5)) as deliveries:
                waiting = asyncio.create_task(anext(deliveries))
                for _ in range(moment):
                    await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.wait({waiting})
                if not waiting.cancelled():
                    await transport.release(waiting.result())
        delivery = await self.take_one(transport)
        assert delivery.message == message
        self.expect_unmarked(transport, delivery)

    # ack

    async def test_ack_removes_for_good(self, transport: Transport) -> None:
        await transport.send(self.message())
        await transport.ack(await self.take_one(transport))
        assert await self.total(transport) == 0
        if self.can(transport).durable:
            await transport.close()
            assert await self.total(await self.open()) == 0

    async def test_ack_repeated_touches_nothing_else(self, transport: Transport) -> None:
        await transport.send(self.message())
        delivery = await self.take_one(transport)
        await transport.ack(delivery)
        await transport.send(self.message())
        with contextlib.suppress(LeaseLost):
            await transport.ack(delivery)
        assert await self.total(transport) == 1

    async def test_many_acks_at_once_remove_each_its_own(self, transport: Transport) -> None:
        messages = [self.message() for _ in range(100)]
        await asyncio.gather(*(transport.send(message) for message in messages))
        taken = await self.take(transport, 100)
        await asyncio.gather(*(transport.ack(delivery) for delivery in taken[::2]))
        for delivery in taken[1::2]:
            await transport.release(delivery)
        left = {delivery.identity for delivery in await self.take(transport, 50)}
        assert left == {delivery.identity for delivery in taken[1::2]}

    # retry

    async def test_a_retry_comes_back_as_the_next_attempt(self, transport: Transport) -> None:
        message = self.message(headers=(("a", b"\xff"), ("a", None)), key=b"", body=b"\x00\xff")
        await transport.send(message)
        first = await self.take_one(transport)
        failed = message.with_error("no customer", "NoCustomer", "Traceback").with_incremented_retry()
        await transport.retry(first, failed, delay=0, trail=b"\x00trail")
        again = await self.take_one(transport)
        assert again.message == failed
        assert (again.queue, again.attempt, again.redelivered) == (self.queue, 2, False)
        assert again.trail == b"\x00trail"
        if self.can(transport).lasting_identity:
            assert again.identity == first.identity

    async def test_the_first_attempts_time_stays_and_the_trail_is_the_last_one(self, transport: Transport) -> None:
        await transport.send(self.message())
        first = await self.take_one(transport)
        await transport.retry(first, first.message, delay=0, trail=b"one")
        await self.pass_time(self.delay)
        second = await self.take_one(transport)
        assert second.first_attempt_at is not None
        await transport.retry(second, second.message, delay=0, trail=b"one, two")
        third = await self.take_one(transport)
        assert (third.attempt, third.trail) == (3, b"one, two")
        assert third.first_attempt_at == second.first_attempt_at

    async def test_a_retry_waits_in_the_retry_queue_and_is_never_early(self, transport: Transport) -> None:
        if not (self.can(transport).delays and self.can(transport).durable_retries):
            pytest.skip("no delays, or no retry queue")
        await transport.send(self.message())
        first = await self.take_one(transport)
        await transport.retry(first, first.message, delay=self.delay, trail=b"")
        found = await self.depths_of(transport)
        assert {name: depth.total for name, depth in found.items()} == {transport.names.retry_of(self.queue): 1}
        await transport.ack(await self.expect_only(transport))
        await self.pass_time(self.delay)
        assert (await self.take_one(transport)).attempt == 2

    async def test_a_retry_survives_its_process(self, transport: Transport) -> None:
        if not (self.can(transport).durable and self.can(transport).durable_retries):
            pytest.skip("not durable")
        await transport.send(self.message())
        first = await self.take_one(transport)
        await transport.retry(first, first.message, delay=0, trail=b"trail")
        await transport.close()
        again = await self.take_one(await self.open())
        assert (again.attempt, again.trail, again.redelivered) == (2, b"trail", False)

    async def test_a_retry_repeated_is_refused_and_makes_no_second_copy(self, transport: Transport) -> None:
        await transport.send(self.message())
        delivery = await self.take_one(transport)
        await transport.retry(delivery, delivery.message, delay=0, trail=b"")
        with pytest.raises(LeaseLost):
            await transport.retry(delivery, delivery.message, delay=0, trail=b"")
        with pytest.raises(LeaseLost):
            await transport.ack(delivery)
        assert await self.total(transport) == 1

    async def test_an_acked_message_cannot_be_retried(self, transport: Transport) -> None:
        await transport.send(self.message())
        delivery = await self.take_one(transport)
        await transport.ack(delivery)
        with pytest.raises(LeaseLost):
            await transport.retry(delivery, delivery.message, delay=0, trail=b"")
        assert await self.total(transport) == 0

    # release

    async def test_a_released_message_is_as_it_was(self, transport: Transport) -> None:
        await transport.send(self.message())
        first = await self.take_one(transport)
        await transport.retry(first, first.message, delay=0, trail=b"trail")
        taken = await self.take_one(transport)
        await transport.release(taken)
        again = await self.take_one(transport)
        assert again.message == taken.message
        assert (again.attempt, again.trail) == (2, b"trail")
        self.expect_unmarked(transport, again)
        assert (again.identity, again.first_attempt_at) == (taken.identity, taken.first_attempt_at)

    async def test_a_released_message_goes_to_whoever_waits(self, transport: Transport) -> None:
        await transport.send(self.message())
        taken = await self.take_one(transport)
        async with aclosing(transport.receive(self.queue, prefetch=1)) as deliveries:
            waiting = asyncio.create_task(self.next(deliveries))
            await self.depths_of(transport)
            await transport.release(taken)
            assert (await waiting).identity == taken.identity

    async def test_release_repeated_makes_no_second_copy(self, transport: Transport) -> None:
        await transport.send(self.message())
        taken = await self.take_one(transport)
        await transport.release(taken)
        with contextlib.suppress(LeaseLost):
            await transport.release(taken)
        await self.take_one(transport)
        assert await self.total(transport) == 1

    # leases

    @pytest.mark.parametrize("retries", [0, 1], ids=["fresh", "retried"])
    async def test_a_dead_process_s_message_comes_back_marked(self, transport: Transport, retries: int) -> None:
        other = await self.open_another_with_leases(transport)
        await transport.send(self.message())
        taken = await self.take_one(transport)
        for _ in range(retries):
            await transport.retry(taken, taken.message, delay=0, trail=b"trail")
            taken = await self.take_one(transport)
        await self.abandon(transport)
        await self.pass_time(self.lease + 1)
        again = await self.take_one(other)
        told = (taken.attempt, taken.trail) if self.can(transport).durable_retries else (1, None)
        assert again.message == taken.message
        assert (again.identity, again.redelivered) == (taken.identity, True)
        assert (again.attempt, again.trail) == told
        await other.ack(again)
        assert await self.total(other) == 0

    async def test_a_waiting_receiver_gets_what_a_dead_process_held(self, transport: Transport) -> None:
        other = await self.open_another_with_leases(transport)
        await transport.send(self.message())
        taken = await self.take_one(transport)
        async with aclosing(other.receive(self.queue, prefetch=1)) as deliveries:
            waiting = asyncio.create_task(self.next(deliveries))
            await self.depths_of(other)
            await self.abandon(transport)
            await self.pass_time(self.lease + 1)
            assert (await waiting).identity == taken.identity

    async def test_whoever_lost_its_lease_can_change_nothing(self, transport: Transport) -> None:
        other = await self.open_another_with_leases(transport)
        await transport.send(self.message())
        stale = await self.take_one(transport)
        await self.pass_time(self.lease + 1)
        current = await self.take_one(other)
        with pytest.raises(LeaseLost):
            await transport.ack(stale)
        with pytest.raises(LeaseLost):
            await transport.retry(stale, stale.message, delay=0, trail=b"")
        with contextlib.suppress(LeaseLost):
            await transport.release(stale)
        await self.expect_only(other)
        await other.ack(current)

    async def test_nobody_gets_a_message_while_its_lease_holds(self, transport: Transport) -> None:
        other = await self.open_another_with_leases(transport)
        await transport.send(self.message())
        taken = await self.take_one(transport)
        await self.pass_time(self.lease / 2)
        await self.expect_only(other)
        await transport.ack(taken)

    # depths

    async def test_depths_count_what_is_ready_delayed_and_leased(self, transport: Transport) -> None:
        assert await self.depths_of(transport) == {}
        for _ in range(5):
            await transport.send(self.message())
        if self.can(transport).delays:
            await transport.send(self.aside(), delay=self.delay)
        count = 2 if self.can(transport).side_by_side else 1
        among = self.can(transport).delays and not self.can(transport).delays_apart
        await self.take(transport, count)
        depth = (await self.depths_of(transport))[self.queue]
        assert (depth.ready, depth.leased) == (5 + among - count, count)
        assert await self.total(transport) == 5 + self.can(transport).delays

    # close

    async def test_close_gives_back_what_is_unsettled(self, transport: Transport) -> None:
        other = await self.open_another(transport)
        for _ in range(3):
            await transport.send(self.message())
        deliveries = transport.receive(self.queue, prefetch=10)
        taken = await self.next(deliveries)
        await transport.close()
        again = await self.handle(other, 3)
        assert taken.identity in {delivery.identity for delivery in again}
        self.expect_unmarked(transport, *again)
        await deliveries.aclose()

    async def test_close_ends_a_waiting_receiver(self, transport: Transport) -> None:
        waiting = asyncio.create_task(anext(transport.receive(self.queue, prefetch=1), None))
        await self.depths_of(transport)
        await transport.close()
        with contextlib.suppress(Unreachable):
            async with asyncio.timeout(self.patience):
                assert await waiting is None

    async def test_close_may_be_repeated_and_nothing_works_after_it(self, transport: Transport) -> None:
        await transport.send(self.message())
        await asyncio.gather(transport.close(), transport.close())
        await transport.close()
        with pytest.raises(Unreachable):
            await transport.send(self.message())

    async def test_a_transport_never_used_can_be_closed(self) -> None:
        await (await self.open()).close()
