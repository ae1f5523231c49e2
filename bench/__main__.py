from __future__ import annotations

import json
import sys
from importlib import import_module

from bench.measuring import RESULTS, table
from bench.tables import write_readme

BENCHMARKS = {
    "policy": "what a successful call through the policy costs, against stamina, tenacity and backoff",
    "embedded": "embedded broker: send, handle, acknowledge, against SqliteHuey and raw sqlite3",
    "startup": "how long `redrive --help` takes",
}


def main(arguments: list[str]) -> int:
    if not arguments:
        print("make bench NAME=…")
        for name, about in BENCHMARKS.items():
            print(f"  {name:<10} {about}")
        print("  tables     write bench/README.md from the last results")
        return 0
    name = arguments[0]
    if name == "tables":
        write_readme()
        return 0
    if name not in BENCHMARKS:
        print(f"no benchmark {name!r}: use one of {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    import_module(f"bench.{name}").main()
    print(table(json.loads((RESULTS / f"{name}.json").read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
