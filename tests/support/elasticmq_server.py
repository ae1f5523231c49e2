"""ElasticMQ, which plays SQS in a process of its own. It has what moto lacks: move tasks, and
`DeadLetterQueueSourceArn`.

It is a fake too, and named as such. Messages are gone with its process. It has no retention and no size of a
queue, moves the messages of a task to one queue even if they came from several, forgets a task that is cancelled,
and never answers whoever asks to move a queue that nobody's dead letters go to. One server for each of pytest's
processes; tests are kept apart by the names of their queues.

`python -m support.elasticmq_server` fetches what is needed, which is what `make elasticmq` does.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from support.fetched_jars import SPARING, FetchedJars, NotHere, class_path
from support.in_memory import folder_in_memory
from support.loopback_ports import free_ports
from support.sqs_account import REGION, URL

if TYPE_CHECKING:
    from collections.abc import Sequence

EXISTING = "REDRIVE_TEST_ELASTICMQ"
ELASTICMQ = FetchedJars(
    "elasticmq",
    Path(__file__).parent / "elasticmq" / "pom.xml",
    r"elasticmq-server_[\d.]+",
    how="apt-get install default-jdk-headless maven, then make elasticmq",
)
_PATIENCE = 120.0
_LOOK_EVERY = 0.02
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
_SETTINGS = """
include classpath("application.conf")
node-address {{ host = "127.0.0.1", port = {port} }}
rest-sqs {{ bind-hostname = "127.0.0.1", bind-port = {port}, sqs-limits = relaxed }}
rest-stats {{ enabled = false }}
aws {{ region = {region}, accountId = 123456789012 }}
"""
_starter = ThreadPoolExecutor(1)


class ElasticMq:
    """A server that runs, whoever started it."""

    url = URL

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    def queue_name(self) -> str:
        """One that nobody else has."""
        return f"redrive-test-{uuid4().hex[:12]}"

    def clean_up(self) -> None:
        """It is its owner's."""


class PrivateElasticMq(ElasticMq):
    """One of our own."""

    def __init__(self, options: Sequence[str] | None = None) -> None:
        [port] = free_ports(1)
        super().__init__(f"http://127.0.0.1:{port}")
        self._port = port
        self._folder = Path(tempfile.mkdtemp(prefix="redrive-elasticmq-", dir=folder_in_memory()))
        (self._folder / "server.conf").write_text(_SETTINGS.format(port=port, region=REGION))
        shared = (f"-XX:SharedArchiveFile={ELASTICMQ.archive()}",)
        # From a thread that lives as long as the tests: Linux ends the child with the thread that started it.
        self._server = _starter.submit(self._spawned, shared if options is None else options).result()
        try:
            self._wait_until_ready()
        except BaseException:
            self.clean_up()
            raise

    def stop(self) -> None:
        """The orderly way."""
        self._server.send_signal(signal.SIGTERM)
        self._server.wait(timeout=_PATIENCE)

    def clean_up(self) -> None:
        self._server.kill()
        self._server.wait(timeout=_PATIENCE)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _spawned(self, options: Sequence[str]) -> subprocess.Popen[bytes]:
        told = f"-Dconfig.file={self._folder / 'server.conf'}"
        jars = class_path(ELASTICMQ.folder / "jars")
        with (self._folder / "output.log").open("ab") as output:
            return subprocess.Popen(
                [shutil.which("java") or "java", *SPARING, *options, told, *jars, "org.elasticmq.server.Main"],
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                cwd=self._folder,
                start_new_session=True,  # Ctrl-C in the terminal is for pytest, which then stops us
                preexec_fn=_die_with_the_tests,  # noqa: PLW1509  a killed pytest runs no finalizer
            )

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not self._answers():
            log = (self._folder / "output.log").read_text(errors="replace")
            assert self._server.poll() is None, f"ElasticMQ ended while it started:\n{log}"
            assert time.monotonic() < deadline, f"ElasticMQ does not start:\n{log}"
            time.sleep(_LOOK_EVERY)

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self._port), timeout=_PATIENCE).close()
            return True
        return False


def available() -> ElasticMq:
    """The server for this session's tests; skips (fails with CI=true) where there is none."""
    existing = os.environ.get(EXISTING)
    if existing:
        return ElasticMq(existing)
    try:
        ELASTICMQ.require()
    except NotHere as why:
        missing = f"{why}, or set {EXISTING}=http://host:port"
        if os.environ.get("CI") == "true":
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)
    return PrivateElasticMq()


def _die_with_the_tests() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _keep_classes() -> None:
    """Those of a server that ran once, so that all others start faster."""
    archive = ELASTICMQ.archive()
    if archive.exists():
        return
    half = archive.with_name(f"half-made-{uuid4().hex}.jsa")
    server = PrivateElasticMq([f"-XX:ArchiveClassesAtExit={half}"])
    try:
        server.stop()
        half.replace(archive)
    finally:
        server.clean_up()
        half.unlink(missing_ok=True)


def main() -> None:
    try:
        ELASTICMQ.make()
        _keep_classes()
    except NotHere as why:
        print(f"no ElasticMQ for the tests: {why}, or set {EXISTING}=http://host:port; its tests will be skipped")  # noqa: T201  this is a command


if __name__ == "__main__":
    main()
