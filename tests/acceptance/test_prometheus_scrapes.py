"""A real Prometheus scrapes a real server and a real worker: each shipped alert fires on real traffic and resolves
when its cause is gone, and whatever the dashboard and the recording rules ask for is there.

One test for all of it: a Prometheus for each would take minutes, and what one alert needs is the data of queries.
"""

from __future__ import annotations

import asyncio
import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.hurried_rules import HURRIED_THRESHOLDS, alerts_of, hurried, recorded_by
from support.loopback_ports import free_ports
from support.patience import until
from support.prometheus_server import Scraped, prometheus
from support.watched_shop import COLLECTED, SESAME, WatchedShop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.postgres_server import PrivatePostgres
    from support.prometheus_server import PrometheusServer

ROOT = Path(__file__).parents[2]
ALERTS, RECORDED = (ROOT / "deploy" / "prometheus" / f"redrive-{name}.yml" for name in ("alerts", "recording"))
DASHBOARD = ROOT / "deploy" / "grafana" / "redrive.json"
METRICS_PAGE = ROOT / "docs" / "metrics.md"

NEVER_FIRES: dict[str, str] = {}
"""Shipped alerts that no traffic of a test can cause, each with the reason. There is none."""

_REFUSING = """
CREATE FUNCTION refused() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'not here'; END $$ LANGUAGE plpgsql;
CREATE TRIGGER refusing BEFORE INSERT ON redrive.letters FOR EACH ROW WHEN (NEW.queue = 'refused')
  EXECUTE FUNCTION refused();
"""
_ADMITTING = "DROP TRIGGER refusing ON redrive.letters"


class Story:
    """What happens to the shop, and what Prometheus has to say to it."""

    def __init__(self, shop: WatchedShop, told: PrometheusServer, postgres: PrivatePostgres) -> None:
        self.shop = shop
        self.told = told
        self.postgres = postgres

    async def letters_pile_up_until_somebody_decides(self) -> None:
        """More than a thousand, and more every second: their number, pace and age, and the handler behind it."""
        self.shop.fail("orders")
        await self.shop.send("orders", 1100)
        more = partial(self.shop.send, "orders")
        await self.told.fire("DeadLetterRate", meanwhile=more)
        await self.told.fire("HandlerFails", handler="handle_orders", meanwhile=more)
        await self.told.fire("DeadLettersGrow", queue="orders")
        await self.told.fire("DeadLettersPending", "DeadLettersOld")
        self.shop.mend("orders")
        await self.shop.send("orders", 10)
        await self.shop.discard("orders")
        await self.told.resolve("HandlerFails", handler="handle_orders")
        await self.told.resolve("DeadLettersGrow", queue="orders")
        await self.told.resolve("DeadLettersPending")

    async def a_failure_is_critical(self) -> None:
        self.shop.fail("checks")
        await self.shop.send("checks")
        await self.told.fire("CriticalFailure", handler="handle_checks", queue="checks")
        self.shop.mend("checks")
        await self.told.resolve("CriticalFailure")

    async def what_a_handler_needs_is_down(self) -> None:
        self.shop.fail("bills")
        more = partial(self.shop.send, "bills")  # each that is tried becomes a letter
        await self.told.fire("BreakerOpen", "ConsumerNotReady", meanwhile=more, queue="bills")
        self.shop.mend("bills")
        await self.told.resolve("BreakerOpen", "ConsumerNotReady")

    async def redrives_fail_again(self) -> None:
        self.shop.fail("mails")
        await self.shop.send("mails", 10)
        await until(lambda: self.shop.open_letters("mails", at_least=10), within=60.0)
        await until(lambda: self.told.finds('redrive_redrives_total{queue="mails"}'), within=60.0)
        await self.shop.redrive("retry", "--queue", "mails", "--canary", "6", "--detach", "--yes")
        await self.told.fire("RedrivesComeBack", queue="mails")
        await self.told.fire("RunsStopped", status="STOPPED")
        self.shop.mend("mails")
        await self.shop.redrive("retry", "--queue", "mails", "--rate", "0.1", "--detach", "--yes")
        [run, *_] = json.loads(await self.shop.redrive("runs", "list", "--output", "json"))
        await self.shop.redrive("runs", "pause", run["id"])
        await self.told.fire("RunsPaused")
        await self.shop.redrive("runs", "cancel", run["id"], "--yes")
        await self.shop.redrive("retry", "--queue", "mails", "--detach", "--yes")
        confirmed = 'redrive_redrives_total{queue="mails",outcome="confirmed"} > 0'
        await until(lambda: self.told.finds(confirmed), within=60.0)  # before anybody discards what is left
        await self.told.resolve("RunsPaused", "RunsStopped", "RedrivesComeBack")

    async def the_store_refuses_what_is_collected(self) -> None:
        """As a hand at the database can make it. It is offered again each minute, and so resolves later on."""
        self.postgres.run(_REFUSING, url=self.shop.store_url)
        await self.shop.send_dead("refused")
        await self.told.fire("CollectorRefused", queue=COLLECTED)
        self.postgres.run(_ADMITTING, url=self.shop.store_url)

    async def the_store_is_away(self) -> None:
        """Letters wait in the spool, of which the disk damages a part meanwhile."""
        self.postgres.stop()
        self.shop.fail("orders")
        await self.shop.send("orders", 20)
        await self.shop.send_dead("legacy", 120)
        await self.told.fire("StoreDown", job="server")
        await self.told.fire("StoreDown", job="worker")
        await self.told.fire("SpoolInUse", "CollectorDown")
        self.shop.mend("orders")
        self.shop.damage_spool()
        self.postgres.start()
        await self.told.fire("SpoolDamaged")
        await self.told.fire("DeadLettersGrow", queue="legacy")  # of which nothing was known before
        await self.told.resolve("StoreDown", "SpoolInUse", "CollectorDown")
        self.shop.tidy_up_spool()
        await self.told.resolve("SpoolDamaged")

    async def everything_is_decided(self) -> None:
        await self.told.resolve("CollectorRefused")
        await self.shop.discard("orders", "checks", "bills", "mails", "legacy", "refused")
        await self.told.resolve("DeadLetterRate", "DeadLettersOld", "DeadLettersGrow")
        await self.told.quiet()


async def test_every_alert_fires_and_resolves_on_real_traffic_and_every_query_finds_data(
    tmp_path: Path, own_postgres: PrivatePostgres
) -> None:
    for name in ("shop", "prometheus"):
        (tmp_path / name).mkdir()
    server, worker = free_ports(2)
    url = own_postgres.emptied_store()
    shop = WatchedShop(tmp_path / "shop", store_url=url, server_port=server, worker_port=worker)
    scraped = Scraped({"server": server, "worker": worker}, token=SESAME)
    async with prometheus(tmp_path / "prometheus", scraped, alerts=ALERTS, recorded=RECORDED) as told:
        await told.fire("ServerGone")
        async with shop.open():
            await told.resolve("ServerGone")
            await told.quiet()
            story = Story(shop, told, own_postgres)
            async with asyncio.TaskGroup() as together:
                for begin in (
                    story.letters_pile_up_until_somebody_decides,
                    story.a_failure_is_critical,
                    story.what_a_handler_needs_is_down,
                    story.redrives_fail_again,
                    story.the_store_refuses_what_is_collected,
                ):
                    together.create_task(begin())
            await story.the_store_is_away()
            await story.everything_is_decided()
        await all_alerts_were_seen(told)
        await all_questions_are_answered(told)
        await the_page_tells_what_there_is(told)


async def all_alerts_were_seen(told: PrometheusServer) -> None:
    """To fire, in words that a person can read, and to resolve."""
    assert told.resolved == set(alerts_of(ALERTS)) - NEVER_FIRES.keys()
    assert await told.trouble_with_rules() == []
    for name, summary in told.summaries.items():
        assert not re.search(r"[<>]|  |%!|^ | $| of$", summary), f"{name}: {summary}"


async def all_questions_are_answered(told: PrometheusServer) -> None:
    assert [name for name in recorded_by(RECORDED) if not await told.finds(name)] == []
    empty = [(title, query) for title, query in panel_queries() if not await told.finds(query)]
    assert empty == []


async def the_page_tells_what_there_is(told: PrometheusServer) -> None:
    """No more, and no less."""
    there = {re.sub(r"_(bucket|sum|count)$", "", name) for name in await told.known_names()}
    told_of = re.findall(r"`(redrive_\w+?)(?:_bucket)?(?:\{[^`]*)?`", METRICS_PAGE.read_text())
    assert set(told_of) == {name for name in there if name.startswith("redrive_")}


def panel_queries() -> Iterator[tuple[str, str]]:
    """Each query of the dashboard, with the title of its panel. Its one variable is where the data comes from."""
    dashboard = json.loads(DASHBOARD.read_text())
    assert [each["type"] for each in dashboard["templating"]["list"]] == ["datasource"]
    for panel in dashboard["panels"]:
        targets = panel.get("targets", [])
        assert targets or panel["type"] == "row", f"{panel['title']} asks nothing"
        for target in targets:
            assert "$" not in target["expr"], f"{target['expr']}: what would Grafana put there?"
            yield panel["title"], target["expr"]


def test_the_rules_in_a_hurry_are_the_shipped_ones_but_for_their_times() -> None:
    for path in (ALERTS, RECORDED):
        shipped, soon = path.read_text(), hurried(path.read_text())
        for threshold, instead in HURRIED_THRESHOLDS.items():
            shipped = shipped.replace(threshold, instead)
        assert re.sub(r"\b\d+[smhd]\b", "", shipped) == re.sub(r"\b\d+[smhd]\b", "", soon)
    assert all(threshold in ALERTS.read_text() for threshold in HURRIED_THRESHOLDS)
    assert hurried("for: 5m\nexpr: rate(a[1m]) - a offset 1h") == "for: 6s\nexpr: rate(a[4s]) - a offset 30s"
    with pytest.raises(KeyError):
        hurried("for: 7m")
