"""`python -m bench.peers MODULE FUNCTION TASK`: one peer, one task, a report on standard output."""

from __future__ import annotations

import json
import sys
from importlib import import_module

from bench.peers.run import Run, Task


def main(module: str, function: str, written: str) -> None:
    work = getattr(import_module(f"bench.peers.{module}"), function)
    work(Run(Task(**json.loads(written))))


if __name__ == "__main__":
    main(*sys.argv[1:])
