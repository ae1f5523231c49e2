"""A real Prometheus of a test's own, and what its HTTP API says: which alerts fire, and what a query finds."""

from __future__ import annotations

import json
import math
import subprocess
import time
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx2

from support.hurried_rules import SCRAPE_EVERY, alerts_of, hurried
from support.loopback_ports import free_ports
from support.patience import until
from support.prometheus_programs import program

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    Meanwhile = Callable[[], Awaitable[object]]

_WITHIN = 120.0
"""Seconds; so long only where the machine is busy with other tests."""
_MOST_POINTS = 300


class Scraped(NamedTuple):
    ports: Mapping[str, int]
    """Of this machine, by the name of the job."""
    token: str


class Alert(NamedTuple):
    name: str
    labels: Mapping[str, str]
    summary: str
    firing: bool


class PrometheusServer:
    """It remembers which alerts were seen to fire and to resolve."""

    def __init__(self, client: httpx2.AsyncClient, names: Sequence[str]) -> None:
        self._client = client
        self._names = names
        self._began = time.time()
        self.summaries: dict[str, str] = {}
        """Of each alert that fired: what it tells a person."""
        self.resolved: set[str] = set()
        """Of those that fired before."""

    async def fire(self, *names: str, meanwhile: Meanwhile | None = None, **labels: str) -> None:
        """Until every one of them fires, with these labels if any are given. `meanwhile` is done over and over."""

        async def firing(name: str) -> Alert | None:
            if meanwhile is not None:
                await meanwhile()
            return await self._firing(name, labels)

        for name in names:
            assert name in self._names, f"no alert {name} is shipped"
            found: Alert = await self._until(partial(firing, name), f"{name} {labels or ''} does not fire")
            self.summaries[name] = found.summary

    async def resolve(self, *names: str, **labels: str) -> None:
        """Until none of them fires any more, and not for want of an answer: every target was scraped."""
        for name in names:
            assert name in self.summaries, f"{name} never fired"
            await self._until(partial(self._resolved, name, labels), f"{name} {labels or ''} does not resolve")
            self.resolved.add(name)

    async def quiet(self) -> None:
        """Until no alert fires or is about to, though every target was scraped."""

        async def nothing() -> bool:
            return not await self.alerts() and await self._scrapes_all()

        await self._until(nothing, "it is not quiet")

    async def alerts(self) -> list[Alert]:
        """Those that fire, and those that will unless their cause goes away."""
        return [
            Alert(
                each["labels"]["alertname"],
                each["labels"],
                each["annotations"]["summary"],
                each["state"] == "firing",
            )
            for each in (await self._asked("alerts"))["alerts"]
        ]

    async def trouble_with_rules(self) -> list[str]:
        """What Prometheus itself says went wrong with them."""
        groups = (await self._asked("rules"))["groups"]
        rules = [each for group in groups for each in group["rules"]]
        assert rules
        return [f"{each['name']}: {each.get('lastError')}" for each in rules if each["health"] != "ok"]

    async def finds(self, query: str) -> bool:
        """Whether a panel that shows everything since the beginning would show anything."""
        until_now = time.time()
        step = max(1.0, (until_now - self._began) / _MOST_POINTS)
        found = await self._asked("query_range", query=query, start=self._began, end=until_now, step=step)
        values = [float(value) for series in found["result"] for _, value in series["values"]]
        return not all(map(math.isnan, values))

    async def known_names(self) -> set[str]:
        """Of every metric that it ever scraped or made."""
        return set(await self._asked("label/__name__/values"))

    async def _until(self, condition: Callable[[], Awaitable[Any]], otherwise: str) -> Any:
        try:
            return await until(condition, within=_WITHIN)
        except AssertionError as error:
            states = [f"{each.name} {'fires' if each.firing else 'waits'}" for each in await self.alerts()]
            raise AssertionError(f"{otherwise}; Prometheus has {', '.join(states) or 'no alerts'}") from error

    async def _firing(self, name: str, labels: Mapping[str, str]) -> Alert | None:
        for each in await self.alerts():
            if each.firing and each.name == name and labels.items() <= each.labels.items():
                return each
        return None

    async def _resolved(self, name: str, labels: Mapping[str, str]) -> bool:
        return await self._firing(name, labels) is None and await self._scrapes_all()

    async def _scrapes_all(self) -> bool:
        away = await self._asked("query", query="up == 0")
        return not away["result"]

    async def _asked(self, what: str, **values: Any) -> Any:
        answer = await self._client.get(f"/api/v1/{what}", params=values)
        told = answer.json()
        assert told["status"] == "success", told
        return told["data"]


@asynccontextmanager
async def prometheus(
    folder: Path, scraped: Scraped, *, alerts: Path, recorded: Path
) -> AsyncIterator[PrometheusServer]:
    """With its files in this folder, and these rules in a hurry."""
    executable = program("prometheus")
    for rules in (alerts, recorded):
        (folder / rules.name).write_text(hurried(rules.read_text()))
    configuration = _configuration([alerts.name, recorded.name], scraped)
    (folder / "prometheus.yml").write_text(json.dumps(configuration))  # which is YAML as well
    [port] = free_ports(1)
    given = {
        "config.file": folder / "prometheus.yml",
        "storage.tsdb.path": folder / "data",
        "web.listen-address": f"127.0.0.1:{port}",
    }
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [executable, *(f"--{name}={value}" for name, value in given.items())],
            cwd=folder,
            stdout=said,
            stderr=said,
        )
    try:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            await until(lambda: _is_ready(client, process, folder), within=_WITHIN)
            yield PrometheusServer(client, alerts_of(alerts))
    finally:
        process.kill()
        process.wait()


def _configuration(rules: list[str], scraped: Scraped) -> dict[str, Any]:
    every = {"scrape_interval": SCRAPE_EVERY, "scrape_timeout": SCRAPE_EVERY, "evaluation_interval": SCRAPE_EVERY}
    jobs = [
        {
            "job_name": name,
            "authorization": {"credentials": scraped.token},
            "static_configs": [{"targets": [f"127.0.0.1:{port}"]}],
        }
        for name, port in scraped.ports.items()
    ]
    return {"global": every, "rule_files": rules, "scrape_configs": jobs}


async def _is_ready(client: httpx2.AsyncClient, process: subprocess.Popen[bytes], folder: Path) -> bool:
    assert process.poll() is None, (folder / "said").read_text()
    try:
        return (await client.get("/-/ready")).is_success
    except httpx2.TransportError:
        return False
