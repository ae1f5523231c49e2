"""What is in a topic, told by a consumer that nobody here wrote: the plain Java client (kafka/ReadAll.java)."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import kafka_programs
from support.fetched_jars import NotHere

_PATIENCE = 60
_NULL, _NO_BYTES = "-", "="
_OF_THE_RECORD = 6  # words of a line before the headers


@dataclass(frozen=True)
class JavaRecord:
    """`timestamp_type` is "CreateTime" or "LogAppendTime"."""

    partition: int
    offset: int
    timestamp: int
    timestamp_type: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def java_read(address: str, topic: str, count: int) -> list[JavaRecord]:
    """The first `count` records, those of one partition in their order; fails the test if there are fewer."""
    _require_programs()
    with tempfile.TemporaryDirectory(prefix="redrive-java-") as folder:
        log = Path(folder) / "client.log"
        command = [*kafka_programs.java(log), str(kafka_programs.HERE / "ReadAll.java")]
        command += [address, topic, str(count), str(_PATIENCE)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=3 * _PATIENCE, check=False)
        said = f"{done.stderr}{log.read_text() if log.exists() else ''}"
    assert done.returncode == 0, said
    records = [_record(line.split(" ")) for line in done.stdout.splitlines()]
    assert len(records) == count, f"{len(records)} of {count} records in {topic}\n{said}"
    return records


def _record(words: list[str]) -> JavaRecord:
    partition, offset, timestamp, kind, key, value = words[:_OF_THE_RECORD]
    rest = words[_OF_THE_RECORD:]
    headers = [
        ((_bytes(name) or b"").decode(), _bytes(held)) for name, held in zip(rest[::2], rest[1::2], strict=True)
    ]
    return JavaRecord(int(partition), int(offset), int(timestamp), kind, _bytes(key), _bytes(value), headers)


def _bytes(written: str) -> bytes | None:
    return None if written == _NULL else b"" if written == _NO_BYTES else bytes.fromhex(written)


def _require_programs() -> None:
    try:
        kafka_programs.KAFKA.require()
    except NotHere as why:
        if os.environ.get("CI") == "true":
            pytest.fail(str(why), pytrace=False)
        pytest.skip(str(why))
