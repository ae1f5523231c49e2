"""`make mutants`: every mutant of the tables, a few at once; each must make one of its tests fail.

First all their tests run on the unchanged tree and must pass. Exits with 1 if that fails, or if a mutant survived
or cannot be tried.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mutants.tables import MUTANTS
from mutants.workbench import Ended, Fate, Workbench
from support import rabbitmq_server
from support.rabbitmq_server import EXISTING, EXISTING_MANAGEMENT, PrivateRabbit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mutants.mutant import Mutant

_AT_ONCE = 4
"""A test that notices a lost message mostly waits for it."""


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _chosen(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="redrive-mutants-") as folder, _broker() as environment:
        bench = Workbench(Path(folder), environment)
        print(f"the tests of {len(chosen)} mutants on the unchanged tree ...", flush=True)
        unchanged = bench.try_unchanged(dict.fromkeys(test for mutant in chosen for test in mutant.tests))
        if unchanged.returncode != 0:
            print(unchanged.stdout, unchanged.stderr, "they must all run and pass without a mutant", sep="\n")
            return 1
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            ended = dict(zip(chosen, pool.map(partial(_tried, bench), chosen), strict=True))
    return _tell(ended, time.monotonic() - began)


def _chosen(arguments: Sequence[str] | None) -> list[Mutant]:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="this mutant; may be repeated")
    parser.add_argument("--list", action="store_true", help="name the mutants and what each would do")
    told = parser.parse_args(arguments)
    if told.list:
        print("\n".join(f"{mutant.name:42} {mutant.why}" for mutant in MUTANTS))
        sys.exit(0)
    unknown = set(told.only or ()) - {mutant.name for mutant in MUTANTS}
    if unknown:
        parser.error(f"no mutant {', '.join(sorted(unknown))}: see --list")
    return [mutant for mutant in MUTANTS if not told.only or mutant.name in told.only]


@contextmanager
def _broker() -> Iterator[Mapping[str, str]]:
    """One node for all runs: each would otherwise wait for its own."""
    server = rabbitmq_server.available()
    try:
        given = isinstance(server, PrivateRabbit)
        yield {EXISTING: server.url, EXISTING_MANAGEMENT: server.management_url} if given else {}
    finally:
        server.clean_up()


def _tried(bench: Workbench, mutant: Mutant) -> Ended:
    began = time.monotonic()
    ended = bench.try_mutant(mutant)
    print(f"{ended.fate:9} {mutant.name} ({time.monotonic() - began:.0f} s)", flush=True)
    return ended


def _tell(ended: Mapping[Mutant, Ended], seconds: float) -> int:
    print("\nmutant                                     fate      noticed by")
    for mutant, end in ended.items():
        print(f"{mutant.name:42} {end.fate:9} {end.told}")
    fates = Counter(end.fate for end in ended.values())
    print(f"\n{', '.join(f'{count} {fate}' for fate, count in fates.items())} in {seconds:.0f} s")
    for mutant, end in ended.items():
        if end.fate is not Fate.KILLED:
            print(f"{mutant.name} in src/redrive/{mutant.file}: {mutant.why}", file=sys.stderr)
    return 0 if set(fates) <= {Fate.KILLED} else 1


if __name__ == "__main__":
    sys.exit(main())
