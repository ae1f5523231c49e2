"""The doctor of RabbitMQ: what the broker tells, and what is found in it. No broker is asked."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from redrive.finding import Finding, FindingLevel
from redrive.transports import Names
from redrive.transports.inspection import Expected, ExpectedQueue
from redrive.transports.rabbitmq.broker_facts import (
    BindingFacts,
    BrokerFacts,
    ConnectionFacts,
    ExchangeFacts,
    NodeFacts,
    OverviewFacts,
    PermissionFacts,
    QueueFacts,
)
from redrive.transports.rabbitmq.examination import examine

OK, WARN, PROBLEM = FindingLevel.OK, FindingLevel.WARN, FindingLevel.PROBLEM
SAFE = {
    "x-dead-letter-exchange": "",
    "x-dead-letter-routing-key": "orders_dlq",
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",
}
STANDARD = tuple(
    ExchangeFacts(name=name, type=kind)
    for name, kind in {
        "": "direct",
        "d": "direct",
        "f": "fanout",
        "t": "topic",
        "h": "headers",
        "x": "x-consistent-hash",
    }.items()
)


def quorum(name: str = "orders", arguments: dict[str, Any] | None = None, **facts: Any) -> QueueFacts:
    usual: dict[str, Any] = {"type": "quorum", "durable": True, "state": "running", "consumers": 1}
    return QueueFacts(name=name, arguments=arguments or {}, **{**usual, **facts})


def bound(source: str, destination: str, key: str = "", *, to_queue: bool = True) -> BindingFacts:
    return BindingFacts(source=source, destination=destination, key=key, to_queue=to_queue)


def broker(*queues: QueueFacts, **facts: Any) -> BrokerFacts:
    usual: dict[str, Any] = {
        "overview": OverviewFacts(version="3.10.8"),
        "exchanges": STANDARD,
        "bindings": (),
        "nodes": (NodeFacts(name="rabbit@one", running=True, memory_alarm=False, disk_alarm=False),),
    }
    return BrokerFacts(queues=queues, **{**usual, **facts})


def about(name: str, found: list[Finding]) -> dict[str, FindingLevel]:
    """FindingLevel by check; the checks of one queue differ from each other."""
    return {each.check: each.level for each in found if each.queue == name}


def found_in(queue: QueueFacts, *others: QueueFacts, **facts: Any) -> dict[str, FindingLevel]:
    return about(queue.name, examine(broker(queue, *others, **facts), Expected()))


CLEAN = {"queue": OK}
DLQ = quorum("orders_dlq")


def delay_queue(milliseconds: int, **arguments: Any) -> QueueFacts:
    back = {**SAFE, "x-dead-letter-routing-key": "orders", "x-message-ttl": milliseconds}
    return quorum(f"orders_retry.{milliseconds}", {**back, **arguments}, consumers=0)


def test_queues_as_we_make_them_are_clean() -> None:
    found = examine(
        broker(quorum(), DLQ, delay_queue(5000)), Expected(queues=(ExpectedQueue(name="orders", longest=300),))
    )

    assert {each.level for each in found} == {OK}, found
    assert {each.queue for each in found if each.queue} == {"orders", "orders_dlq", "orders_retry.5000"}


def test_clean_delay_queues_are_told_together_and_every_other_one_alone() -> None:
    shards = quorum("shard.1"), quorum("shard.2")
    broken = delay_queue(20000, **{"x-dead-letter-exchange": "gone"})
    found = examine(broker(quorum(), delay_queue(5000), delay_queue(10000), broken, *shards), Expected())
    assert [(each.queue, each.level) for each in found if each.queue] == [
        ("orders_retry.20000", PROBLEM),
        ("orders", OK),
        ("orders_retry.*", OK),
        ("shard.1", OK),
        ("shard.2", OK),
    ]
    (together,) = [each for each in found if each.queue == "orders_retry.*"]
    assert together.what == "2 delay queues, nothing found that may lose a message"


class TestWhereDeadLettersGo:
    def test_a_missing_exchange_is_a_problem(self) -> None:
        queue = quorum(arguments={**SAFE, "x-dead-letter-exchange": "gone"})
        assert found_in(queue) == {"dead-letter-exchange": PROBLEM}

    def test_what_becomes_of_them_is_told(self) -> None:
        def told(arguments: dict[str, Any]) -> str:
            queue = quorum(arguments={**arguments, "x-dead-letter-exchange": "gone"})
            return next(each.what for each in examine(broker(queue), Expected()) if each.queue)

        assert "held back" in told(SAFE)
        assert "dropped" in told({})

    def test_a_policy_names_the_exchange_too_and_the_argument_wins(self) -> None:
        policy = {"dead-letter-exchange": "gone"}
        assert found_in(quorum(policy=policy))["dead-letter-exchange"] is PROBLEM
        assert found_in(quorum(arguments=SAFE, policy=policy), DLQ) == CLEAN

    @pytest.mark.parametrize(
        ("exchange", "key", "bindings", "level"),
        [
            ("", "orders_dlq", (), None),
            ("", "nobody", (), PROBLEM),
            ("d", "dead", (bound("d", "orders_dlq", "dead"),), None),
            ("d", "dead", (bound("d", "orders_dlq", "dea"),), PROBLEM),
            ("d", "dead", (bound("f", "orders_dlq", "dead"),), PROBLEM),
            ("f", "whatever", (bound("f", "orders_dlq", "x"),), None),
            ("f", "whatever", (), PROBLEM),
            ("t", "a.b", (bound("t", "orders_dlq", "a.*"),), None),
            ("t", "a.b", (bound("t", "orders_dlq", "*.a"),), PROBLEM),
            ("h", "dead", (bound("h", "orders_dlq"),), None),  # it may; and at least there is a queue
            ("h", "dead", (), PROBLEM),
            ("x", "dead", (bound("x", "orders_dlq", "1"),), None),
        ],
    )
    def test_a_key_that_reaches_no_queue_is_a_problem(
        self, exchange: str, key: str, bindings: tuple[BindingFacts, ...], level: FindingLevel | None
    ) -> None:
        arguments = {**SAFE, "x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": key}
        found = found_in(quorum(arguments=arguments), DLQ, bindings=bindings)
        assert found.get("dead-letter-route") is level, found

    def test_exchanges_bound_to_exchanges_are_followed_even_in_a_circle(self) -> None:
        arguments = {**SAFE, "x-dead-letter-exchange": "f", "x-dead-letter-routing-key": "dead"}
        around = (bound("f", "d", to_queue=False), bound("d", "f", "dead", to_queue=False))
        lost = found_in(quorum(arguments=arguments), DLQ, bindings=around)
        arrived = found_in(quorum(arguments=arguments), DLQ, bindings=(*around, bound("d", "orders_dlq", "dead")))
        assert (lost.get("dead-letter-route"), arrived) == (PROBLEM, CLEAN)

    def test_an_alternate_exchange_takes_what_is_not_routed(self) -> None:
        arguments = {**SAFE, "x-dead-letter-exchange": "d", "x-dead-letter-routing-key": "dead"}
        others = [each for each in STANDARD if each.name != "d"]
        routed = (ExchangeFacts(name="d", type="direct", alternate="f"), *others)
        bindings = (bound("f", "orders_dlq"),)
        assert found_in(quorum(arguments=arguments), DLQ, bindings=bindings, exchanges=routed) == CLEAN

        unknown = (ExchangeFacts(name="d", type="direct", has_policy=True), *others)
        told = found_in(quorum(arguments=arguments), DLQ, bindings=bindings, exchanges=unknown)
        assert told == {"dead-letter-route": WARN}

    def test_an_exchange_behind_a_headers_exchange_cannot_be_told(self) -> None:
        arguments = {**SAFE, "x-dead-letter-exchange": "h", "x-dead-letter-routing-key": "dead"}
        found = found_in(quorum(arguments=arguments), DLQ, bindings=(bound("h", "d", to_queue=False),))
        assert found == {"dead-letter-route": WARN}

    def test_without_a_key_of_their_own_they_keep_the_one_they_came_with(self) -> None:
        arguments = {name: value for name, value in SAFE.items() if name != "x-dead-letter-routing-key"}
        queue = quorum(arguments={**arguments, "x-dead-letter-exchange": "d"})
        by_name, by_key = bound("d", "orders_dlq", "orders"), bound("d", "orders_dlq", "order.created")
        in_use = bound("t", "orders", "order.created")

        assert found_in(queue, DLQ, bindings=(by_name,)) == CLEAN
        assert found_in(queue, DLQ) == {"dead-letter-route": PROBLEM}
        # What is published by exchange arrives, what is redriven by the queue's name does not.
        assert found_in(queue, DLQ, bindings=(by_key, in_use)) == {"dead-letter-route": WARN}
        assert found_in(queue, DLQ, bindings=(by_key, by_name, in_use)) == CLEAN

    def test_a_pattern_that_a_queue_is_bound_with_is_no_key(self) -> None:
        arguments = {name: value for name, value in SAFE.items() if name != "x-dead-letter-routing-key"}
        queue = quorum(arguments={**arguments, "x-dead-letter-exchange": "d"})
        bindings = (bound("d", "orders_dlq", "orders"), bound("t", "orders", "order.*"))
        assert found_in(queue, DLQ, bindings=bindings) == CLEAN

    def test_a_loop_through_a_queue_with_a_ttl_is_clean(self) -> None:
        """S4's own: into the waiting queue messages come by its binding, never by its name."""
        queue = quorum(arguments={**SAFE, "x-dead-letter-exchange": "d", "x-dead-letter-routing-key": "orders"})
        back = {**SAFE, "x-dead-letter-exchange": "f", "x-message-ttl": 600_000}
        del back["x-dead-letter-routing-key"]
        waiting = quorum("orders.deadletter", {**back, "x-dead-letter-exchange": "t"}, consumers=0)
        default = bound("", "orders.deadletter", "orders.deadletter")  # the broker lists these too
        bindings = (default, bound("d", "orders.deadletter", "orders"), bound("t", "orders", "orders"))
        found = examine(broker(queue, waiting, bindings=bindings), Expected())
        assert {each.level for each in found} == {OK}, found


class TestHowSafelyTheyGo:
    @pytest.mark.parametrize(
        ("kind", "arguments", "policy", "level"),
        [
            ("classic", {}, {}, WARN),
            ("quorum", {}, {}, WARN),
            ("quorum", {"x-dead-letter-strategy": "at-least-once"}, {}, PROBLEM),
            ("quorum", {"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}, {}, None),
            ("quorum", {"x-dead-letter-strategy": "at-least-once"}, {"overflow": "reject-publish"}, None),
            (
                "quorum",
                {"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"},
                {"overflow": "drop-head"},  # here the policy wins
                PROBLEM,
            ),
            ("quorum", {}, {"dead-letter-strategy": "at-least-once", "overflow": "reject-publish"}, None),
            ("classic", {"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}, {}, PROBLEM),
        ],
    )
    def test_at_most_once_is_a_warning_and_at_least_once_in_vain_a_problem(
        self, kind: str, arguments: dict[str, Any], policy: dict[str, Any], level: FindingLevel | None
    ) -> None:
        route = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders_dlq"}
        queue = replace(quorum(arguments={**route, **arguments}, policy=policy), type=kind)
        assert found_in(queue, DLQ).get("dead-letter-strategy") is level

    def test_held_dead_letters_are_a_problem_if_they_cannot_go_and_a_warning_if_they_can(self) -> None:
        queue = quorum(arguments=SAFE, held=3)
        assert found_in(queue, DLQ) == {"held-dead-letters": WARN}
        assert found_in(queue) == {"dead-letter-route": PROBLEM, "held-dead-letters": PROBLEM}
        assert found_in(replace(queue, held=0), DLQ) == CLEAN


class TestWhatTheBrokerDrops:
    def test_a_ttl_without_a_dead_letter_exchange(self) -> None:
        assert found_in(quorum(arguments={"x-message-ttl": 5000})) == {"ttl": PROBLEM}
        assert found_in(quorum(policy={"message-ttl": 5000})) == {"ttl": PROBLEM}
        assert found_in(quorum(arguments={**SAFE, "x-message-ttl": 5000}), DLQ) == CLEAN

    def test_of_two_ttls_the_smaller_one_holds(self) -> None:
        queue = quorum(arguments={"x-message-ttl": 7000}, policy={"message-ttl": 5000})
        (finding,) = [each for each in examine(broker(queue), Expected()) if each.queue]
        assert "5s" in finding.what

    @pytest.mark.parametrize("limit", ["x-max-length", "x-max-length-bytes"])
    def test_a_full_queue_that_drops_its_head(self, limit: str) -> None:
        assert found_in(quorum(arguments={limit: 5})) == {"overflow": PROBLEM}
        assert found_in(quorum(arguments={limit: 5, "x-overflow": "drop-head"})) == {"overflow": PROBLEM}
        assert found_in(quorum(arguments={limit: 5, "x-overflow": "reject-publish"})) == CLEAN
        dead_lettering = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders_dlq", limit: 5}
        assert found_in(quorum(arguments=dead_lettering), DLQ)["overflow"] is WARN

    def test_on_a_classic_queue_the_argument_of_overflow_wins(self) -> None:
        arguments = {"x-max-length": 5, "x-overflow": "reject-publish"}
        queue = quorum(arguments=arguments, policy={"overflow": "drop-head"})
        assert found_in(queue) == {"overflow": PROBLEM}
        assert found_in(replace(queue, type="classic")) == {"classic": WARN}

    def test_a_queue_that_expires_takes_its_messages_along(self) -> None:
        assert found_in(quorum(arguments={"x-expires": 60_000})) == {"expires": PROBLEM}
        assert found_in(quorum(arguments={**SAFE, "x-expires": 60_000}), DLQ) == {"expires": PROBLEM}
        vanishing = {"x-message-ttl": 5000, "x-expires": 60_000}
        assert found_in(quorum(arguments=vanishing)) == {"expires": PROBLEM, "ttl": PROBLEM}
        waiting = {**SAFE, "x-message-ttl": 5000, "x-expires": 60_000}
        assert found_in(quorum(arguments=waiting), DLQ) == {"expires": WARN}
        assert found_in(quorum(arguments={**waiting, "x-expires": 4000}), DLQ) == {"expires": PROBLEM}

    @pytest.mark.parametrize(
        ("version", "arguments", "policy", "told", "level"),
        [
            ("3.10.8", {}, {}, None, None),
            ("3.10.8", {"x-delivery-limit": 5}, {}, None, PROBLEM),
            ("3.13.0", {}, {"delivery-limit": 5}, None, PROBLEM),
            ("4.0.1", {}, {}, None, PROBLEM),  # 20 by default
            ("4.0.1", {"x-delivery-limit": -1}, {}, None, None),
            ("4.0.1", {"x-delivery-limit": -1}, {"delivery-limit": 7}, None, PROBLEM),
            ("4.0.1", {}, {}, -1, None),
            ("4.0.1", {"x-delivery-limit": -1}, {}, 20, PROBLEM),  # what is in force counts
            ("4.0.1", {**SAFE}, {}, None, None),
            ("4.0.1", {**SAFE}, {}, 11, None),
            ("4.0.1", {**SAFE}, {}, 10, WARN),  # too soon to be held instead
            ("3.10.8", {**SAFE, "x-delivery-limit": 3}, {}, None, WARN),
            (None, {}, {}, None, None),
        ],
    )
    def test_a_delivery_limit_that_drops_or_comes_soon(
        self,
        version: str | None,
        arguments: dict[str, Any],
        policy: dict[str, Any],
        told: int | None,
        level: FindingLevel | None,
    ) -> None:
        queue = quorum(arguments=arguments, policy=policy, delivery_limit=told)
        found = found_in(queue, DLQ, overview=OverviewFacts(version=version))
        assert found.get("delivery-limit") is level

    def test_classic_queues_know_no_delivery_limit(self) -> None:
        queue = replace(quorum(arguments={"x-delivery-limit": 5}), type="classic")
        assert found_in(queue, overview=OverviewFacts(version="4.1.0")) == {"classic": WARN}


class TestWhatAWorkerHolds:
    @pytest.mark.parametrize(
        ("prefetch", "messages", "mebibytes", "much"),
        [(999, 100, 100, True), (999, 100, 1, False), (1, 3, 900, True), (None, 1, 900, False), (9, 0, 0, False)],
    )
    def test_prefetch_times_what_its_messages_have_on_average(
        self, prefetch: int | None, messages: int, mebibytes: int, *, much: bool
    ) -> None:
        facts = broker(quorum(messages=messages, bytes=mebibytes * 2**20))
        told = Expected(queues=(ExpectedQueue(name="orders", longest=1.0, prefetch=prefetch),))
        found = [each for each in examine(facts, told) if each.check == "memory"]
        assert [each.level for each in found] == [WARN] * much

    def test_it_is_told_in_mebibytes_and_with_a_number_that_fits(self) -> None:
        facts = broker(quorum(messages=10, bytes=20 * 2**20))
        told = Expected(queues=(ExpectedQueue(name="orders", longest=1.0, prefetch=1000),))
        [found] = [each for each in examine(facts, told) if each.check == "memory"]
        assert "2,000 MiB" in found.what
        assert "2.0 MiB on average" in found.what
        assert "such as 128" in found.remedy

    def test_a_queue_that_nobody_works_on_is_not_weighed(self) -> None:
        facts = broker(quorum(messages=10, bytes=2**40))
        told = Expected(queues=(ExpectedQueue(name="orders", prefetch=1000, handled=False),))
        assert not [each for each in examine(facts, told) if each.check == "memory"]


class TestWhatTheQueueIs:
    def test_classic_queues_are_a_warning_and_mirrors_that_are_gone_a_problem(self) -> None:
        classic = replace(quorum(), type="classic")
        mirrored = replace(classic, policy={"ha-mode": "all"})
        assert found_in(classic) == found_in(mirrored) == {"classic": WARN}
        assert found_in(mirrored, overview=OverviewFacts(version="4.0.0")) == {"classic": PROBLEM}

    @pytest.mark.parametrize("facts", [{"durable": False}, {"auto_delete": True}])
    def test_a_queue_that_does_not_last_is_a_problem(self, facts: dict[str, Any]) -> None:
        assert found_in(quorum(**facts)) == {"durable": PROBLEM}

    def test_a_queue_that_is_down_is_a_problem(self) -> None:
        assert found_in(quorum(state="minority")) == {"state": PROBLEM}

    def test_a_stream_keeps_everything(self) -> None:
        assert found_in(replace(quorum(), type="stream")) == CLEAN

    def test_a_queue_of_which_nothing_is_told_gives_nothing_to_say(self) -> None:
        assert found_in(QueueFacts(name="new", type="quorum")) == CLEAN

    def test_queues_of_one_connection_are_not_looked_at(self) -> None:
        found = examine(broker(quorum("amq.gen-x", durable=False, exclusive=True)), Expected())
        assert not [each for each in found if each.queue]

    def test_dead_letters_that_nobody_collects_are_a_warning(self) -> None:
        lonely = quorum("orders_dlq", consumers=0, messages=7)
        assert found_in(lonely, quorum()) == {"uncollected": WARN}
        assert found_in(replace(lonely, consumers=1), quorum()) == CLEAN
        assert found_in(replace(lonely, messages=0), quorum()) == CLEAN
        assert found_in(lonely) == CLEAN  # a queue of this name that is nobody's dead-letter queue
        onward = {**SAFE, "x-dead-letter-routing-key": "orders"}
        assert found_in(replace(lonely, arguments=onward), quorum()) == CLEAN  # they do not end here
        limbo = quorum("limbo", consumers=0, messages=7)
        source = quorum(arguments={**SAFE, "x-dead-letter-routing-key": "limbo"})
        assert found_in(limbo, source) == {"uncollected": WARN}
        waiting = quorum("w", {**SAFE, "x-dead-letter-routing-key": "limbo", "x-message-ttl": 5})
        assert found_in(limbo, waiting) == CLEAN  # what comes out of a wait has not failed


class TestWhatIsLookedAt:
    def test_expected_queues_and_whatever_their_dead_letters_reach(self) -> None:
        far = quorum("far", {**SAFE, "x-dead-letter-routing-key": "farther"})
        queue = quorum(arguments={**SAFE, "x-dead-letter-routing-key": "far"})
        others = (quorum("orders_retry"), quorum("orders_retry.5000"), quorum("farther"), quorum("other"))
        found = examine(broker(queue, far, *others), Expected(queues=(ExpectedQueue(name="orders", longest=1),)))
        looked_at = {each.queue for each in found if each.queue}
        assert looked_at == {"orders", "orders_retry", "orders_retry.5000", "far", "farther"}

    def test_names_are_those_of_the_topology(self) -> None:
        expected = Expected(
            queues=(ExpectedQueue(name="orders", longest=1),),
            names=Names(retry="{queue}.wait", dead="dlq.{queue}"),
        )
        found = examine(broker(quorum(), quorum("dlq.orders"), quorum("orders_dlq")), expected)
        assert {each.queue for each in found if each.queue} == {"orders", "dlq.orders"}

    def test_an_expected_queue_that_is_missing_is_a_problem(self) -> None:
        found = examine(broker(), Expected(queues=(ExpectedQueue(name="orders", longest=1),)))
        assert about("orders", found) == {"queue": PROBLEM}


@pytest.mark.parametrize(
    ("longest", "timeout", "level"),
    [
        (300.0, 1800.0, None),
        (900.0, 1800.0, WARN),
        (1800.0, 1800.0, PROBLEM),
        (None, 1800.0, WARN),
        (5000.0, None, None),
    ],
)
def test_handlers_and_the_consumer_timeout(
    longest: float | None, timeout: float | None, level: FindingLevel | None
) -> None:
    expected = Expected(queues=(ExpectedQueue(name="orders", longest=longest),))
    found = examine(broker(quorum()), expected, consumer_timeout=timeout)
    assert about("orders", found).get("consumer-timeout") is level


def test_a_queue_that_is_only_looked_at_has_no_handler_to_time() -> None:
    expected = Expected(queues=(ExpectedQueue(name="orders", longest=9000.0, handled=False),))
    assert about("orders", examine(broker(quorum()), expected)) == CLEAN


class TestTheBroker:
    def levels(self, **facts: Any) -> dict[str, FindingLevel]:
        return {each.check: each.level for each in examine(broker(**facts), Expected())}

    @pytest.mark.parametrize(
        ("version", "level"),
        [("3.9.29", PROBLEM), ("3.10.0", OK), ("4.1.0-rc.1", OK), ("", WARN), (None, WARN), ("x.y", WARN)],
    )
    def test_its_version(self, version: str | None, level: FindingLevel) -> None:
        assert self.levels(overview=OverviewFacts(version=version))["version"] is level

    def test_alarms_and_nodes_that_are_down(self) -> None:
        well = NodeFacts(name="n", running=True, memory_alarm=False, disk_alarm=False)
        assert self.levels(nodes=(well,))["alarms"] is OK
        assert self.levels(nodes=(well, replace(well, memory_alarm=True)))["alarms"] is PROBLEM
        assert self.levels(nodes=(replace(well, disk_alarm=True), well))["alarms"] is PROBLEM
        assert self.levels(nodes=(replace(well, running=False),))["nodes"] is PROBLEM
        assert self.levels(nodes=(well, NodeFacts(name="new")))["alarms"] is WARN
        assert self.levels(nodes=None)["alarms"] is WARN

    def test_blocked_connections(self) -> None:
        blocked = ConnectionFacts(name="1.2.3.4:5 -> 6", state="blocked")
        assert self.levels(connections=(blocked,))["blocked-connections"] is WARN
        assert "blocked-connections" not in self.levels(connections=(replace(blocked, state="flow"),))

    @pytest.mark.parametrize(
        ("configure", "write", "read", "lacking"),
        [
            (".*", ".*", ".*", []),
            ("^orders", "amq.default", "^orders", []),
            ("", ".*", ".*", ["configure"]),
            (".*", "^orders", ".*", ["write"]),
            (".*", ".*", "^orders$", ["read"]),  # not the dead-letter queue
            (".*", ".*", "", ["read", "read"]),
            ("(?!x)y", ".*", ".*", []),  # cannot be read here
        ],
    )
    def test_permissions(self, configure: str, write: str, read: str, lacking: list[str]) -> None:
        own = PermissionFacts(vhost="/", configure=configure, write=write, read=read)
        other = PermissionFacts(vhost="other", configure=".*", write=".*", read=".*")
        facts = broker(quorum(), permissions=(other, own), user="shop")
        found = examine(facts, Expected(queues=(ExpectedQueue(name="orders", longest=1),)))
        told = [each for each in found if each.check == "permissions" and each.level is PROBLEM]
        assert [
            kind for each in told for kind in ("configure", "write", "read") if f"no {kind} " in each.what
        ] == lacking

    def test_no_permissions_at_all(self) -> None:
        assert self.levels(permissions=())["permissions"] is PROBLEM
        assert "permissions" not in self.levels(permissions=None)


def test_every_finding_that_is_not_ok_says_what_to_do() -> None:
    bad = quorum(
        arguments={"x-message-ttl": 1, "x-max-length": 1, "x-expires": 1, "x-delivery-limit": 1},
        durable=False,
        auto_delete=True,
        state="down",
    )
    worse = replace(
        quorum("b", {"x-dead-letter-exchange": "gone", "x-dead-letter-strategy": "at-least-once"}, held=1),
        type="classic",
    )
    found = examine(
        broker(bad, worse, nodes=None, overview=OverviewFacts()),
        Expected(queues=(ExpectedQueue(name="orders"), ExpectedQueue(name="b"), ExpectedQueue(name="c"))),
    )
    assert len(found) > 10
    assert not [each for each in found if each.level is not OK and not each.remedy]
