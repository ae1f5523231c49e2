"""The broker as a whole: its version, its nodes, who is held up, and what our user may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import re2

from redrive.finding import ok, problem, warn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from redrive.finding import Finding
    from redrive.transports import Names
    from redrive.transports.rabbitmq.broker_facts import BrokerFacts, NodeFacts, PermissionFacts

_OLDEST = (3, 10)
_DEFAULT_EXCHANGE = "amq.default"
"""Its name where permissions are checked."""
_A_DELAY = "5000"
_FREE_IT = "free memory or disk on that node: publishers wait until it is gone"
_MONITORING = "give the user the tag `monitoring` to have this checked"


def examine_broker(facts: BrokerFacts) -> Iterator[Finding]:
    yield _version(facts)
    yield from _nodes(facts.nodes)
    held_up = [each.name for each in facts.connections or () if each.state in {"blocked", "blocking"}]
    if held_up:
        what = f"{len(held_up)} connections are blocked, for example {held_up[0]}"
        yield warn("blocked-connections", what, "see the alarms of its nodes")


def _version(facts: BrokerFacts) -> Finding:
    version, release = facts.overview.version, facts.overview.release
    if release is None:
        return warn("version", "the broker does not tell its version", "see that it is RabbitMQ 3.10 or newer")
    if release < _OLDEST:
        what = f"RabbitMQ {version}: its quorum queues know neither TTL nor at-least-once dead letters"
        return problem("version", what, "upgrade to RabbitMQ 3.10 or newer")
    return ok("version", f"RabbitMQ {version}")


def _nodes(nodes: Sequence[NodeFacts] | None) -> Iterator[Finding]:
    if nodes is None:
        yield warn("alarms", "the user may not look at the nodes", _MONITORING)
        return
    alarms = list(_alarms(nodes))
    untold = [each.name for each in nodes if each.memory_alarm is None or each.disk_alarm is None]
    yield from alarms
    if untold:
        yield warn("alarms", f"node {untold[0]} does not tell about alarms", "look again when it runs")
    elif not alarms:
        yield ok("alarms", f"no memory or disk alarm on {_count(len(nodes), 'node')}")


def _alarms(nodes: Iterable[NodeFacts]) -> Iterator[Finding]:
    for node in nodes:
        if node.running is False:
            yield problem("nodes", f"node {node.name} is down", "start it: queues may have lost their majority")
        if node.memory_alarm:
            yield problem("alarms", f"memory alarm on {node.name}", _FREE_IT)
        if node.disk_alarm:
            yield problem("alarms", f"disk alarm on {node.name}", _FREE_IT)


def examine_permissions(facts: BrokerFacts, queues: Sequence[str], names: Names) -> Iterator[Finding]:
    """That the user may read these queues, send through the default exchange, and make what belongs to them."""
    if facts.permissions is None:
        return  # only an administrator may ask; a worker that is refused says so itself
    own = next((each for each in facts.permissions if each.vhost == facts.vhost), None)
    if own is None:
        what = f"user {facts.user!r} has no permissions in vhost {facts.vhost!r}"
        yield problem("permissions", what, "run `rabbitmqctl set_permissions` for it")
        return
    lacking = [each for each in _needed(queues, names) if not _allows(own, *each)]
    for kind, name in lacking:
        what = f"user {facts.user!r} has no {kind} permission for {name!r}"
        yield problem(
            "permissions", what, f"widen its pattern {getattr(own, kind)!r}: rabbitmqctl set_permissions"
        )
    if not lacking:
        yield ok("permissions", f"user {facts.user!r} may do what is needed in vhost {facts.vhost!r}")


def _needed(queues: Sequence[str], names: Names) -> Iterator[tuple[str, str]]:
    yield "write", _DEFAULT_EXCHANGE
    for queue in queues:
        yield "read", queue
        yield from (("read", names.dead_of(queue)), ("configure", f"{names.retry_of(queue)}.{_A_DELAY}"))


def _allows(permission: PermissionFacts, kind: str, name: str) -> bool:
    pattern = getattr(permission, kind)
    try:
        return bool(pattern) and re2.search(pattern, name) is not None
    except re2.error:  # RabbitMQ knows more of patterns; what cannot be read cannot be blamed
        return True


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
