"""S2's unit and integration tests, what it keeps of a failed message, and its operations, on the real worker."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

import pytest
import structlog

from redrive import App, FailurePolicy, Message, Retry, execute_with_retry, exponential
from redrive.clock import new_id
from redrive.dead_letter import DeadLetter, Status
from redrive.letter_query import LetterQuery
from redrive.redriving import Result
from redrive.settings import Settings
from redrive.stores import open_store
from redrive.testing import Bench, InstantClock, bench_for

S2_RETRY = Retry(5, exponential("5s", factor=2, at_most="300s", jitter="none"))
"""S2's production profile."""


@dataclass
class UserCreated:
    user_id: int
    name: str


class ArgumentException(ValueError):
    """.NET's, and S2's first permanent exception."""


class HttpRequestException(ConnectionError):
    """.NET's, and one of S2's transient exceptions."""


def users_app(error: Exception | None = None) -> App:
    app = App("MeAjudaAi", version="1.4.0", retry=S2_RETRY)

    @app.handler("users-events", name="UserCreatedEventHandler")
    def handle(_event: UserCreated) -> None:
        if error is not None:
            raise error

    return app


async def dead_lettered(bench: Bench, count: int = 1) -> list[Message]:
    sent = [await bench.send("users-events", {"user_id": number, "name": "Ana"}) for number in range(count)]
    await bench.run_until_quiet()
    bench.assert_dead_lettered("users-events", count=count)
    return sent


# Testes Unitários


async def test_s2_send_to_dead_letter_with_permanent_exception_sends_immediately_and_logs_the_line() -> None:
    with structlog.testing.capture_logs() as logs:
        async with bench_for(users_app(ArgumentException("Invalid argument"))) as bench:
            [message] = await dead_lettered(bench)

    [line] = [entry for entry in logs if entry["event"] == "message sent to dead letter queue"]
    assert line["log_level"] == "warning"
    assert line["message_id"] == message.id
    assert line["message_type"] == "UserCreated"
    assert line["queue"] == "users-events"
    assert line["attempts"] == 1
    assert line["reason"] == "ArgumentException in test_seed_s2.py:users_app.<locals>.handle"


@pytest.mark.parametrize(
    ("error", "attempt", "expected"),
    [
        (TimeoutError("Test message"), 1, True),
        (ValueError("Test message"), 1, False),
        (TimeoutError("Test"), 5, False),
    ],
)
def test_s2_should_retry_with_different_exceptions_returns_expected_result(
    error: Exception, attempt: int, *, expected: bool
) -> None:
    assert FailurePolicy(S2_RETRY).should_retry(error, attempt) is expected


@pytest.mark.parametrize(("attempt", "delay"), [(1, 5), (2, 10), (3, 20), (7, 300), (40, 300)])
def test_s2_calculate_retry_delay(attempt: int, delay: float) -> None:
    assert FailurePolicy(S2_RETRY).calculate_retry_delay(attempt) == delay


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (ArgumentException("no name"), 1),
        (TypeError("not a user"), 1),
        (HttpRequestException("503"), 5),
        (TimeoutError("database"), 5),
        (MemoryError("out of memory"), 1),
    ],
)
async def test_s2_permanent_and_critical_failures_are_tried_once_transient_ones_five_times(
    error: Exception, attempts: int
) -> None:
    async with bench_for(users_app(error)) as bench:
        await dead_lettered(bench)

        letter = bench.assert_dead_lettered("users-events", attempts=attempts)
        assert len(letter.failures) == attempts


async def test_s2_delays_are_5_10_20_and_40_seconds() -> None:
    async with bench_for(users_app(TimeoutError("database"))) as bench:
        await dead_lettered(bench)

        times = [failure.at for failure in bench.letters[0].failures]
        waits = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
        assert waits == [5, 10, 20, 40]


# Testes de Integração


async def test_s2_message_retry_middleware_with_transient_failure_retries_and_succeeds_in_the_worker() -> None:
    app, calls = App("s2", retry=S2_RETRY), []

    @app.handler("test-queue")
    async def handle(message: Message) -> None:
        calls.append(message.retry_count)
        if len(calls) < 3:
            raise TimeoutError("Temporary failure")

    async with bench_for(app) as bench:
        await bench.send("test-queue", {})
        await bench.run_until_quiet()

        assert calls == [0, 1, 2]
        bench.assert_nothing_dead_lettered()


async def test_s2_execute_with_retry_with_transient_failure_retries_and_succeeds() -> None:
    calls, clock = [], InstantClock()
    message = Message.create(id=new_id(), sent_at=clock.now(), queue="test-queue", data={})

    async def handler(given: Message) -> None:
        calls.append(given.id)
        if len(calls) < 3:
            raise TimeoutError("Temporary failure")

    success = await execute_with_retry(message, handler, policy=FailurePolicy(S2_RETRY), clock=clock)

    assert success is True
    assert calls == [message.id] * 3
    assert clock.monotonic() == 15


async def test_s2_execute_with_retry_that_fails_for_good_gives_false_and_leaves_a_letter() -> None:
    clock = InstantClock()
    store = open_store("sqlite:///:memory:", clock=clock)
    message = Message.create(id=new_id(), sent_at=clock.now(), queue="test-queue", data={})

    def handler(_message: Message) -> None:
        raise ArgumentException("Invalid argument")

    success = await execute_with_retry(message, handler, policy=FailurePolicy(S2_RETRY), store=store, clock=clock)

    assert success is False
    [letter] = await store.find(LetterQuery(queue="test-queue"))
    assert (letter.message.id, letter.attempts, letter.text) == (message.id, 1, "Invalid argument")
    await store.close()


# Informações Capturadas


async def test_s2_every_field_of_failed_message_info_is_in_the_letter() -> None:
    settings = Settings.model_validate({"app": {"environment": "production"}})
    async with bench_for(users_app(HttpRequestException("503 from CRM")), settings=settings) as bench:
        [message] = await dead_lettered(bench)
        [letter] = bench.letters

    assert letter.message.id == message.id  # MessageId
    assert letter.message.body == message.body  # OriginalMessage
    assert json.loads(letter.message.payload or b"") == {"user_id": 0, "name": "Ana"}
    assert letter.queue == "users-events"  # SourceQueue
    assert letter.first_attempt_at == letter.failures[0].at  # FirstAttemptAt
    assert letter.last_attempt_at == letter.first_attempt_at + timedelta(seconds=75)  # LastAttemptAt
    assert letter.attempts == 5  # AttemptCount
    assert letter.text == "503 from CRM"  # LastFailureReason
    assert [failure.attempt for failure in letter.failures] == [1, 2, 3, 4, 5]  # FailureHistory
    for failure in letter.failures:
        assert failure.handler == letter.handler == "UserCreatedEventHandler"
        assert failure.type.endswith("HttpRequestException")
        assert "503 from CRM" in failure.trace
        environment = failure.host  # EnvironmentMetadata
        assert environment.name
        assert environment.process > 0
        assert (environment.app, environment.app_version) == ("MeAjudaAi", "1.4.0")
        assert environment.environment == "production"


async def test_s2_message_type_is_what_the_handler_asked_for() -> None:
    assert users_app().handlers["users-events"].payload_type == "UserCreated"


async def test_s2_statistics_count_by_queue_by_exception_type_and_failure_rate_by_handler() -> None:
    app = users_app(ArgumentException("Invalid argument"))

    @app.handler("payments", name="PaymentHandler", retry=Retry(2, "5s"))
    def pay(payment: dict[str, int]) -> None:
        if payment["amount"] > 100:
            raise TimeoutError("bank")

    async with bench_for(app) as bench:
        await dead_lettered(bench, 3)
        for amount in (50, 60, 200):
            await bench.send("payments", {"amount": amount})
        await bench.run_until_quiet()

        statistics = await bench.desk.statistics()

    assert statistics.total == 4
    assert statistics.by_queue == {"users-events": 3, "payments": 1}
    by_type = {name.rpartition(".")[2]: count for name, count in statistics.by_type.items()}
    assert by_type == {"ArgumentException": 3, "TimeoutError": 1}
    rates = {rate.handler: (rate.succeeded, rate.failed, rate.rate) for rate in statistics.failure_rates}
    assert rates == {"UserCreatedEventHandler": (0, 3, 1.0), "PaymentHandler": (2, 2, 0.5)}


# Operações de DLQ


async def test_s2_list_dead_letter_messages_at_most_so_many_newest_first() -> None:
    async with bench_for(users_app(ArgumentException("Invalid argument"))) as bench:
        await dead_lettered(bench, 12)

        listed = await bench.desk.letters(LetterQuery(queue="users-events", limit=10))

        assert len(listed) == 10
        assert all(letter.text == "Invalid argument" for letter in listed)
        assert [letter.id for letter in listed] == [letter.id for letter in bench.letters[:10]]


async def test_s2_reprocess_dead_letter_message() -> None:
    async with bench_for(users_app(ArgumentException("Invalid argument"))) as bench:
        [message] = await dead_lettered(bench)

        [outcome] = await bench.desk.retry([bench.letters[0].id])

        assert outcome.result is Result.SENT
        depths = await bench.transport.depths()
        assert depths["users-events"].ready == 1
        [letter] = await bench.look()
        assert (letter.status, letter.message.id) == (Status.REDRIVEN, message.id)


async def test_s2_purge_dead_letter_message_only_after_somebody_has_decided_about_it() -> None:
    async with bench_for(users_app(ArgumentException("Invalid argument"))) as bench:
        await dead_lettered(bench)
        letter_id = bench.letters[0].id

        too_early = await bench.desk.purge([letter_id], "analysed")
        await bench.desk.discard([letter_id], "a test user")
        purged = await bench.desk.purge([letter_id], "analysed")

        assert (too_early.done, too_early.left) == ((), {letter_id: Status.PENDING})
        assert (purged.done, purged.left) == ((letter_id,), {})
        assert await bench.look() == ()


async def test_s2_critical_failures_are_told_to_a_person_unless_the_profile_says_no() -> None:
    told: list[str] = []

    async def run(*, notify: bool) -> list[str]:
        app = users_app(MemoryError("out of memory"))

        @app.on_critical
        def tell(letter: DeadLetter) -> None:
            told.append(letter.type)

        settings = Settings.model_validate({"dead_letters": {"notify_critical": notify}})
        with structlog.testing.capture_logs() as logs:
            async with bench_for(app, settings=settings) as bench:
                await dead_lettered(bench)
        return [entry["log_level"] for entry in logs if entry["event"] == "message sent to dead letter queue"]

    assert await run(notify=False) == ["warning"]
    assert told == []
    assert await run(notify=True) == ["critical"]
    assert told == ["MemoryError"]
