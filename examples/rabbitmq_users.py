"""Events of users, dead-lettered through an exchange of the app. What the handler gives up and what the broker
itself dead-letters lie in the same queue, `dlq.users-events`.

redrive -c rabbitmq_users.toml setup rabbitmq_users:app
redrive -c rabbitmq_users.toml send users-events '{"user_id": 1, "name": ""}'
redrive -c rabbitmq_users.toml work rabbitmq_users:app --drain
redrive -c rabbitmq_users.toml reprocess --queue dlq.users-events
"""

from __future__ import annotations

from dataclasses import dataclass

from redrive import App, DeadLetter

app = App("meajudaai")


class BusinessRuleError(Exception):
    """It will not succeed by itself."""


@dataclass
class UserCreated:
    user_id: int
    name: str


@app.handler("users-events")
async def user_created(event: UserCreated) -> None:
    if not event.name:
        raise BusinessRuleError("a user needs a name")
    if event.name == "slow":
        raise TimeoutError("the CRM does not answer")
    print("created user", event.user_id)


@user_created.on_dead_letter
async def tell(letter: DeadLetter) -> None:
    print("dead letter after", letter.attempts, "attempts:", letter.text)
