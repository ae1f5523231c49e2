"""Others who use the emulator, with nothing but the SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from azure.servicebus.aio import ServiceBusClient

if TYPE_CHECKING:
    from azure.servicebus import ServiceBusMessage
    from azure.servicebus.amqp import AmqpAnnotatedMessage

    from support.servicebus.emulator import ServiceBusEmulator


async def sent_by_others(
    emulator: ServiceBusEmulator, place: str, *messages: ServiceBusMessage | AmqpAnnotatedMessage
) -> None:
    """To a queue or a topic: the same by another name."""
    client = ServiceBusClient.from_connection_string(emulator.connection_string)
    async with client, client.get_queue_sender(place) as sender:
        for each in messages:
            await sender.send_messages(each)


async def dead_lettered_by_others(emulator: ServiceBusEmulator, place: str, reason: str, description: str) -> None:
    """The next message of a queue, or of `topic/Subscriptions/name`."""
    client = ServiceBusClient.from_connection_string(emulator.connection_string)
    async with client, client.get_queue_receiver(place) as receiver:
        [found] = await receiver.receive_messages(max_wait_time=30)
        await receiver.dead_letter_message(found, reason=reason, error_description=description)
