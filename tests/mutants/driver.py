"""Mutants of the RabbitMQ driver: publishing, settling, declaring."""

from __future__ import annotations

from mutants.mutant import Mutant

_ORDERS = "contract/test_rabbitmq_orders.py"
_REGRESSIONS = "contract/test_rabbitmq_regressions.py"
_CONTRACT = "contract/test_rabbitmq_transport.py::TestQuorum"
_HERE = "transports/rabbitmq"

_PUBLISHING = (
    Mutant(
        name="no-mandatory",
        file=f"{_HERE}/wire.py",
        old='            b"\\x01",\n',
        new='            b"\\x00",\n',
        why="the broker confirms what reaches no queue, and it is gone",
        tests=(f"{_REGRESSIONS}::test_r23_a_binding_that_is_gone_is_a_refusal_for_good",),
    ),
    Mutant(
        name="no-confirm",
        file=f"{_HERE}/publisher.py",
        old="        await answer\n",
        new="        answer.add_done_callback(lambda done: done.cancelled() or done.exception())\n",
        why="a message counts as sent before the broker has it",
        tests=(f"{_REGRESSIONS}::test_r12_a_cut_between_publish_and_confirm_is_unknown_never_success",),
    ),
    Mutant(
        name="returned-taken-for-sent",
        file=f"{_HERE}/publisher.py",
        old="        if flight.returned:\n",
        new="        if flight.returned and not taken:\n",
        why="the confirm of a message that came back counts, and it is gone",
        tests=(f"{_REGRESSIONS}::test_r23_a_binding_that_is_gone_is_a_refusal_for_good",),
    ),
    Mutant(
        name="return-blamed-on-the-first",
        file=f"{_HERE}/publisher.py",
        old="            if flight.properties == properties and flight.body == body:\n",
        new="            if flight.routing_key == key:\n",
        why="of several in flight another one is refused, and the one that came back counts as sent",
        tests=(f"{_ORDERS}::test_of_many_in_flight_exactly_the_ones_that_came_back_are_refused",),
    ),
    Mutant(
        name="nack-taken-for-ack",
        file=f"{_HERE}/channel.py",
        old="            self._listener.confirmed(*wire.settled(payload), taken=False)\n",
        new="            self._listener.confirmed(*wire.settled(payload), taken=True)\n",
        why="a full queue refuses the message, and it counts as sent",
        tests=(f"{_REGRESSIONS}::test_r23_a_full_queue_is_worth_another_try",),
    ),
    Mutant(
        name="deadline-taken-for-sent",
        file=f"{_HERE}/publisher.py",
        old="""                flight.answer.set_exception(
                    Unreachable(f"RabbitMQ did not confirm message {tag} in time: it may or may not be there")
                )
""",
        new="                flight.answer.set_result(None)\n",
        why="a broker that does not answer is taken for one that has it (R12)",
        tests=(f"{_REGRESSIONS}::test_r12_a_publish_that_nobody_answers_ends_at_its_deadline_as_unknown",),
    ),
    Mutant(
        name="lost-connection-taken-for-sent",
        file=f"{_HERE}/publisher.py",
        old="                flight.answer.set_exception(_meaning(why, flight))\n",
        new="                flight.answer.set_result(None)\n",
        why="what was on its way when the connection broke counts as sent",
        tests=(f"{_REGRESSIONS}::test_r12_a_cut_between_publish_and_confirm_is_unknown_never_success",),
    ),
    Mutant(
        name="blocked-ignored",
        file=f"{_HERE}/connection.py",
        old="        self._unblocked.clear()\n",
        new="",
        why="it writes into a connection that nobody reads, without bound",
        tests=(
            f"{_ORDERS}::test_while_the_broker_blocks_publishing_nothing_is_written_and_nothing_is_called_sent",
        ),
    ),
    Mutant(
        name="header-budget-ignored",
        file=f"{_HERE}/content.py",
        old="        if len(found.properties) > HEADER_BUDGET and note.trail:\n",
        new="        if False:\n",
        why="a stack trace larger than a frame closes the connection of everybody, for ever (R14)",
        tests=(f"{_REGRESSIONS}::test_r14_a_stack_trace_over_frame_max_is_cut_to_fit_and_the_story_arrives",),
    ),
    Mutant(
        name="frame-limit-ignored",
        file=f"{_HERE}/publisher.py",
        old="        if len(properties) > fits:\n",
        new="        if False:\n",
        why="headers larger than a frame close the connection of everybody (R14)",
        tests=(f"{_REGRESSIONS}::test_r14_headers_too_large_for_a_frame_are_refused_and_the_connection_lives",),
    ),
)

_SETTLING = (
    Mutant(
        name="ack-before-confirm",
        file=f"{_HERE}/transport.py",
        old="""        with receipt.tags.moving(receipt.tag):
            native = await self._goes_round(delivery, name)
            if not native:
                note""",
        new="""        with receipt.tags.moving(receipt.tag):
            native = await self._goes_round(delivery, name)
        if not native:
            receipt.tags.ack(receipt.tag)
            await self._publish(
                name, message, self._retry_note(delivery, message, delay=delay, trail=trail), keep=True
            )
            return
        with receipt.tags.moving(receipt.tag):
            if not native:
                note""",
        why="a retry that is refused, or a death before its confirm, leaves the message nowhere",
        tests=(f"{_ORDERS}::TestARetryThatDoesNotSucceedLeavesTheDeliveryInHand",),
    ),
    Mutant(
        name="put-off-acks-first",
        file=f"{_HERE}/transport.py",
        old="""                await self._publish(place, delivery.message, note, keep=True)
                return await self.ack(delivery)
""",
        new="""                await self.ack(delivery)
                await self._publish(place, delivery.message, note, keep=True)
""",
        why="what came too early and cannot be put off is nowhere",
        tests=(f"{_ORDERS}::test_what_comes_before_its_time_is_put_off_and_never_lost",),
    ),
    Mutant(
        name="retry-leaves-the-delivery-free",
        file=f"{_HERE}/settling.py",
        old="        self._unsettled[tag] = True\n",
        new="        self._unsettled[tag] = False\n",
        why="two retries at once of one delivery publish two copies",
        tests=(f"{_ORDERS}::test_two_retries_at_once_of_one_delivery_are_one",),
    ),
    Mutant(
        name="ack-runs-over-the-unfinished",
        file=f"{_HERE}/settling.py",
        old="run = max((tag for tag in acked if tag < floor), default=0)",
        new="run = max(acked)",
        why="`multiple` acknowledges a message whose handler still runs",
        tests=(f"{_CONTRACT}::test_many_acks_at_once_remove_each_its_own",),
    ),
    Mutant(
        name="floor-rises-over-the-unfinished",
        file=f"{_HERE}/settling.py",
        old="floor = next(iter(self._unsettled), math.inf)",
        new="floor = max(self._unsettled, default=math.inf)",
        why="`multiple` acknowledges a message whose handler still runs",
        tests=(f"{_CONTRACT}::test_many_acks_at_once_remove_each_its_own",),
    ),
    Mutant(
        name="stale-generation-settled",
        file=f"{_HERE}/settling.py",
        old="return self._channel.usable and self._unsettled.get(tag) is False",
        new="return self._unsettled.get(tag) is False",
        why="a delivery of a connection that is gone seems settled; somebody else has it (R11)",
        tests=(f"{_REGRESSIONS}::test_r11_an_ack_after_a_reconnect_is_a_lost_lease_and_touches_nothing_else",),
    ),
    Mutant(
        name="stale-generation-retried",
        file=f"{_HERE}/settling.py",
        old="""        if not self.holds(tag):
            raise _lost()
        self._unsettled[tag] = True
""",
        new="        self._unsettled[tag] = True\n",
        why="a delivery that somebody else has by now is published once more (R11)",
        tests=(f"{_ORDERS}::test_a_retry_of_what_is_no_longer_ours_publishes_nothing",),
    ),
    Mutant(
        name="ack-behind-the-close",
        file=f"{_HERE}/receiver.py",
        old="            await self.tags.rest()  # the last acks must not come behind the close (R10)\n",
        new="",
        why="acknowledgements come behind the close of their channel, and all are delivered again (R10)",
        tests=(f"{_ORDERS}::test_r10_the_last_acks_have_their_moment_before_their_channel_goes",),
    ),
    Mutant(
        name="close-does-not-wait",
        file=f"{_HERE}/connection.py",
        old="                await asyncio.shield(self._closing)\n",
        new="                await asyncio.sleep(0)\n",
        why="the line is cut before the broker has read the last acknowledgements (R10)",
        tests=(f"{_REGRESSIONS}::test_r10_close_comes_behind_the_last_ack_and_waits_for_its_answer",),
    ),
    Mutant(
        name="channel-closed-twice",
        file=f"{_HERE}/channel.py",
        old="        if self._closing:  #",
        new="        if False:  #",
        why="the answer to the second close ends the next channel of that number, with all it holds",
        tests=(f"{_REGRESSIONS}::test_r10_a_channel_is_closed_once_whoever_closes_it",),
    ),
    Mutant(
        name="release-drops",
        file=f"{_HERE}/transport.py",
        old="        receipt.tags.reject(receipt.tag, requeue=True)\n",
        new="        receipt.tags.reject(receipt.tag, requeue=False)\n",
        why="a message that is given back is gone",
        tests=(f"{_CONTRACT}::test_a_released_message_is_as_it_was",),
    ),
    Mutant(
        name="unread-messages-dropped",
        file=f"{_HERE}/receiver.py",
        old="            tap.tags.reject(tag, requeue=True)\n",
        new="            tap.tags.reject(tag, requeue=False)\n",
        why="what was fetched and never handed out is gone when a worker stops",
        tests=(f"{_CONTRACT}::test_closing_the_iterator_gives_back_what_was_not_handed_out",),
    ),
    Mutant(
        name="close-drops",
        file=f"{_HERE}/settling.py",
        old="            self.reject(tag, requeue=True)\n",
        new="            self.reject(tag, requeue=False)\n",
        why="what a worker had in hand when it stopped is gone",
        tests=(f"{_CONTRACT}::test_close_gives_back_what_is_unsettled",),
    ),
    Mutant(
        name="prefetch-unlimited",
        file=f"{_HERE}/receiver.py",
        old="Basic.Qos(prefetch_count=prefetch)",
        new="Basic.Qos(prefetch_count=0)",
        why="one worker takes the whole queue, and its death delivers all of it again",
        tests=(f"{_ORDERS}::test_the_broker_hands_out_no_more_than_prefetch",),
    ),
)

_DECLARING = (
    Mutant(
        name="delay-before-its-home",
        file=f"{_HERE}/declaring.py",
        old="            return [*self._whole(home), *self._alone(name)]\n",
        new="            return self._alone(name)\n",
        why="what waits comes due before there is a queue for it, and a classic queue drops it",
        tests=(f"{_ORDERS}::test_what_waits_for_a_queue_that_nobody_has_made_yet_finds_it_made",),
    ),
    Mutant(
        name="delay-rounded-down",
        file="transports/delays.py",
        old="    return LADDER[min(bisect_left(LADDER, milliseconds), len(LADDER) - 1)]\n",
        new="    return LADDER[max(bisect_left(LADDER, milliseconds) - 1, 0)]\n",
        why="a retry comes before its time",
        tests=("unit/test_rabbitmq_topology.py::test_a_delay_is_rounded_up",),
    ),
    Mutant(
        name="too-early-is-handed-out",
        file=f"{_HERE}/transport.py",
        old="        if note.due_at is not None and note.due_at > microseconds(arrived.now):\n",
        new="        if False:\n",
        why="a delay longer than the ladder, or another clock, lets a retry come before its time",
        tests=(f"{_ORDERS}::test_what_comes_before_its_time_is_put_off_and_never_lost",),
    ),
    Mutant(
        name="dead-lettered-at-most-once",
        file=f"{_HERE}/queue_arguments.py",
        old='"x-dead-letter-strategy": "at-least-once"',
        new='"x-dead-letter-strategy": "at-most-once"',
        why="the broker drops what waits if its target cannot take it just then (SD12)",
        tests=("unit/test_rabbitmq_topology.py",),
    ),
    Mutant(
        name="limit-of-deliveries-left-on",
        file=f"{_HERE}/queue_arguments.py",
        old='        made["x-delivery-limit"] = -1\n',
        new="        pass\n",
        why="RabbitMQ 4 drops a message that was given back 20 times",
        tests=("unit/test_rabbitmq_topology.py",),
    ),
    Mutant(
        name="any-queue-goes-round",
        file=f"{_HERE}/transport.py",
        old="        return await self._known.loops(delivery.queue)\n",
        new="        return True\n",
        why="rejected from a queue of somebody else's, the message may go nowhere",
        tests=("acceptance/test_seed_s4_rabbitmq.py::test_s4_queues_that_existed_before_are_used_as_they_are",),
    ),
    Mutant(
        name="cycles-not-counted",
        file=f"{_HERE}/transport.py",
        old="noted + rejections(arrived.properties, arrived.queue) if topology.rejects else noted",
        new="noted",
        why="the native loop of S4 never ends",
        tests=(
            "acceptance/test_seed_s4_rabbitmq.py::test_s4_a_message_that_was_sent_with_a_delay_is_counted_too",
        ),
    ),
)

MUTANTS = (*_PUBLISHING, *_SETTLING, *_DECLARING)
