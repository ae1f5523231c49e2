"""Fills a kept server with letters, for looking around in and for the benchmark `store`."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.seeding import seeded
from bench.server import running


def main(*options: str) -> None:
    parser = argparse.ArgumentParser(prog="bench seed", description=__doc__)
    parser.add_argument("--letters", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path, required=True, metavar="FOLDER", help="where the server's data stay")
    given = parser.parse_args(options)
    with running(given.keep) as server:
        seeded(server, given.letters)
