"""S2's two environments: the same handlers on RabbitMQ, which is real, and on Service Bus, which is an emulator,
with the two profiles of examples/two_brokers.toml.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from redrive.configuration import load
from redrive.errors import ConfigurationError
from support.desk import Desk
from support.servicebus.beside import EmulatorBeside

EXAMPLES = Path(__file__).parents[2] / "examples"
SETTINGS = EXAMPLES / "two_brokers.toml"
S2 = {
    "development": {
        "MaxRetryAttempts": 3,
        "InitialRetryDelaySeconds": 2,
        "BackoffMultiplier": 2.0,
        "MaxRetryDelaySeconds": 60,
        "DeadLetterTtlHours": 24,
        "EnableDetailedLogging": True,
        "EnableAdminNotifications": False,
    },
    "production": {
        "MaxRetryAttempts": 5,
        "InitialRetryDelaySeconds": 5,
        "BackoffMultiplier": 2.0,
        "MaxRetryDelaySeconds": 300,
        "DeadLetterTtlHours": 72,
        "EnableDetailedLogging": False,
        "EnableAdminNotifications": True,
    },
}
"""As S2 prints them."""


@pytest.mark.parametrize("profile", S2)
def test_s2_every_value_of_an_environment_has_its_place(profile: str) -> None:
    settings = load(config=SETTINGS, profile=profile, environ={}).settings
    assert {
        "MaxRetryAttempts": settings.retry.attempts,
        "InitialRetryDelaySeconds": settings.retry.initial_delay,
        "BackoffMultiplier": settings.retry.factor,
        "MaxRetryDelaySeconds": settings.retry.max_delay,
        "DeadLetterTtlHours": (settings.dead_letters.expire_after or 0) / 3600,
        "EnableDetailedLogging": settings.log.level == "debug",
        "EnableAdminNotifications": settings.dead_letters.notify_critical,
    } == S2[profile]


def test_s2_service_bus_has_its_values_but_for_the_one_that_loses_messages() -> None:
    broker = load(config=SETTINGS, profile="production", environ={}).settings.broker
    assert (broker.on_servicebus, broker.servicebus.lock_duration) == (True, 5 * 60)
    assert not broker.servicebus.auto_complete
    desired = {"REDRIVE_BROKER__SERVICEBUS__AUTO_COMPLETE": "true"}
    with pytest.raises(ConfigurationError, match="killed before its dead letter is written"):
        load(config=SETTINGS, profile="production", environ=desired)


@pytest.fixture(params=S2)
def shop(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    rabbitmq_url: str,
    service_bus: EmulatorBeside,
    monkeypatch: pytest.MonkeyPatch,
) -> Desk:
    """The example in one of its environments, in a hurry, on the tests' brokers."""
    for name in ("two_brokers.py", "two_brokers.toml"):
        shutil.copy(EXAMPLES / name, tmp_path)
    (tmp_path / "two_brokers.toml").rename(tmp_path / "redrive.toml")
    url = rabbitmq_url if request.param == "development" else service_bus.url
    told = {"PROFILE": request.param, "BROKER__URL": url, "RETRY__INITIAL_DELAY": "50ms", "LOG__LEVEL": "info"}
    for name, value in {**told, **service_bus.variables}.items():
        monkeypatch.setenv(f"REDRIVE_{name}", value)
    return Desk(tmp_path)


def test_s2_the_same_handlers_work_in_both_environments(shop: Desk, request: pytest.FixtureRequest) -> None:
    attempts = S2[request.node.callspec.params["shop"]]["MaxRetryAttempts"]
    made = shop.redrive("setup", "two_brokers:app", "--yes")
    assert made.code == 0, made.err
    for name in ("Ana", "", "slow"):
        sent = shop.redrive("send", "users-events", json.dumps({"user_id": 1, "name": name}))
        assert sent.code == 0, sent.err

    ended = shop.process("work", "two_brokers:app", "--drain")

    assert ended.returncode == 0, ended.stderr
    assert "created user 1" in ended.stdout
    assert "dead letter after 1 attempts: a user needs a name" in ended.stdout
    assert f"dead letter after {attempts} attempts: the CRM does not answer" in ended.stdout
    collected = shop.redrive("collect", "--once")
    assert collected.code == 0, collected.err
    letters = json.loads(shop.redrive("list", "--output", "json").out)
    assert {(each["queue"], each["status"]) for each in letters} == {("users-events", "PENDING")}
    assert len(letters) == 2
