"""Peers that take turns: the table of their rates, with processor time and memory beside them."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from bench.measuring import RUNS, Aim, Benchmark
from bench.peer_runs import Measured

P = TypeVar("P")


class PeerTable:
    """The benchmark with, beside every median rate, the medians of processor time and memory."""

    def __init__(self, benchmark: Benchmark, given: argparse.Namespace) -> None:
        self._benchmark = benchmark
        self._given = given

    def measure(self, case: str, peers: Mapping[str, P], run: Callable[[P], Measured]) -> bool:
        """Whether the case was asked for."""
        chosen = [name for name in peers if self._given.system in name]
        if self._given.case not in case or not chosen:
            return False
        found: dict[str, list[Measured]] = {}

        def once(name: str) -> float:
            measured = run(peers[name])
            found.setdefault(name, []).append(measured)
            return measured.per_second

        self._benchmark.measure(case, {name: partial(once, name) for name in chosen}, runs=self._given.runs)
        for row in self._benchmark.rows[-len(chosen) :]:
            runs = found[row["system"]]
            row["cpu_us"] = statistics.median(each.cpu_microseconds for each in runs)
            row["peak_mib"] = statistics.median(each.megabytes for each in runs)
        return True

    def compare(self, aim: Aim) -> None:
        """If both were measured."""
        measured = {row["system"] for row in self._benchmark.rows if row["case"] == aim.case}
        if {aim.ours, aim.other} <= measured:
            self._benchmark.compare(aim)


def arguments(name: str, options: tuple[str, ...], *, messages: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"make bench NAME={name}", description="Options go into ARGS.")
    parser.add_argument("--messages", type=int, default=messages, help="per run; fast systems take a multiple")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--case", default="", help="only cases with this in their name")
    parser.add_argument("--system", default="", help="only systems with this in their name")
    return parser.parse_args(options)
