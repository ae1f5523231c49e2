"""Mutants of what the RabbitMQ driver writes with a message, and reads out of it."""

from __future__ import annotations

from mutants.mutant import Mutant

_ORDERS = "contract/test_rabbitmq_orders.py"
_REGRESSIONS = "contract/test_rabbitmq_regressions.py"
_TRAPS = "contract/test_rabbitmq_traps.py"
_CONTRACT = "contract/test_rabbitmq_transport.py::TestQuorum"
_RETRY = f"{_CONTRACT}::test_a_retry_comes_back_as_the_next_attempt"
_HERE = "transports/rabbitmq"

_WRITTEN = (
    Mutant(
        name="retry-of-theirs-transient",
        file=f"{_HERE}/content.py",
        old="    found[props.DELIVERY_MODE] = props.PERSISTENT\n",
        new="",
        why="a message of somebody else's waits for its retry in memory only",
        tests=(f"{_ORDERS}::test_a_retry_is_persistent_whatever_the_message_was",),
    ),
    Mutant(
        name="retry-of-ours-transient",
        file=f"{_HERE}/transport.py",
        old="            persistent=self._persistent or keep,\n",
        new="            persistent=self._persistent,\n",
        why="a message that is sent as transient waits for its retry in memory only",
        tests=(f"{_ORDERS}::test_a_retry_is_persistent_whatever_the_message_was",),
    ),
    Mutant(
        name="x-death-kept",
        file=f"{_HERE}/content.py",
        old='frozenset({b"CC", b"BCC", b"x-death", notes.NAME})',
        new='frozenset({b"CC", b"BCC", notes.NAME})',
        why="the broker takes a redrive for a circle and drops it",
        tests=(f"{_TRAPS}::test_trap_1_we_strip_x_death_so_it_arrives_through_the_same_queues",),
    ),
    Mutant(
        name="copies-kept",
        file=f"{_HERE}/content.py",
        old='frozenset({b"CC", b"BCC", b"x-death", notes.NAME})',
        new='frozenset({b"x-death", notes.NAME})',
        why="every retry and redrive goes to the queues of CC once more",
        tests=(f"{_ORDERS}::test_a_retry_goes_to_no_copies_a_second_time",),
    ),
    Mutant(
        name="expiration-kept",
        file=f"{_HERE}/content.py",
        old="_DROPPED = (props.EXPIRATION, props.CLUSTER_ID)\n",
        new="_DROPPED = (props.CLUSTER_ID,)\n",
        why="a retry expires while it waits, and is gone or dead",
        tests=(f"{_TRAPS}::test_the_family_is_known_by_every_name",),
    ),
    Mutant(
        name="user-kept",
        file=f"{_HERE}/content.py",
        old="    if found.get(props.USER_ID) != props.short(how.user.encode()):\n",
        new="    if False:\n",
        why="the broker closes the channel: a message of another user can never be retried",
        tests=(f"{_TRAPS}::test_the_family_is_known_by_every_name",),
    ),
    Mutant(
        name="identity-of-retries-new",
        file=f"{_HERE}/transport.py",
        old="            identity=delivery.identity,\n",
        new='            identity=f"rabbitmq:{new_id()}",\n',
        why="one message becomes several letters (G3)",
        tests=(_RETRY,),
    ),
    Mutant(
        name="attempt-not-counted",
        file=f"{_HERE}/transport.py",
        old="            attempt=delivery.attempt + 1,\n",
        new="            attempt=delivery.attempt,\n",
        why="a message that always fails is retried for ever (G6)",
        tests=(_RETRY,),
    ),
    Mutant(
        name="trail-dropped",
        file=f"{_HERE}/transport.py",
        old="""            first_attempt_at=now if first is None else microseconds(first),
            trail=trail,
""",
        new="""            first_attempt_at=now if first is None else microseconds(first),
""",
        why="the letter knows its last failure only",
        tests=(_RETRY,),
    ),
    Mutant(
        name="overlay-dropped",
        file=f"{_HERE}/transport.py",
        old="            overlay=message.overlay,\n            attempt=",
        new="            attempt=",
        why="error and number of retries are gone from a message of somebody else's",
        tests=(_RETRY, f"{_ORDERS}::test_what_failed_in_a_message_of_theirs_is_told_with_its_retry"),
    ),
)

_READ = (
    Mutant(
        name="note-not-restored",
        file=f"{_HERE}/arrival.py",
        old="    if note.came_as is not None:\n",
        new="    if False:\n",
        why="a retried message of somebody else's is not what it was: no x-death, no CC, no expiration (G2)",
        tests=(f"{_TRAPS}::test_trap_1_we_strip_x_death_so_it_arrives_through_the_same_queues",),
    ),
    Mutant(
        name="redelivered-forgotten",
        file=f"{_HERE}/wire.py",
        old="payload[at + 8] != 0, payload[at + 9 :]",
        new="False, payload[at + 9 :]",
        why="a message that kills its process is never suspected, and kills for ever (F22)",
        tests=(f"{_REGRESSIONS}::test_r11_an_ack_after_a_reconnect_is_a_lost_lease_and_touches_nothing_else",),
    ),
    Mutant(
        name="alike-taken-for-one",
        file=f"{_HERE}/transport.py",
        old='f"{alike}:{receipt.tags.generation}.{receipt.tag}"',
        new="alike",
        why="of two messages alike the second is taken for the first, and is gone",
        tests=(f"{_ORDERS}::test_two_messages_alike_that_have_no_id_are_two",),
    ),
    Mutant(
        name="later-death-taken-for-the-first",
        file=f"{_HERE}/transport.py",
        old='first_death(message) if message.headers else ""\n',
        new='""\n',
        why="a message that dies again after it was resolved is taken for known, and is gone",
        tests=(f"{_ORDERS}::test_a_message_that_dies_a_second_time_is_another_delivery",),
    ),
    Mutant(
        name="same-id-taken-for-one",
        file=f"{_HERE}/transport.py",
        old='parts.encode("utf-8", "surrogatepass") + (message.body or b"")',
        new='parts.encode("utf-8", "surrogatepass")',
        why="of two messages with one id and two bodies the second is taken for the first, and is gone",
        tests=(f"{_ORDERS}::test_two_messages_with_one_id_and_two_bodies_are_two",),
    ),
)

MUTANTS = (*_WRITTEN, *_READ)
