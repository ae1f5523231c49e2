"""Two hundred causes of failure in a made-up back office: what the letters of a benchmark died of.

Each cause is one place in the code of one handler, so that each is one group. Some texts hold a value that varies
(S1's "CPF inválido: ..."), as texts do.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import accumulate

from redrive.dead_letter import Fingerprint
from redrive.failure import Failure, FailureKind, Frame, Host, Raised
from redrive.fingerprint import fingerprint

CAUSES = 200
TRACE_BYTES = 2048

QUEUES = (
    "employee-create",
    "employee-update",
    "employee-delete",
    "payroll-close",
    "orders",
    "payments",
    "invoices",
    "shipments",
    "refunds",
    "customers",
    "inventory",
    "notifications",
)

CPF_PLACES = (3, 14, 39)
"""How frequent the three causes with "CPF inválido" are, among all causes: 0 is the most frequent."""

HOST = Host(name="worker-1", process=4711, app="back-office", app_version="1.2.3", environment="bench")


def cpf(dice: random.Random) -> str:
    digits = f"{dice.randrange(10**11):011d}"
    return f"{digits[:3]}.{digits[3:6]}.{digits[6:9]}-{digits[9:]}"


def _always(text: str) -> Callable[[random.Random], str]:
    return lambda _: text


ERRORS: tuple[tuple[str, FailureKind, Callable[[random.Random], str]], ...] = (
    ("office.errors.InvalidAge", FailureKind.PERMANENT, _always("Idade menor que 16 anos")),
    ("TimeoutError", FailureKind.TRANSIENT, _always("timed out while waiting for the gateway")),
    ("ConnectionRefusedError", FailureKind.TRANSIENT, _always("[Errno 111] Connection refused")),
    ("KeyError", FailureKind.PERMANENT, _always("'customer'")),
    ("office.errors.Inconsistent", FailureKind.PERMANENT, _always("Data de admissão posterior à demissão")),
    ("office.errors.CardDeclined", FailureKind.PERMANENT, _always("card declined by its issuer")),
    ("office.errors.RateLimited", FailureKind.TRANSIENT, _always("429 Too Many Requests")),
    ("office.errors.SchemaMismatch", FailureKind.PERMANENT, _always("field items is required")),
    ("PermissionError", FailureKind.CRITICAL, _always("the account may not write to the ledger")),
    ("database.Deadlock", FailureKind.TRANSIENT, _always("deadlock detected")),
    ("database.Duplicate", FailureKind.PERMANENT, _always("duplicate key violates unique constraint uq_number")),
    ("ZeroDivisionError", FailureKind.PERMANENT, _always("division by zero")),
    (
        "json.JSONDecodeError",
        FailureKind.PERMANENT,
        lambda dice: f"Expecting value: line 1 column {dice.randrange(2, 900)} (char {dice.randrange(900)})",
    ),
    (
        "http.ServerError",
        FailureKind.TRANSIENT,
        lambda dice: f"503 Service Unavailable for /accounts/{dice.randrange(10**7)}",
    ),
    (
        "office.errors.NoFunds",
        FailureKind.PERMANENT,
        lambda dice: f"insufficient funds: {dice.randrange(10, 10**5)}.{dice.randrange(100):02d} missing",
    ),
    (
        "office.errors.NoStock",
        FailureKind.PERMANENT,
        lambda dice: f"no stock left of SKU-{dice.randrange(10**6)}",
    ),
    (
        "office.errors.UnknownTax",
        FailureKind.PERMANENT,
        lambda dice: f"no tax rate for code {dice.randrange(1000, 9999)}",
    ),
)

_LIBRARY = (
    ("framework/consumer.py", 214, "Consumer._deliver", "outcome = await self._chain(delivery)"),
    ("framework/middleware/tracing.py", 88, "Tracing.__call__", "with self._tracer.start_span(delivery.queue):"),
    ("framework/middleware/timing.py", 31, "Timing.__call__", "return await asyncio.wait_for(call, self._limit)"),
    ("framework/binding.py", 147, "Binding.bind", "arguments[name] = self._decoders[name].decode(payload)"),
    ("database/session.py", 402, "Session.flush", "self._connection.execute(statement, parameters)"),
    ("database/pool.py", 96, "Pool.acquire", "connection = await self._queue.get()"),
    ("http/client.py", 1290, "Client.request", "response = await self._transport.handle(request)"),
    ("http/transport.py", 233, "Transport.handle", "raise map_error(error) from error"),
    ("office_rules/engine.py", 71, "Engine.apply", "for rule in self._rules_of(event.kind):"),
    ("office_rules/rule.py", 55, "Rule.check", "problems.extend(self._predicate(record, self._context))"),
    ("serde/decode.py", 319, "Decoder._object", "return self._types[tag](**self._fields(node))"),
    ("cache/lookup.py", 18, "Lookup.__missing__", "value = self._load(key)"),
)

_INVALID_CPF: tuple[str, FailureKind, Callable[[random.Random], str]] = (
    "office.errors.InvalidCpf",
    FailureKind.PERMANENT,
    lambda dice: f"CPF inválido: {cpf(dice)}",
)


@dataclass(frozen=True)
class Cause:
    queue: str
    type: str
    kind: FailureKind
    text: Callable[[random.Random], str]

    @property
    def handler(self) -> str:
        return f"handle_{self.queue.replace('-', '_')}"

    @cached_property
    def frames(self) -> tuple[Frame, ...]:
        """As deep as makes a stack trace of TRACE_BYTES, the team's own code last."""
        name = self.handler
        frames: tuple[Frame, ...] = (
            Frame(f"/srv/office/{name}.py", 58, name, f"await {name}_record(event, ledger)", own=True),
            Frame(f"/srv/office/{name}.py", 131, f"{name}_record", f"raise_if({self.type!r}, event)", own=True),
        )
        library = [
            Frame(f"/srv/venv/lib/python3.11/site-packages/{each[0]}", *each[1:], own=False) for each in _LIBRARY
        ]
        dice = random.Random(f"{self.queue} {self.type}")
        while len(self._trace(frames)) < TRACE_BYTES:
            frames = (dice.choice(library), *frames)
        return frames

    @cached_property
    def fingerprint(self) -> Fingerprint:
        dice = random.Random(1)
        found = {fingerprint(self.failure(self.text(dice), _ANY_TIME), queue=self.queue) for _ in range(3)}
        assert len(found) == 1, f"{self.type} on {self.queue} is more than one group: {found}"
        return found.pop()

    def failure(self, text: str, at: datetime) -> Failure:
        raised = Raised(self.type, text, self.frames)
        return Failure(attempt=1, at=at, kind=self.kind, handler=self.handler, chain=(raised,), host=HOST)

    def _trace(self, frames: tuple[Frame, ...]) -> str:
        raised = Raised(self.type, "", frames)
        return Failure(attempt=1, at=_ANY_TIME, kind=self.kind, handler="", chain=(raised,)).trace


_ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)


def causes() -> list[Cause]:
    """The most frequent first, always the same ones."""
    every = [Cause(queue, *error) for error in ERRORS for queue in QUEUES]
    random.Random(3).shuffle(every)
    chosen = every[: CAUSES - len(CPF_PLACES)]
    for place, queue in zip(CPF_PLACES, QUEUES, strict=False):
        chosen.insert(place, Cause(queue, *_INVALID_CPF))
    assert len({each.fingerprint.id for each in chosen}) == CAUSES
    return chosen


def zipf_weights(count: int) -> list[float]:
    """Cumulative: the n-th cause is as frequent as 1/n."""
    return list(accumulate(1 / place for place in range(1, count + 1)))
