"""What a layout asks for is found or made on a real broker, and what exists is never changed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

import pytest

from redrive.stores.schema import HEAD
from redrive.transports.delays import LADDER
from redrive.transports.rabbitmq.setting_up import Examined, Found, complete, examine
from redrive.transports.rabbitmq.topology import BindingSpec, QueueSpec, Topology
from redrive.transports.rabbitmq.topology_choice import TOPOLOGIES, Choice, choose
from redrive.transports.rabbitmq.topology_loop import Loop
from redrive.transports.rabbitmq.transport import RabbitTransport
from redrive.transports.setup import State
from support.desk import Desk, Ended
from support.rabbitmq_server import RabbitServer, vhost_of
from support.terminal import on_terminal

if TYPE_CHECKING:
    from redrive.transports.rabbitmq.administration import Administration

LONG = "q" * 200


@pytest.fixture
async def administration(rabbitmq_url: str) -> AsyncIterator[Administration]:
    transport = RabbitTransport(rabbitmq_url)
    yield await transport.administration()
    await transport.close()


class Vhost:
    """Seen and changed by the management plugin: nothing of ours."""

    def __init__(self, server: RabbitServer, url: str) -> None:
        self._server = server
        self._path = quote(vhost_of(url), safe="")

    def declare(self, queue: str, *, durable: Any = True, **arguments: Any) -> None:
        given = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
        self._server.api("PUT", f"/queues/{self._path}/{queue}", {"durable": durable, "arguments": given})

    def declare_exchange(self, name: str, kind: str) -> None:
        self._server.api("PUT", f"/exchanges/{self._path}/{name}", {"type": kind, "durable": True})

    def bind(self, exchange: str, queue: str, key: str) -> None:
        self._server.api("POST", f"/bindings/{self._path}/e/{exchange}/q/{queue}", {"routing_key": key})

    def queues(self) -> dict[str, dict[str, Any]]:
        return {each["name"]: each["arguments"] for each in self._server.api("GET", f"/queues/{self._path}")}

    def bindings(self) -> set[tuple[str, str, str]]:
        found = self._server.api("GET", f"/bindings/{self._path}")
        return {(each["source"], each["destination"], each["routing_key"]) for each in found if each["source"]}


@pytest.fixture
def vhost(rabbitmq: RabbitServer, rabbitmq_url: str) -> Vhost:
    return Vhost(rabbitmq, rabbitmq_url)


def chosen(topology: str, **said: Any) -> Topology:
    return choose(Choice(topology=topology, app="shop", **said))


async def examined(administration: Administration, topology: Topology, *queues: str) -> list[Examined]:
    suited = topology.for_version(administration.version)
    return await examine(administration, [suited.layout(queue, (1, 5, 600)) for queue in queues or ("orders",)])


def by_name(found: list[Examined]) -> dict[str, Found]:
    things = [(each.step.thing, each) for one in found for each in one.things]
    return {thing.name: each for thing, each in things if not isinstance(thing, BindingSpec)}


def states(found: list[Examined]) -> set[State]:
    return {each.state for each in by_name(found).values()}


@pytest.mark.parametrize("queue_type", ["quorum", "classic"])
@pytest.mark.parametrize("topology", TOPOLOGIES)
async def test_everything_is_made_once_and_then_found(
    administration: Administration, vhost: Vhost, topology: str, queue_type: Any
) -> None:
    wanted = chosen(topology, queue_type=queue_type, dead_letter_ttl=60.0)
    before = await examined(administration, wanted, "orders", "mails")
    assert states(before) == {State.MISSING}
    assert vhost.queues() == {}
    made = await complete(administration, before)
    assert states(made) <= {State.MADE}
    specs = [each.step.thing for each in by_name(made).values()]
    expected = {thing.name: thing.arguments for thing in specs if isinstance(thing, QueueSpec)}
    assert vhost.queues() == expected
    again = await examined(administration, wanted, "orders", "mails")
    assert states(again) == {State.EXISTS}
    await complete(administration, again)
    assert vhost.queues() == expected


async def test_a_queue_with_another_ttl_says_which_what_and_what_to_do(
    administration: Administration, vhost: Vhost
) -> None:
    back = {"dead_letter_exchange": "", "dead_letter_routing_key": "orders"}
    safely = {"dead_letter_strategy": "at-least-once", "overflow": "reject-publish"}
    vhost.declare("orders_retry.5000", queue_type="quorum", message_ttl=7000, **back, **safely)
    before = vhost.queues()

    found = await examined(administration, chosen("delay-queues"))
    [differs] = by_name(found)["orders_retry.5000"].differences

    assert str(differs) == "x-message-ttl is 7000, wanted is 5000"
    assert "delete it and run setup again" in differs.remedy
    await complete(administration, found)
    assert vhost.queues()["orders_retry.5000"] == before["orders_retry.5000"]


async def test_every_difference_of_a_queue_is_found(administration: Administration, vhost: Vhost) -> None:
    vhost.declare("orders", queue_type="quorum", message_ttl=7, dead_letter_exchange="amq.direct", max_length=9)
    found = by_name(await examined(administration, chosen("dead-letter-exchange")))["orders"]
    assert found.state is State.DIFFERS
    assert {each.argument: (each.current, each.wanted) for each in found.differences} == {
        "x-message-ttl": (7, None),
        "x-dead-letter-exchange": ("amq.direct", "dlx.shop"),
        "x-dead-letter-routing-key": (None, "deadletter.orders"),
        "x-dead-letter-strategy": (None, "at-least-once"),
        "x-max-length": (9, None),
        "x-overflow": (None, "reject-publish"),
    }
    remedies = {each.argument: each.remedy for each in found.differences}
    assert "a policy of the broker can add 'dead-letter-routing-key'" in remedies["x-dead-letter-routing-key"]
    assert "arguments win over policies" in remedies["x-dead-letter-exchange"]


async def test_a_classic_queue_differs_in_its_type_and_not_in_what_only_quorum_queues_have(
    administration: Administration, vhost: Vhost
) -> None:
    letters = {"dead_letter_exchange": "dlx.shop", "dead_letter_routing_key": "deadletter.orders"}
    vhost.declare("orders", **letters)
    [differs] = by_name(await examined(administration, chosen("dead-letter-exchange")))["orders"].differences
    assert str(differs) == "x-queue-type is not set, wanted is 'quorum'"
    assert 'queue_type = "classic"' in differs.remedy
    classic = by_name(await examined(administration, chosen("dead-letter-exchange", queue_type="classic")))
    assert classic["orders"].state is State.EXISTS


async def test_a_queue_that_would_not_survive_a_restart_differs(
    administration: Administration, vhost: Vhost
) -> None:
    vhost.declare("orders_dlq", durable=False)
    [differs] = by_name(await examined(administration, chosen("plain-queues")))["orders_dlq"].differences
    assert str(differs) == "durable is false, wanted is true"


async def test_a_text_that_the_broker_cuts_still_names_the_argument(
    administration: Administration, vhost: Vhost
) -> None:
    vhost.declare(LONG, max_priority=3)
    [differs] = by_name(await examined(administration, chosen("plain-queues"), LONG))[LONG].differences
    assert str(differs) == "x-max-priority is something else, wanted is not set"


async def test_an_exchange_of_another_type_is_left_and_told(administration: Administration, vhost: Vhost) -> None:
    vhost.declare_exchange("dlx.shop", "topic")
    found = await complete(administration, await examined(administration, chosen("dead-letter-exchange")))
    exchange = by_name(found)["dlx.shop"]
    assert exchange.state is State.DIFFERS
    assert [str(each) for each in exchange.differences] == ["type is 'topic', wanted is 'direct'"]
    assert ("dlx.shop", "dlq.orders", "deadletter.orders") in vhost.bindings()


async def test_a_binding_that_was_lost_is_made_again(administration: Administration, vhost: Vhost) -> None:
    wanted = chosen("ttl-loop", queue_type="classic")
    vhost.declare_exchange("shop.workers", "direct")
    vhost.declare_exchange("shop.workers.deadletter", "direct")
    vhost.declare("orders", dead_letter_exchange="shop.workers.deadletter")
    await complete(administration, await examined(administration, wanted))
    assert vhost.bindings() >= {
        ("shop.workers", "orders", "orders"),
        ("shop.workers.deadletter", "orders.deadletter", "orders"),
    }


async def test_s4_existing_queues_are_as_wanted_and_used_as_they_are(
    administration: Administration, vhost: Vhost
) -> None:
    """As S4's own services make them: classic, no routing keys for dead letters, 3 minutes for frequency."""
    main, away = "sme.sgp.workers", "sme.sgp.workers.deadletter"
    for exchange in (main, away):
        vhost.declare_exchange(exchange, "direct")
    for queue, ttl in (("sgp.aula", 600_000), ("sgp.frequencia", 180_000)):
        vhost.declare(queue, dead_letter_exchange=away)
        vhost.declare(f"{queue}.deadletter", dead_letter_exchange=main, message_ttl=ttl)
        vhost.declare(f"{queue}.limbu")
        vhost.bind(main, queue, queue)
        vhost.bind(away, f"{queue}.deadletter", queue)
    before = vhost.queues(), vhost.bindings()
    wanted = chosen(
        "ttl-loop", exchange=main, queue_type="classic", loops={"sgp.frequencia": Loop(ttl=180.0, cycles=10)}
    )

    layouts = [wanted.layout(queue) for queue in ("sgp.aula", "sgp.frequencia")]
    found = await complete(administration, await examine(administration, layouts))

    assert states(found) == {State.EXISTS}
    assert (vhost.queues(), vhost.bindings()) == before


# The command


class Shop(Desk):
    """A folder with an app of two handlers, and RabbitMQ as its broker."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self.url = url
        self.write()
        handler = "@app.handler('{0}')\nasync def {0}(body: bytes) -> None: ...\n"
        handlers = "".join(handler.format(name) for name in ("orders", "mails"))
        # A name of its own for each test: modules stay imported.
        self.target = f"shop_{uuid4().hex}"
        (folder / f"{self.target}.py").write_text(f"from redrive import App\napp = App('shop')\n{handlers}")

    def write(self, **settings: str) -> None:
        lines = "".join(f'{name} = "{value}"\n' for name, value in settings.items())
        fixed = '[retry]\nattempts = 3\njitter = "none"\n'
        text = f'[broker]\nurl = "{self.url}"\n[broker.rabbitmq]\n{lines}{fixed}'
        (self.folder / "redrive.toml").write_text(text)

    def setup(self, *arguments: str) -> Ended:
        return self.redrive("setup", f"{self.target}:app", *arguments)


@pytest.fixture
def shop(tmp_path: Path, rabbitmq_url: str) -> Shop:
    return Shop(tmp_path, rabbitmq_url)


ORDERS = {"orders", "orders_dlq"}
MAILS = {"mails", "mails_dlq"}
DELAYS = {"orders_retry.5000", "orders_retry.10000"}
LATER = "    queues orders_retry.5000, orders_retry.10000 (2 delay queues): made when first used"


def test_setup_makes_queues_and_tables_once(shop: Shop, vhost: Vhost) -> None:
    first = shop.setup("--yes", "-q", "extra")
    assert (first.code, "Made 6 queues." in first.err) == (0, True)
    assert vhost.queues().keys() == ORDERS | MAILS | {"extra", "extra_dlq"}
    assert f"is at {HEAD}" in first.err
    assert shop.redrive("db", "check").code == 0
    again = shop.setup()  # nothing to ask for
    assert (again.code, "Nothing was missing." in again.err) == (0, True)
    assert ": made\n" not in again.out


def test_a_dry_run_shows_the_tree_and_changes_nothing(shop: Shop, vhost: Vhost) -> None:
    shop.write(topology="dead-letter-exchange")
    shown = shop.setup("--dry-run")
    assert shown.code == 0
    assert vhost.queues() == {}
    assert not (shop.folder / "redrive.db").exists()
    lines = shown.out.splitlines()
    assert lines[0].startswith("amqp://guest:***@")
    assert lines[0].endswith(", topology dead-letter-exchange")
    assert lines[1:4] == ["  orders", "    exchange dlx.shop (dead letters): missing", "      kind = direct"]
    assert "    queue orders (messages): missing" in lines
    assert "      x-dead-letter-routing-key = deadletter.orders" in lines
    assert "    binding dlx.shop -> dlq.orders: made if it is missing" in lines
    assert "Would make 1 exchange, 4 queues; nothing was changed." in shown.err


def test_delay_queues_are_left_to_the_first_retry_and_shown_as_one(shop: Shop, vhost: Vhost) -> None:
    lines = shop.setup("--yes").out.splitlines()
    assert vhost.queues().keys() == ORDERS | MAILS
    at = lines.index(LATER)
    assert lines[at + 1 : at + 5] == [
        "      x-queue-type = quorum",
        "      x-message-ttl = 5000, 10000",
        '      x-dead-letter-exchange = ""',
        "      x-dead-letter-routing-key = orders",
    ]
    told = json.loads(shop.setup("--output", "json").out)
    assert {each["name"]: each["state"] for each in told if each["for"] == "orders"} == {
        **dict.fromkeys(ORDERS, "exists"),
        **dict.fromkeys(DELAYS, "deferred"),
    }


def test_delay_queues_are_made_when_asked_for(shop: Shop, vhost: Vhost) -> None:
    asked = shop.redrive("setup", "--yes", "--queue", "orders", "--delays")
    assert (asked.code, "Made 4 queues." in asked.err) == (0, True)
    assert vhost.queues().keys() == ORDERS | DELAYS
    assert LATER.replace("made when first used", "made") in asked.out.splitlines()
    assert LATER.replace("made when first used", "exists") in shop.setup("--yes").out.splitlines()


def test_delay_queues_that_are_not_alike_are_shown_apart(shop: Shop, vhost: Vhost) -> None:
    vhost.declare("orders_retry.5000", queue_type="quorum", message_ttl=7000)
    ended = shop.setup("--yes")
    lines = ended.out.splitlines()
    assert ended.code == 4
    assert "    queue orders_retry.5000 (wait 5s, then back): differs" in lines
    assert "      x-message-ttl is 7000, wanted is 5000" in lines
    assert "    queue orders_retry.10000 (wait 10s, then back): made when first used" in lines
    assert LATER.replace("orders", "mails") in lines


def test_the_tree_is_drawn_on_a_terminal_and_a_person_is_asked(shop: Shop, vhost: Vhost) -> None:
    refused = on_terminal(shop.folder, "setup", f"{shop.target}:app", typed="n\n", columns=120)
    assert refused.code == 5
    assert "Make 4 queues on amqp://guest:***@" in refused.text
    assert vhost.queues() == {}
    agreed = on_terminal(shop.folder, "setup", f"{shop.target}:app", typed="y\n", columns=120, NO_COLOR="1")
    assert agreed.code == 0
    assert "├── queue orders (messages): made" in agreed.text
    assert vhost.queues().keys() == ORDERS | MAILS


def test_without_a_terminal_and_yes_nothing_is_made(shop: Shop, vhost: Vhost) -> None:
    refused = shop.setup()
    assert (refused.code, vhost.queues()) == (5, {})
    assert "--yes" in refused.err


def test_a_mismatch_is_told_with_exit_4_and_the_rest_is_made(shop: Shop, vhost: Vhost) -> None:
    vhost.declare("orders")
    ended = shop.setup("--yes")
    assert ended.code == 4
    assert "queue orders: x-queue-type is not set, wanted is 'quorum'; it is left as it is" in ended.err
    assert 'queue_type = "classic"' in ended.err
    assert "    queue orders (messages): differs" in ended.out
    assert vhost.queues()["orders"] == {}
    assert vhost.queues().keys() == ORDERS | MAILS


def test_json_tells_everything_for_programs(shop: Shop, vhost: Vhost) -> None:
    vhost.declare("orders")
    told = json.loads(shop.setup("--dry-run", "--output", "json").out)
    [orders] = [each for each in told if each["name"] == "orders"]
    assert (orders["for"], orders["kind"], orders["role"], orders["state"]) == (
        "orders",
        "queue",
        "messages",
        "differs",
    )
    assert (orders["messages"], orders["consumers"], orders["arguments"]) == (0, 0, {"x-queue-type": "quorum"})
    [difference] = orders["differences"]
    assert (difference["argument"], difference["current"], difference["wanted"]) == (
        "x-queue-type",
        None,
        "quorum",
    )


def test_a_user_that_may_not_configure_is_told_so(shop: Shop, rabbitmq: RabbitServer, rabbitmq_url: str) -> None:
    name = f"reader_{uuid4().hex}"
    rabbitmq.api("PUT", f"/users/{name}", {"password": "secret-canary", "tags": ""})
    path = quote(vhost_of(rabbitmq_url), safe="")
    rabbitmq.api("PUT", f"/permissions/{path}/{name}", {"configure": "^$", "write": ".*", "read": ".*"})
    try:
        url = urlsplit(rabbitmq_url)
        shop.url = url._replace(netloc=f"{name}:secret-canary@{url.hostname}:{url.port}").geturl()
        shop.write()
        ended = shop.setup("--yes")
    finally:
        rabbitmq.api("DELETE", f"/users/{name}")
    assert ended.code == 4
    assert "ACCESS_REFUSED" in ended.err
    assert "allowed to configure it" in ended.err
    assert "secret-canary" not in ended.out + ended.err


def test_without_an_app_the_queues_are_those_that_are_named_or_in_the_settings(shop: Shop, vhost: Vhost) -> None:
    nothing = shop.redrive("setup", "--yes")
    assert (nothing.code, "no queue to set up" in nothing.err) == (2, True)
    assert shop.redrive("setup", "--yes", "--queue", " ").code == 2
    assert shop.redrive("setup", "--yes", "--queue", "orders").code == 0
    assert vhost.queues().keys() == ORDERS
    with (shop.folder / "redrive.toml").open("a") as file:
        file.write("[queues.mails]\nconcurrency = 2\n")
    assert shop.redrive("setup", "--yes").code == 0
    assert vhost.queues().keys() == ORDERS | MAILS


def test_exchanges_need_a_name_and_the_app_in_code_gives_one(shop: Shop, vhost: Vhost) -> None:
    shop.write(topology="ttl-loop")
    unnamed = shop.redrive("setup", "--yes", "--queue", "orders")
    assert unnamed.code == 2
    assert "app.name" in unnamed.err
    ended = shop.setup("--yes")
    assert (ended.code, 'Set app.name = "shop" too' in ended.err) == (0, True)
    with (shop.folder / "redrive.toml").open("a") as file:
        file.write('[app]\nname = "shop"\n')
    assert "Set app.name" not in shop.setup("--yes").err
    assert vhost.queues().keys() >= {"orders", "orders.deadletter", "orders.limbu"}
    assert ("shop.workers", "orders", "orders") in vhost.bindings()


def test_what_is_never_declared_later_is_all_made_now(shop: Shop, vhost: Vhost) -> None:
    shop.write(declare="never")
    ended = shop.redrive("setup", "--yes", "--queue", "orders")
    assert ended.code == 0
    assert vhost.queues().keys() == {"orders", "orders_dlq", *(f"orders_retry.{each}" for each in LADDER)}
    shown = f"    queues orders_retry.100 … orders_retry.86400000 ({len(LADDER)} delay queues): made"
    assert shown in ended.out.splitlines()


def test_on_the_embedded_broker_setup_makes_the_files(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    looked = desk.redrive("setup", "--dry-run")
    assert (looked.code, looked.out) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == []
    made = desk.redrive("setup")
    assert made.code == 0
    assert {"redrive.db", "redrive-broker.db"} <= {path.name for path in tmp_path.iterdir()}
    assert "embedded:///redrive-broker.db is ready" in made.err
    assert f"sqlite:///redrive.db is at {HEAD}" in made.err
