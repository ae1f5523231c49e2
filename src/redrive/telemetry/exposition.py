"""What a process tells Prometheus: asked for it, it looks at its parts; between two questions it does nothing.

Labels are bounded: by the queues and handlers of the app in a worker, by `known` where names come from messages.
"""

from __future__ import annotations

import hashlib
import platform
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from redrive import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from prometheus_client import Metric

    Source = Callable[[], Iterable[Metric]]

__all__ = ["CONTENT_TYPE_LATEST", "OTHER", "Exposition", "counter", "gauge", "histogram"]

LONGEST = 200
"""Characters of a name that others have given."""

OTHER = "(other)"
"""In the place of names that are too many to be told apart."""


class Exposition:
    """The text of it, from sources that are asked in their order."""

    def __init__(self, *sources: Source) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        for source in (_build, *sources):
            self._registry.register(_Asked(source))
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _Asked:
    """A source as the library knows one."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def collect(self) -> Iterable[Metric]:
        return self._source()

    def describe(self) -> Iterable[Metric]:
        return ()


def _build() -> Iterator[Metric]:
    told = gauge("redrive_build_info", "1, with what this process is made of.", ("version", "python"))
    told.add_metric((__version__, platform.python_version()), 1)
    yield told


def gauge(name: str, about: str, labels: tuple[str, ...] = ()) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, about, labels=labels)


def counter(name: str, about: str, labels: tuple[str, ...] = ()) -> CounterMetricFamily:
    return CounterMetricFamily(name.removesuffix("_total"), about, labels=labels)


def histogram(name: str, about: str, labels: tuple[str, ...] = ()) -> HistogramMetricFamily:
    return HistogramMetricFamily(name, about, labels=labels)


def add_buckets(
    family: HistogramMetricFamily, labels: tuple[str, ...], buckets: Iterable[tuple[float, int]], total: float
) -> None:
    """`buckets`: each bound with the number of values up to it."""
    told = [("+Inf" if bound == float("inf") else f"{bound:g}", number) for bound, number in buckets]
    family.add_metric(labels, told, total)


def bounded(names: Iterable[str], most: int) -> Mapping[str, str]:
    """The first so many names, each as a label, the others together as OTHER."""
    return {name: label_of(name) if place < most else OTHER for place, name in enumerate(dict.fromkeys(names))}


def label_of(name: str) -> str:
    """The name as it is, or what Prometheus can read of it: others have given it, and one that it cannot read
    would take all metrics with it.
    """
    if len(name) > LONGEST:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        name = f"{name[: LONGEST - 10]}… {digest}"
    if name.isprintable():
        return name
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in name)
