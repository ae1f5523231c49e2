"""Handler, queue's settings, app, general settings: nearer wins."""

from __future__ import annotations

from typing import Any

import pytest

from redrive.app import App
from redrive.errors import ConfigurationError
from redrive.failure import FailureKind
from redrive.ordering import OrderedBy
from redrive.planning import plan
from redrive.policy import Retry
from redrive.schedule import fixed
from redrive.settings import Settings


def app_with(*, handler: dict[str, Any] | None = None, **app: Any) -> App:
    made = App("test", **app)

    @made.handler("orders", **(handler or {}))
    async def handle(body: bytes) -> None: ...

    return made


def kind_of(error: Exception, app: App, **settings: Any) -> FailureKind:
    return plan(app, "orders", Settings.model_validate(settings)).policy.classify(error)


def test_a_kind_is_taken_from_the_settings_by_name() -> None:
    assert kind_of(KeyError("x"), app_with(), kinds={"permanent": ["LookupError"]}) is FailureKind.PERMANENT
    assert kind_of(KeyError("x"), app_with()) is FailureKind.TRANSIENT


def test_the_app_in_code_is_asked_before_the_general_settings() -> None:
    app = app_with(kinds={KeyError: "transient"})
    assert kind_of(KeyError("x"), app, kinds={"critical": ["KeyError"]}) is FailureKind.TRANSIENT


def test_the_queues_settings_are_asked_before_the_app() -> None:
    app = app_with(kinds={KeyError: "transient"})
    queues = {"orders": {"kinds": {"permanent": ["KeyError"]}}}
    assert kind_of(KeyError("x"), app, queues=queues) is FailureKind.PERMANENT


def test_the_handler_is_asked_first() -> None:
    app = app_with(handler={"kinds": {KeyError: "critical"}}, kinds={KeyError: "transient"})
    queues = {"orders": {"kinds": {"permanent": ["KeyError"]}}}
    assert kind_of(KeyError("x"), app, queues=queues) is FailureKind.CRITICAL


def attempts_of(app: App, **settings: Any) -> int:
    return plan(app, "orders", Settings.model_validate(settings)).policy.retry.attempts


def test_the_retry_comes_from_the_nearest_place_that_says_something() -> None:
    general: dict[str, Any] = {"retry": {"attempts": 2}}
    queue: dict[str, Any] = general | {"queues": {"orders": {"retry": {"attempts": 3}}}}
    assert attempts_of(app_with(), **general) == 2
    assert attempts_of(app_with(retry=Retry(4, fixed("1s"))), **general) == 4
    assert attempts_of(app_with(retry=Retry(4, fixed("1s"))), **queue) == 3
    assert attempts_of(app_with(handler={"retry": Retry(6)}), **queue) == 6


def test_a_timeout_of_zero_is_none_and_the_handlers_own_wins() -> None:
    settings = Settings.model_validate({"worker": {"handler_timeout": 0}})
    assert plan(app_with(), "orders", settings).timeout is None
    assert plan(app_with(handler={"timeout": "2s"}), "orders", settings).timeout == 2.0


RABBIT = {"url": "amqp://host", "rabbitmq": {"topology": "ttl-loop"}}


def test_with_a_ttl_loop_the_loop_of_the_queue_is_its_retry() -> None:
    own = {"queues": {"orders": {"loop": {"ttl": "3m", "cycles": 10}, "retry": {"attempts": 2}}}}
    for settings, attempts, delay in (({}, 4, 600), (own, 11, 180)):
        chosen = plan(app_with(), "orders", Settings.model_validate({"broker": RABBIT, **settings})).policy.retry
        assert (chosen.attempts, chosen.delays) == (attempts, fixed(delay))


def test_a_handler_may_say_otherwise_than_its_loop() -> None:
    settings = Settings.model_validate({"broker": RABBIT})
    said = plan(app_with(handler={"retry": Retry(6, fixed("5s"))}), "orders", settings).policy.retry
    assert (said.attempts, said.delays) == (6, fixed(5))


def test_loops_are_for_rabbitmq_alone() -> None:
    assert attempts_of(app_with(), broker=RABBIT | {"url": "embedded:///x.db"}) == 5


def test_prefetch_is_the_queues_or_the_general_one_or_unset() -> None:
    settings = {"worker": {"prefetch": 50}, "queues": {"orders": {"prefetch": 500}}}
    assert plan(app_with(), "orders", Settings()).options.prefetch is None
    assert plan(app_with(), "orders", Settings.model_validate(settings)).options.prefetch == 500
    assert plan(app_with(), "mails", Settings.model_validate(settings)).options.prefetch == 50


def ordered(**queue: Any) -> OrderedBy | None:
    retry = {"attempts": 3, "delays": ["1s"]}
    settings = {"retry": retry, "queues": {"orders": {"ordered_by": "key", **queue}}}
    return plan(app_with(), "orders", Settings.model_validate(settings)).ordered_by


def test_order_is_the_queues_own_to_ask_for() -> None:
    assert ordered() == OrderedBy()
    assert ordered(ordered_by="header:tenant") == OrderedBy("tenant")
    assert plan(app_with(), "orders", Settings()).ordered_by is None


def test_an_ordered_queue_needs_the_store_and_retries_that_can_be_waited_for() -> None:
    with pytest.raises(ConfigurationError, match="its dead letters go to 'both'") as refused:
        ordered(dead_letters={"sink": "both"})
    assert 'sink = "store"' in (refused.value.remedy or "")
    with pytest.raises(ConfigurationError, match="wait for up to 3600 s"):
        ordered(retry={"delays": ["1s", "1h"]})
    assert ordered(retry={"attempts": 2, "delays": ["1s", "1h"]})  # the hour is never waited for
