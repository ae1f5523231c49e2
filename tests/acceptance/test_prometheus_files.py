"""The files for Prometheus: promtool has nothing against them, and each alert fires and resolves as it should."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from redrive import App, Retry
from redrive.dead_letter import Actor, Transition
from redrive.server_settings import ServerSettings
from redrive.telemetry.collector_metrics import collector_metrics
from redrive.telemetry.engine_metrics import engine_metrics
from redrive.telemetry.exposition import Exposition
from redrive.telemetry.worker_metrics import worker_metrics
from redrive.testing.letters import an_entry
from support.api_house import open_house
from support.hurried_rules import recorded_by
from support.patience import until
from support.prometheus_programs import promtool
from support.scraped import samples
from support.workshop import workshop

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "prometheus"
EXAMPLE, COMPOSED = FOLDER / "prometheus.example.yml", ROOT / "deploy" / "docker" / "prometheus.yml"
DASHBOARD, PAGE = ROOT / "deploy" / "grafana" / "redrive.json", ROOT / "docs" / "metrics.md"
ALERTS, RECORDED, CASES = (FOLDER / f"redrive-{name}.yml" for name in ("alerts", "recording", "alerts.test"))


def test_the_example_of_a_configuration_is_one_and_asks_the_server_and_the_first_worker() -> None:
    assert "2 rule files found" in promtool("check", "config", EXAMPLE)
    server, workers = yaml.safe_load(EXAMPLE.read_text())["scrape_configs"]
    assert server["static_configs"] == [{"targets": [f"127.0.0.1:{ServerSettings().port}"]}]
    [named] = workers["file_sd_configs"]
    [found] = [yaml.safe_load((FOLDER / name).read_text()) for name in named["files"]]
    [listen] = re.findall(r'listen = "(127\.0\.0\.1:\d+)-\d+"', PAGE.read_text())
    assert found == [{"targets": [listen]}]


def test_every_window_of_a_rule_and_of_the_dashboard_has_four_scrapes_in_it() -> None:
    """Of the files that are shipped, and of a Prometheus that was there before, whose default is a minute."""
    configured = [yaml.safe_load(path.read_text())["global"] for path in (EXAMPLE, COMPOSED)]
    assert [(each["scrape_interval"], each["evaluation_interval"]) for each in configured] == [("15s", "15s")] * 2
    seconds = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    windows = re.findall(r"\[(\d+)([smhd])\]", ALERTS.read_text() + RECORDED.read_text() + DASHBOARD.read_text())
    assert windows
    assert min(int(number) * seconds[unit] for number, unit in windows) >= 4 * 60


def test_the_rules_are_rules_and_do_what_their_cases_say() -> None:
    promtool("check", "rules", ALERTS, RECORDED)
    promtool("test", "rules", CASES)


def test_every_alert_has_a_case_in_which_it_fires_a_severity_and_a_page_that_says_what_to_do() -> None:
    rules, page = ALERTS.read_text(), (ROOT / "docs" / "runbooks.md").read_text()
    names = re.findall(r"- alert: (\w+)", rules)
    fired = re.findall(r"alertname: (\w+)\n\s+exp_alerts:\n\s+- exp_labels", CASES.read_text())
    assert sorted(set(fired)) == sorted(names)
    assert len(re.findall(r"severity: (?:warning|critical)", rules)) == len(names)
    links = re.findall(r"runbook_url: https://redrive\.example/docs/runbooks\.md#(\S+)", rules)
    headings = {each.lower().replace(" ", "-") for each in re.findall(r"^## (.+)$", page, re.MULTILINE)}
    assert len(links) == len(names)
    assert set(links) == headings


def test_one_line_makes_every_link_lead_to_where_the_runbooks_are(tmp_path: Path) -> None:
    rules = tmp_path / "redrive-alerts.yml"
    for place in (ALERTS, PAGE):
        shutil.copy(ALERTS, rules)
        [line] = re.findall(r"^(?:#   )?(sed -i .+)$", place.read_text(), re.MULTILINE)
        subprocess.run(line, shell=True, cwd=tmp_path, check=True)  # noqa: S602  as whoever reads it would
        links = re.findall(r"runbook_url: (\S+)#", rules.read_text())
        assert set(links) == {"https://wiki.shop.example/redrive/runbooks.md"}


async def told(folder: Path) -> list[str]:
    """By a worker and by a server."""
    app = App("shop")

    @app.handler("orders", retry=Retry(1))
    def charge(_order: int) -> None:
        raise ValueError("no customer")

    async with workshop(app, folder) as shop:
        await shop.send("orders", 1)
        await until(shop.empty)
        worker = Exposition(lambda: worker_metrics(shop.worker)).text().decode()
    (folder / "house").mkdir()
    async with open_house(folder / "house") as house:
        await house.store.change([await house.letter()], Transition.DISCARD, by=Actor("ann"))
        return [worker, (await house.client.get("/metrics")).text]


async def test_what_is_told_is_as_prometheus_wants_it(tmp_path: Path) -> None:
    for text in await told(tmp_path):
        promtool("check", "metrics", given=text.encode())


async def test_no_name_that_others_have_given_takes_the_metrics_away(tmp_path: Path) -> None:
    names = ["\ud800", "\ud801", "a\x00b", "x" * 5000, "x" * 5001, "line\nbreak", 'quo"te\\', "\u202e", "пл"]
    async with open_house(tmp_path) as house:
        for name in names:
            await house.store.record(an_entry(queue=name))
        text = (await house.client.get("/metrics")).text
    promtool("check", "metrics", given=text.encode())
    queues = [dict(labels)["queue"] for name, labels in samples(text) if name == "redrive_queue_dead_letters"]
    assert len(set(queues)) == len(queues) == len(names)
    assert max(map(len, queues)) <= 200


async def test_the_rules_ask_for_metrics_that_exist_rates_of_what_grows_and_differences_of_what_moves(
    tmp_path: Path,
) -> None:
    """SD7: a rate over a gauge takes every fall for a restart, and tells of letters that nobody has lost."""
    types = types_of(*await told(tmp_path), of_the_rest())
    every = ALERTS.read_text() + RECORDED.read_text() + DASHBOARD.read_text()

    assert set(re.findall(r"\bredrive_\w+", every)) <= types.keys()
    assert "counter" in {types[name] for name in asked_by(GROWS, every)}
    assert "gauge" in {types[name] for name in asked_by(MOVES, every)}
    assert misused(every, types) == set()
    assert misused("rate(dlq_events_total[5m]) + increase(redrive_runs[1h])", types) == {
        "dlq_events_total",
        "redrive_runs",
    }
    assert misused("delta(redrive_handler_seconds_sum[1h])", types) == {"redrive_handler_seconds_sum"}


GROWS, MOVES = r"\b(?:rate|irate|increase|resets)", r"\b(?:delta|idelta|deriv|predict_linear)"
GROWING_RECORDS = re.compile(r"dlq_reprocess_count|dlq_\w+_seconds_(?:bucket|sum|count)")
"""Recorded of counters as they are. Every other record is a gauge, whatever its name ends in."""


def types_of(*texts: str) -> dict[str, str]:
    """What is told of each name that a query may ask for: of a histogram all parts of it are counters."""
    types = {name: "counter" if GROWING_RECORDS.fullmatch(name) else "gauge" for name in recorded_by(RECORDED)}
    for family in (family for text in texts for family in text_string_to_metric_families(text)):
        of_parts = {"histogram": "counter"}.get(family.type, family.type)
        types |= {each.name: of_parts for each in family.samples}
    return types


def misused(queries: str, types: Mapping[str, str]) -> set[str]:
    """Of what a rate is taken and does not only grow, and the other way round."""
    falling = {name for name in asked_by(GROWS, queries) if types[name] != "counter"}
    return falling | {name for name in asked_by(MOVES, queries) if types[name] != "gauge"}


def asked_by(functions: str, queries: str) -> set[str]:
    return set(re.findall(rf"{functions}\(\s*(\w+)", queries))


def of_the_rest() -> str:
    """By a collector and an engine."""
    counts = SimpleNamespace(new=1, again=0, came_back=0, quarantined=0, refused=0)
    collector: Any = SimpleNamespace(collected={"orders_dlq": counts}, connected=lambda _queue: True)
    engine: Any = SimpleNamespace(under_way=1)
    return Exposition(lambda: collector_metrics(collector), lambda: engine_metrics(engine)).text().decode()
