"""Orders and shipments on Amazon SQS: a standard queue, and a FIFO queue in which each customer is a group.

What takes too long is retried in its queue; what cannot succeed is a dead letter at once. What SQS itself, Lambda
or EventBridge has set apart in `orders_dlq` is collected into the same store. Credentials come from the
environment, a profile or a role. With sqs_orders.toml:

redrive -c sqs_orders.toml setup sqs_orders:app --dry-run
redrive -c sqs_orders.toml setup sqs_orders:app
redrive -c sqs_orders.toml send orders '{"order_id": 17, "total": 0}'
redrive -c sqs_orders.toml send shipments.fifo '{"order_id": 16}' --key customer-3
redrive -c sqs_orders.toml work sqs_orders:app --drain
redrive -c sqs_orders.toml collect --once
redrive -c sqs_orders.toml list
redrive -c sqs_orders.toml retry --queue orders
"""

from __future__ import annotations

from dataclasses import dataclass

from redrive import App, DeadLetter, Message, Permanent

MUCH = 1000

app = App("shop")


@dataclass
class Order:
    order_id: int
    total: float


@dataclass
class Shipment:
    order_id: int


@app.handler("orders")
async def charge(order: Order) -> None:
    if order.total <= 0:
        raise Permanent("an order of nothing cannot be charged")
    if order.total > MUCH:
        raise TimeoutError("the bank does not answer")
    print("charged order", order.order_id)


@app.handler("shipments.fifo")
async def ship(shipment: Shipment, message: Message) -> None:
    print("shipped order", shipment.order_id, "in its turn, of", (message.key or b"nobody").decode())


@charge.on_dead_letter
async def tell(letter: DeadLetter) -> None:
    print("dead letter after", letter.attempts, "attempts:", letter.text)
