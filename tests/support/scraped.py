"""Metrics as Prometheus reads them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Mapping

    Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


class Answer(NamedTuple):
    status: int
    head: str
    body: str


def samples(text: str) -> Samples:
    """Every sample by its name and labels; no two may have the same."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in text_string_to_metric_families(text):
        for each in family.samples:
            key = each.name, frozenset(each.labels.items())
            assert key not in found, key
            found[key] = each.value
    return found


def value(text: str, name: str, **labels: str) -> float:
    return samples(text)[name, frozenset(labels.items())]


async def ask(port: int, request: bytes) -> Answer:
    """One request to a port of this machine, and what comes back until the other side has enough."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        await writer.drain()
        head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    finally:
        writer.close()
    return Answer(int(head.split()[1]) if head else 0, head, body)


async def get(port: int, path: str = "/metrics", *headers: str) -> Answer:
    lines = [f"GET {path} HTTP/1.1", "Host: here", *headers]
    return await ask(port, "\r\n".join([*lines, "", ""]).encode())
