"""Where a queue's dead letters go, and whether they arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.finding import problem, warn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.finding import Finding
    from redrive.transports.rabbitmq.binding_routes import Routes
    from redrive.transports.rabbitmq.effective import Effective
    from redrive.transports.rabbitmq.examined_queue import ExaminedQueue

_SET = "set dead-letter-strategy at-least-once and overflow reject-publish, by a policy if it exists already"


def examine_dead_letters(queue: ExaminedQueue) -> Iterator[Finding]:
    if queue.rules.dead_letter_exchange is None:
        return
    astray = list(_astray(queue))
    yield from astray
    yield from _strategy(queue)
    yield from _held(queue, astray=bool(astray))


def dead_letter_keys(name: str, rules: Effective, routes: Routes) -> list[str]:
    """The routing keys that dead letters of a queue may have. A queue where messages wait and that is bound gets
    none by its name: they come as they were routed there.
    """
    if rules.dead_letter_key is not None:
        return [rules.dead_letter_key]
    bound = routes.keys_of(name)
    return bound if bound and rules.message_ttl is not None else sorted({name, *bound})


def _astray(queue: ExaminedQueue) -> Iterator[Finding]:
    exchange = queue.rules.dead_letter_exchange or ""
    fate = "are held back in it" if queue.rules.at_least_once else "are dropped"
    if not queue.routes.has_exchange(exchange):
        what = f"its dead-letter exchange {exchange!r} does not exist: dead letters {fate}"
        yield problem(
            "dead-letter-exchange", what, "declare it: `redrive setup` does if it is the app's", queue=queue.name
        )
        return
    yield from _unroutable(queue, exchange, fate)


def _unroutable(queue: ExaminedQueue, exchange: str, fate: str) -> Iterator[Finding]:
    own = queue.rules.dead_letter_key
    keys = dead_letter_keys(queue.name, queue.rules, queue.routes)
    reached = {key: queue.routes.reach(exchange, key) for key in keys}
    lost = [key for key, reach in reached.items() if not reach.queues]
    if not lost:
        return
    shown = f"the exchange {exchange!r}" if exchange else "the default exchange"
    kept = " (they keep their routing key)" if own is None else ""
    if not all(reached[key].certain for key in lost):
        what = f"cannot tell whether {shown} takes its dead letters{kept} to a queue"
        yield warn("dead-letter-route", what, "see its bindings", queue=queue.name)
        return
    what = f"{shown} has no queue for dead letters with key {lost[0]!r}{kept}: they {fate}"
    remedy = "bind a queue with that key, or set dead-letter-routing-key"
    finding = problem if len(lost) == len(keys) else warn
    yield finding("dead-letter-route", what, remedy, queue=queue.name)


def _strategy(queue: ExaminedQueue) -> Iterator[Finding]:
    rules = queue.rules
    if rules.at_least_once:
        return
    remedy = _SET if rules.is_quorum else f"make it a quorum queue, and {_SET}"
    if rules.asks_at_least_once:
        why = f"its overflow is {rules.overflow}" if rules.is_quorum else "it is no quorum queue"
        what = f"asks for at-least-once dead letters and does not get them: {why}"
        yield problem("dead-letter-strategy", what, remedy, queue=queue.name)
    else:
        what = "dead-letters at most once: a failure on the way loses the message"
        yield warn("dead-letter-strategy", what, remedy, queue=queue.name)


def _held(queue: ExaminedQueue, *, astray: bool) -> Iterator[Finding]:
    held = queue.facts.held or 0
    if not held:
        return
    what = f"holds dead letters that no queue has confirmed ({held:,})"
    if astray:
        yield problem("held-dead-letters", what, "mend the way of its dead letters", queue=queue.name)
    else:
        remedy = "look again; if the number stays, see the state and the limits of the queue they go to"
        yield warn("held-dead-letters", what, remedy, queue=queue.name)
