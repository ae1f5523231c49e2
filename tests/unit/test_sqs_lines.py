"""What is kept, and what goes first, when a FIFO queue gave more than there is room for."""

from __future__ import annotations

from datetime import UTC, datetime

from redrive.message import Message
from redrive.transports import Delivery
from redrive.transports.sqs import lines as of_groups
from redrive.transports.sqs.leases import Lease
from redrive.transports.sqs.lines import Lines
from redrive.transports.sqs.queue_facts import QueueFacts
from redrive.transports.sqs.reading import Arrived

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
LATER = 2 * 10**15


def a_lease(name: str, *, tried: bool = False, due: int = 0, receptions: int = 1) -> Lease:
    """Its group is the first letter of its name."""
    system = {"MessageGroupId": name[0], "ApproximateReceiveCount": str(receptions)}
    arrived = Arrived("orders.fifo", "arn", name, "{}", {}, system, NOON)
    queue = QueueFacts("orders.fifo", "url", {})
    lease = Lease(queue=queue, arrived=arrived, handle=name, since=0, until=60, group=name[0], due=due)
    lease.again = a_delivery(name) if tried else None
    return lease


def a_delivery(name: str) -> Delivery:
    return Delivery(
        message=Message(id=name, queue="orders.fifo", body=b"{}", sent_at=NOON),
        queue="orders.fifo",
        identity=name,
        attempt=2,
        redelivered=False,
        first_attempt_at=NOON,
        trail=b"",
        receipt=None,
    )


def names(leases: list[Lease]) -> list[str]:
    return [lease.arrived.id for lease in leases]


class Shelf(Lines):
    """All leases hold; what is given back is in `gone`."""

    def __init__(self) -> None:
        self.gone: list[Lease] = []
        super().__init__(now=lambda: 10**15, is_ours=lambda lease: not lease.lost, give_back=self.gone.extend)


def test_what_there_is_no_room_for_goes_by_whole_groups_the_last_first() -> None:
    shelf = Shelf()
    shelf.put([a_lease(name) for name in ("a1", "a2", "b1", "c1", "c2")])
    assert (shelf.ready, names(shelf.spare(2))) == (3, ["b1", "c1", "c2"])
    assert (shelf.ready, names(shelf.spare(0))) == (1, [])


def test_what_was_tried_here_is_not_given_away() -> None:
    shelf = Shelf()
    shelf.put([a_lease("a1"), a_lease("b1", tried=True)])
    assert names(shelf.spare(2)) == ["a1"]
    assert (names(shelf.rest()), shelf.ready) == ([], 1)


def test_groups_take_turns() -> None:
    shelf = Shelf()
    shelf.put([a_lease(name) for name in ("a1", "a2", "b1")])
    first = shelf.take()
    assert first is not None
    first.deleted = True
    shelf.settled(first)
    order = [first, shelf.take(), shelf.take()]
    assert names([lease for lease in order if lease]) == ["a1", "b1", "a2"]
    assert shelf.take() is None


def test_no_more_is_fetched_while_many_groups_wait() -> None:
    shelf = Shelf()
    for number in range(of_groups._MOST_WAITING):
        assert not shelf.full
        lease = a_lease("w", due=LATER)
        lease.group = str(number)
        lease.arrived.system["MessageGroupId"] = lease.group
        shelf.put([lease])
    assert (shelf.full, shelf.ready, shelf.due_in()) == (True, 0, 10**9)


def test_what_is_remembered_of_messages_that_never_come_again_is_bounded() -> None:
    shelf = Shelf()
    for number in range(of_groups._MOST_REMEMBERED + 1):
        lease = a_lease(f"a{number}", tried=True)
        shelf.put([lease])
        shelf.settled(lease)
    assert len(shelf._remembered) == of_groups._MOST_REMEMBERED
    recalled, forgotten = a_lease("a1", receptions=2), a_lease("a0", receptions=2)
    shelf.put([recalled, forgotten])
    assert (recalled.again is not None, forgotten.again) == (True, None)
