"""The checkout service on RabbitMQ, beside services in other languages: the same queues, the same JSON.

`orders_retry` and `orders_dlq` are plain queues, and each message has its last error and its retry count in its
JSON, so a Laravel worker can take over where this one stopped, and the reverse. With rabbitmq_checkout.toml:

redrive -c rabbitmq_checkout.toml send orders '{"order_id": 123, "total": 299.90}' --source checkout-service
redrive -c rabbitmq_checkout.toml work rabbitmq_checkout:app --drain
redrive -c rabbitmq_checkout.toml reprocess --queue orders_dlq
"""

from __future__ import annotations

import os

from redrive import App, DeadLetter, Message, Retry, fixed

app = App("checkout", retry=Retry(delays=fixed("100ms")))


class ProcessOrder:
    max_retries = 5

    def process(self, message: Message) -> None:
        if os.environ.get("DATABASE") != "there":
            raise ConnectionRefusedError("Connection refused")
        print("processed order", message.data["order_id"], "from", message.source)

    def on_dead_letter(self, letter: DeadLetter) -> None:
        print("in the dead-letter queue after", letter.attempts, "attempts:", letter.text)


app.register("orders", ProcessOrder)
