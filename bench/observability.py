"""What metrics and traces cost where every message succeeds: the worker of `embedded`, with and without in turns.

Each run is a process of its own, for what is imported and set up cannot be undone. Measured is its processor time
per message once a fifth of them is handled, all threads included: others who use the machine change that less than
seconds. Ratios are those of each round, of which the median is told. A worker counts always; where it is measured
without, what counts is replaced in that process by a call that does nothing. Whoever asks for the metrics every
second is in this process, which is not measured. Spans go through the SDK's own batches to an exporter that throws
them away.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator

from bench.embedded import run_redrive
from bench.measuring import NO_AIM, Aim, Benchmark
from redrive.garbage import seldom_looked_for
from redrive.telemetry.counts import HandlerCounts
from redrive.telemetry.logs import configure_logs

MESSAGES = {1: 1_500, 100: 10_000}
NEITHER, COUNTED = "neither", "metrics, counted and not asked for"
METRICS = "metrics, asked for every second"
INSTALLED = "OpenTelemetry set up, [tracing] off"
SOME, ALL = "traces, one in a hundred", "traces, all"
RATIOS = {SOME: 0.01, ALL: 1.0}


def main(*arguments: str) -> None:
    if arguments:  # as a process of `measured`
        print(json.dumps(_run(*arguments)))
        return
    benchmark = Benchmark(
        "observability",
        "µs of processor per message",
        ("opentelemetry-sdk", "prometheus-client"),
        "handle and acknowledge on one SQLite file, with and without metrics and traces",
    )
    for case, together in (("one in flight", 1), ("100 in flight", 100)):
        benchmark.measure(case, systems(together))
        for each in (COUNTED, METRICS):
            benchmark.compare(Aim(case, each, NEITHER, "at most 1.05"), paired=True)
        for each in (INSTALLED, SOME):
            benchmark.compare(Aim(case, each, COUNTED, "at most 1.05"), paired=True)
        benchmark.compare(Aim(case, ALL, COUNTED, NO_AIM), paired=True)
    benchmark.save()


def systems(together: int) -> dict[str, Callable[[], float]]:
    def system(name: str) -> Callable[[], float]:
        return lambda: measured(name, together)

    return {name: system(name) for name in (NEITHER, COUNTED, METRICS, INSTALLED, SOME, ALL)}


def measured(system: str, together: int) -> float:
    port = _free_port()
    command = [sys.executable, "-c", "import sys; from bench.observability import main; main(*sys.argv[1:])"]
    with _asking(port) if system == METRICS else contextlib.nullcontext():
        told = subprocess.check_output([*command, system, str(together), str(port)])
    return float(json.loads(told))


def _run(system: str, together: str, port: str) -> float:
    configure_logs(level="error")
    sections: dict[str, object] = {}
    if system == NEITHER:
        _count_nothing()
    if system == METRICS:
        sections["metrics"] = {"listen": f"127.0.0.1:{port}"}
    if system in RATIOS:
        sections["tracing"] = {"enabled": True, "sample_ratio": RATIOS[system]}
    if system in {INSTALLED, *RATIOS}:
        _export_nowhere(globally=system == INSTALLED)
    with seldom_looked_for():  # as `redrive work` does
        return run_redrive(MESSAGES[int(together)], int(together), **sections).cpu * 1e6


def _count_nothing() -> None:
    def nothing(*_given: object, **_more: object) -> None:
        pass

    for name in ("count_success", "count_failure", "count_letter"):
        assert callable(getattr(HandlerCounts, name))
        setattr(HandlerCounts, name, nothing)


def _export_nowhere(*, globally: bool) -> None:
    """OpenTelemetry as an app has it that traces for itself; or as Redrive sets it up, but for the exporter."""
    from opentelemetry import trace  # noqa: PLC0415  the other systems do without it
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  as above
    from opentelemetry.sdk.trace.export import (  # noqa: PLC0415  as above
        BatchSpanProcessor,
        SpanExporter,
        SpanExportResult,
    )

    from redrive import tracing_wiring  # noqa: PLC0415  as above

    class Nowhere(SpanExporter):
        def export(self, _spans: object) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    if globally:
        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(Nowhere()))
        trace.set_tracer_provider(provider)
    else:
        tracing_wiring._exporters = lambda: [Nowhere()]  # noqa: SLF001  no package announces one that throws away


@contextlib.contextmanager
def _asking(port: int) -> Iterator[None]:
    """Every second, as soon as somebody is there. At least one has to be told something."""
    over, told = threading.Event(), list[int]()

    def ask() -> None:
        while not over.wait(1.0 if told else 0.05):
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
                told.append(len(page.read()))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        over.set()
        asking.join()
    assert told


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
