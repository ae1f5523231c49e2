"""The process that forks those of `support.forked`. It opens nothing and starts no thread, only imports."""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import socket
import sys
import threading
import time
from importlib import import_module
from typing import Any, NoReturn

from redrive import faults
from redrive.cli.main import COMMANDS

_LONGEST_ORDER = 1 << 20
_FILES = 4  # stdin, stdout, stderr, and where to tell what becomes of it
_ON_FIRST_USE = (
    "alembic.command",
    "asyncpg",
    "redrive.planning",
    "redrive.rabbitmq_wiring",
    "redrive.stores.postgres",
    "redrive.stores.sqlite",
    "redrive.stores.upgrade",
    "redrive.transports.embedded",
    "redrive.transports.rabbitmq.transport",
    "redrive.upkeep.journal",
    "redrive.upkeep.spool",
    "redrive.worker",
    "sqlalchemy.dialects.postgresql.asyncpg",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "typer._adapters",
    "uuid_utils",
)
"""What the product imports when it is needed."""


def main() -> None:
    orders = socket.socket(fileno=int(sys.argv[1]))
    for module in (*_ON_FIRST_USE, *(listed.module for listed in COMMANDS.values())):
        import_module(module)
    gc.collect()
    gc.freeze()  # nobody looks through it again
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a witness ended
    while True:
        order, files, *_ = socket.recv_fds(orders, _LONGEST_ORDER, _FILES)
        if not order:
            return
        if not os.fork():
            orders.close()
            _witness(json.loads(order), files)
        for file in files:
            os.close(file)


def _witness(order: dict[str, Any], files: list[int]) -> None:
    """Forks the process and tells its id and how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *its_own, told = files
    child = os.fork()
    if not child:
        os.close(told)
        _become(order, its_own)
        _end(_code_of(order["program"]))
    for file in its_own:
        os.close(file)
    os.write(told, b"%d\n" % child)
    _, status = os.waitpid(child, 0)
    os.write(told, b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _become(order: dict[str, Any], files: list[int]) -> None:
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    _renew_streams()
    sys.argv = ["-c", *order["arguments"]]
    sys.path[0] = ""
    faults.arm(os.environ.get("REDRIVE_FAULTS", ""))


def _code_of(program: str) -> int:
    """What it ends with. An error of it ends the interpreter as it always does."""
    try:
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102  a test's own
    except SystemExit as asked:
        if not isinstance(asked.code, int | None):
            raise
        return asked.code or 0
    return 0


def _end(code: int) -> NoReturn:
    """As the interpreter does, except that it does not take apart what was imported, which takes longer than most
    commands.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # so the interpreter calls it
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _renew_streams() -> None:
    """As the interpreter makes them when it starts: by the line for a terminal, and for standard error."""
    lines = os.isatty(1)
    sys.stdin = sys.__stdin__ = _stream(0, "r")  # type: ignore[misc]  # nobody else has them yet
    sys.stdout = sys.__stdout__ = _stream(1, "w", buffering=1 if lines else -1)  # type: ignore[misc]  # as above
    sys.stderr = sys.__stderr__ = _stream(2, "w", buffering=1, errors="backslashreplace")  # type: ignore[misc]  # as above


def _stream(file: int, mode: str, **how: Any) -> Any:
    return open(file, mode, encoding="utf-8", closefd=False, **how)
