"""Handlers as classes, registered by queue: the shape that teams know from Laravel's queue handlers.

redrive send notifications '{"order_id": 7}'
redrive work class_handlers:app --drain
"""

from __future__ import annotations

from redrive import App, DeadLetter, Message, Retry, fixed

app = App("notifications", retry=Retry(delays=fixed("100ms")))


class SendOrderNotification:
    max_retries = 3

    def process(self, message: Message) -> None:
        raise ConnectionError(f"mail server away for order {message.data['order_id']}")

    def on_dead_letter(self, letter: DeadLetter) -> None:
        print("gave up after", letter.attempts, "attempts:", letter.text)


app.register("notifications", SendOrderNotification)
