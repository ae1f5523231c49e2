"""The same handlers on RabbitMQ where people develop, and on Azure Service Bus in production: the settings differ.

redrive -c two_brokers.toml --profile development setup two_brokers:app
redrive -c two_brokers.toml --profile development send users-events '{"user_id": 1, "name": ""}'
redrive -c two_brokers.toml --profile development work two_brokers:app --drain

redrive -c two_brokers.toml --profile production setup two_brokers:app --dry-run
redrive -c two_brokers.toml --profile production work two_brokers:app
redrive -c two_brokers.toml --profile production collect
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
