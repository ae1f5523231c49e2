from __future__ import annotations

import json
import sys
from importlib import import_module

from bench.measuring import RESULTS
from bench.tables import table, write_readme

BENCHMARKS = {
    "policy": "what a successful call through the policy costs, against stamina, tenacity and backoff",
    "embedded": "embedded broker: send, handle, acknowledge, against SqliteHuey and raw sqlite3",
    "observability": "embedded broker: what metrics and traces cost where every message succeeds",
    "startup": "how long `redrive --help` takes",
    "store": "PostgreSQL store: questions at a million letters, against S1's table (--letters N, --keep FOLDER)",
    "preview": "preview of a redrive run at a million letters (--letters N, --keep FOLDER, --files FOLDER)",
    "intake": "PostgreSQL store: letters per second, against COPY and row-by-row INSERT into S1's table",
    "redriving": "redrive runs from PostgreSQL to RabbitMQ, and queue to queue, against its shovel (--memory)",
    "api": "the HTTP API at a million letters, beside the store and plain SQL (--letters N, --keep FOLDER)",
    "console": "the console's pages in chromium at a million letters (--letters N, --keep FOLDER)",
    "timing": "whether the time that a wrong token takes tells how wrong it is",
    "rabbitmq": "RabbitMQ: messages per second, against pika, aio-pika, FastStream, Dramatiq, Celery, Taskiq",
    "servicebus": "Azure Service Bus on the emulator: messages per second, against the SDK's own loop",
    "kafka": "Kafka: records per second, against confluent-kafka, aiokafka and FastStream on both",
    "sqs": "SQS as ElasticMQ plays it: messages per second, against a loop of aiobotocore's own client",
}


def main(arguments: list[str]) -> int:
    if not arguments:
        print("make bench NAME=…")
        for name, about in BENCHMARKS.items():
            print(f"  {name:<13} {about}")
        print("  seed          fill a PostgreSQL in a folder with letters: --keep FOLDER, --letters N")
        print("  tables        write bench/README.md from the last results")
        return 0
    name, *options = arguments
    if name == "tables":
        write_readme()
        return 0
    if name == "seed":
        import_module("bench.seed").main(*options)
        return 0
    if name not in BENCHMARKS:
        print(f"no benchmark {name!r}: use one of {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    import_module(f"bench.{name}").main(*options)
    print(table(json.loads((RESULTS / f"{name}.json").read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
