"""A quorum queue that does not answer, as without most of its nodes: nobody takes it for an empty one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from redrive.errors import Unreachable
from redrive.transports.inspection import Expected, ExpectedQueue
from redrive.transports.rabbitmq.inspector import RabbitInspector
from redrive.transports.rabbitmq.transport import RabbitTransport
from support.opened_rabbitmq import message, opened
from support.rabbitmq_server import PrivateRabbit, RabbitServer, vhost_of

NOBODY = "http://127.0.0.1:1"


@pytest.fixture
async def transport(rabbitmq_url: str) -> AsyncIterator[RabbitTransport]:
    async with opened(rabbitmq_url) as made:
        await made.send(message(queue="orders"))
        await made.send(message(queue="mails"))
        yield made


@pytest.fixture
def silent(
    transport: RabbitTransport,  # noqa: ARG001  it has made the queue
    rabbitmq: RabbitServer,
    rabbitmq_url: str,
) -> Iterator[str]:
    """The name of the queue."""
    if not isinstance(rabbitmq, PrivateRabbit):
        pytest.skip("silences a queue of a broker of our own")
    process = f"'{vhost_of(rabbitmq_url)}_orders'"
    assert rabbitmq.ctl("eval", f"sys:suspend({process}).").strip() == "ok"
    yield "orders"
    rabbitmq.ctl("eval", f"sys:resume({process}).")


async def test_what_is_in_it_is_not_known_and_of_others_it_is(transport: RabbitTransport, silent: str) -> None:
    with pytest.raises(Unreachable, match="'orders' does not answer") as unknown:
        await transport.depths(["mails", silent])
    assert "quorum_status" in unknown.value.remedy
    assert (await transport.depths(["mails"]))["mails"].ready == 1


async def test_doctor_and_queues_tell_it(
    transport: RabbitTransport, silent: str, rabbitmq: RabbitServer, rabbitmq_url: str
) -> None:
    names = (silent, "mails")
    expected = Expected(queues=tuple(ExpectedQueue(name=name, longest=1.0) for name in names))
    for management in (rabbitmq.management_url, NOBODY):
        inspector = RabbitInspector(rabbitmq_url, transport, management_url=management)
        found = [each for each in await inspector.findings(expected) if each.check == "state"]
        figures = await inspector.figures(names)
        await inspector.close()
        assert [(each.queue, each.what.partition(":")[0]) for each in found] == [("orders", "does not answer")]
        shown = {each.name: each.ready for each in figures.queues if not each.name.endswith("_dlq")}
        assert shown == {"orders": None, "mails": 1}
