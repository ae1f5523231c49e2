"""The files for Prometheus: promtool has nothing against them, and each alert fires and resolves as it should."""

from __future__ import annotations

import re
from pathlib import Path

from redrive import App, Retry
from redrive.server_settings import ServerSettings
from redrive.telemetry.exposition import Exposition
from redrive.telemetry.worker_metrics import worker_metrics
from redrive.testing.letters import an_entry
from support.api_house import open_house
from support.patience import until
from support.prometheus_programs import promtool
from support.scraped import samples
from support.workshop import workshop

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "prometheus"
ALERTS, RECORDED, CASES = (FOLDER / f"redrive-{name}.yml" for name in ("alerts", "recording", "alerts.test"))


def test_the_example_of_a_configuration_is_one_and_scrapes_every_port_of_the_range_that_the_page_recommends() -> (
    None
):
    example = FOLDER / "prometheus.example.yml"
    assert "2 rule files found" in promtool("check", "config", example)
    [server, *ports] = re.findall(r'"127\.0\.0\.1:(\d+)"', example.read_text())
    [span] = re.findall(r'listen = "127\.0\.0\.1:(\d+-\d+)"', (ROOT / "docs" / "metrics.md").read_text())
    first, last = map(int, span.split("-"))
    assert (int(server), [*map(int, ports)]) == (ServerSettings().port, [*range(first, last + 1)])


def test_the_rules_are_rules_and_do_what_their_cases_say() -> None:
    promtool("check", "rules", ALERTS, RECORDED)
    promtool("test", "rules", CASES)


def test_every_alert_has_a_case_in_which_it_fires_a_severity_and_a_page_that_says_what_to_do() -> None:
    rules, page = ALERTS.read_text(), (ROOT / "docs" / "runbooks.md").read_text()
    names = re.findall(r"- alert: (\w+)", rules)
    fired = re.findall(r"alertname: (\w+)\n\s+exp_alerts:\n\s+- exp_labels", CASES.read_text())
    assert sorted(set(fired)) == sorted(names)
    assert len(re.findall(r"severity: (?:warning|critical)", rules)) == len(names)
    links = re.findall(r"runbook: docs/runbooks\.md#(\S+)", rules)
    headings = {each.lower().replace(" ", "-") for each in re.findall(r"^## (.+)$", page, re.MULTILINE)}
    assert len(links) == len(names)
    assert set(links) == headings


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
        await house.letter()
        return [worker, (await house.client.get("/metrics")).text]


async def test_what_is_told_is_as_prometheus_wants_it(tmp_path: Path) -> None:
    for text in await told(tmp_path):
        own = [line for line in text.splitlines() if " process_" not in line and not line.startswith("process_")]
        promtool("check", "metrics", given="\n".join([*own, ""]).encode())


async def test_no_name_that_others_have_given_takes_the_metrics_away(tmp_path: Path) -> None:
    names = ["\ud800", "\ud801", "a\x00b", "x" * 5000, "x" * 5001, "line\nbreak", 'quo"te\\', "\u202e", "пл"]
    async with open_house(tmp_path) as house:
        for name in names:
            await house.store.record(an_entry(queue=name))
        text = (await house.client.get("/metrics")).text
    own = [line for line in text.splitlines() if "process_" not in line]
    promtool("check", "metrics", given="\n".join([*own, ""]).encode())
    queues = [dict(labels)["queue"] for name, labels in samples(text) if name == "redrive_queue_dead_letters"]
    assert len(set(queues)) == len(queues) == len(names)
    assert max(map(len, queues)) <= 200


async def test_the_rules_ask_for_metrics_that_exist(tmp_path: Path) -> None:
    exist = {name for text in await told(tmp_path) for name, _ in samples(text)}
    others = {"redrive_collector_connected", "redrive_collector_refused"}  # a collector's
    asked = set(re.findall(r"\bredrive_\w+", ALERTS.read_text() + RECORDED.read_text()))
    assert asked - others <= exist


def test_a_rate_is_taken_of_what_only_grows_and_a_difference_of_what_goes_up_and_down() -> None:
    """SD7: a rate over a gauge takes every fall for a restart, and tells of letters that nobody has lost."""
    dashboard = (ROOT / "deploy" / "grafana" / "redrive.json").read_text()
    every = ALERTS.read_text() + RECORDED.read_text() + dashboard
    grows = set(re.findall(r"\b(?:rate|irate|increase)\((\w+)", every))
    moves = set(re.findall(r"\b(?:delta|idelta|deriv)\((\w+)", every))

    assert grows
    assert moves
    assert {name for name in grows if not name.endswith(("_total", "_count", "_sum", "_bucket"))} == set()
    assert {name for name in moves if name.endswith(("_total", "_count", "_sum", "_bucket"))} == set()
