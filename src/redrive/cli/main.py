"""The command `redrive`.

The table of commands is literal: the top-level help is printed from it, and a command's module is imported
when that command runs. Each module has `app = typer.Typer()` with its commands; a family (`db upgrade`) is
the whole app of its module.
"""

from __future__ import annotations

import contextlib
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command, get_group

from redrive import __version__
from redrive.cli.invocation import Invocation
from redrive.cli.outcome import ExitCode, report


class Listed(NamedTuple):
    module: str
    help: str
    panel: str
    family: bool = False


_RUN, _LOOK, _DECIDE, _KEEP, _SET_UP = "Run", "Look", "Decide", "Keep", "Set up"

COMMANDS: dict[str, Listed] = {
    "demo": Listed("redrive.cli.demo", "See a small shop fail, retry, set apart and put back.", _RUN),
    "work": Listed("redrive.cli.work", "Run the handlers of MODULE:APP on their queues.", _RUN),
    "serve": Listed("redrive.cli.serve", "Serve the HTTP API, and carry out redrive runs.", _RUN),
    "send": Listed("redrive.cli.send", "Send a message to a queue.", _RUN),
    "collect": Listed("redrive.cli.collect", "Bring dead letters of the broker's queues into the store.", _RUN),
    "engine": Listed("redrive.cli.engine", "Carry out the redrive runs that others make.", _RUN),
    "reprocess": Listed("redrive.cli.reprocess", "Put everything in a dead-letter queue back.", _RUN),
    "list": Listed("redrive.cli.letters", "List dead letters, newest first.", _LOOK),
    "show": Listed("redrive.cli.letters", "Show one letter: payload, headers, every attempt.", _LOOK),
    "groups": Listed(
        "redrive.cli.groups", "List failures by cause; own, judge, merge, split.", _LOOK, family=True
    ),
    "stats": Listed("redrive.cli.stats", "Count letters by status, queue, type, hour.", _LOOK, family=True),
    "queues": Listed("redrive.cli.queues", "Show the broker's queues: how full, how busy.", _LOOK),
    "check": Listed("redrive.cli.check", "Exit 1 if too many or too old letters wait: for cron.", _LOOK),
    "export": Listed("redrive.cli.export", "Write letters to a file, bodies included.", _LOOK),
    "retry": Listed("redrive.cli.retry", "Send letters back to their queue: one, or all that match.", _DECIDE),
    "runs": Listed(
        "redrive.cli.runs", "List redrive runs; show, pause, resume, cancel, approve.", _DECIDE, family=True
    ),
    "move-back": Listed("redrive.cli.move_back", "Let SQS move a dead-letter queue back by itself.", _DECIDE),
    "resolve": Listed("redrive.cli.changes", "Mark letters as solved, with a reason.", _DECIDE),
    "discard": Listed("redrive.cli.changes", "Set letters aside; they can be restored.", _DECIDE),
    "restore": Listed("redrive.cli.changes", "Make resolved or discarded letters pending again.", _DECIDE),
    "quarantine": Listed("redrive.cli.changes", "Keep letters from being sent back.", _DECIDE),
    "release": Listed("redrive.cli.changes", "End the quarantine of letters.", _DECIDE),
    "purge": Listed("redrive.cli.changes", "Delete resolved or discarded letters for ever.", _DECIDE),
    "edit": Listed("redrive.cli.edit", "Correct a letter's payload; the original is kept.", _DECIDE),
    "retention": Listed(
        "redrive.cli.retention", "Archive, check and purge old settled letters.", _KEEP, family=True
    ),
    "alerts": Listed(
        "redrive.cli.alerts", "What rules found; acknowledge, snooze; try out channels.", _KEEP, family=True
    ),
    "archive": Listed("redrive.cli.archive", "Search archives; restore letters from them.", _KEEP, family=True),
    "import": Listed("redrive.cli.importing", "Take in letters: archives, exports, Laravel, JSON lines.", _KEEP),
    "erase": Listed(
        "redrive.cli.erase", "Erase what is kept about a person; a second one agrees.", _KEEP, family=True
    ),
    "audit": Listed(
        "redrive.cli.audit", "Read what people and rules did, verify that trail, export it.", _KEEP, family=True
    ),
    "init": Listed("redrive.cli.init", "Write redrive.toml and a first handler.", _SET_UP),
    "doctor": Listed("redrive.cli.doctor", "Find what may lose messages, and what to do about it.", _SET_UP),
    "setup": Listed("redrive.cli.setup", "Make the store's tables, and queues on the broker.", _SET_UP),
    "config": Listed(
        "redrive.cli.config", "Check the settings, or show where each comes from.", _SET_UP, family=True
    ),
    "tokens": Listed("redrive.cli.tokens", "Make, list and revoke API tokens.", _SET_UP, family=True),
    "users": Listed("redrive.cli.users", "Add users, set their passwords and grants.", _SET_UP, family=True),
    "keys": Listed("redrive.cli.keys", "Make and list encryption keys.", _SET_UP, family=True),
    "db": Listed("redrive.cli.db", "Upgrade the store's tables, check them, or index.", _SET_UP, family=True),
}


class Standin(TyperCommand):
    """A command known by its name and its line of help. Made into the real one when it runs."""

    def __init__(self, name: str, listed: Listed) -> None:
        super().__init__(name=name, help=listed.help, rich_help_panel=listed.panel)
        self._listed = listed

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:
        return self._real().make_context(info_name, args, *rest, **extra)

    def _real(self) -> Any:
        group = get_group(import_module(self._listed.module).app)
        return group if self._listed.family else group.commands[str(self.name)]


class GlobalOption(TyperOption):
    """Not given, it stays None. Typer would load pydantic to find that out, before any command's help."""

    def process_value(self, ctx: Any, value: Any) -> Any:
        return None if value is None else super().process_value(ctx, value)


class CommandTable(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands.update({name: Standin(name, listed) for name, listed in COMMANDS.items()})

    def get_params(self, ctx: Any) -> list[Any]:
        options = super().get_params(ctx)
        for option in options:
            option.__class__ = GlobalOption  # typer has no other way to say so
        return options


app = typer.Typer(
    cls=CommandTable,
    help="Retry what can succeed, set apart what cannot, understand it, put it back.",
    add_completion=True,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"redrive {__version__}")
        raise typer.Exit


@app.callback()
def start(
    ctx: typer.Context,
    *,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help="The settings file.", show_default=False)
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", "-p", metavar="NAME", help="The profile of that file to use.")
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="URL",
            help="Go through this server, not to the store; REDRIVE_SERVER does the same.",
            show_default=False,
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="Holds the token for the server; else REDRIVE_TOKEN is it.",
            show_default=False,
        ),
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None,
        typer.Option("--log-level", metavar="LEVEL", help="Log from this level on; else as [log] level says."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="The same as --log-level debug.")] = False,
    version: Annotated[  # noqa: ARG001  its callback does the work
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    named = os.environ.get("REDRIVE_SERVER", "") if server is None else server
    ctx.obj = Invocation(
        config=config,
        profile=profile,
        verbose=verbose,
        log_level=log_level,
        server=named.strip() or None,
        token_file=token_file,
    )
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        raise typer.Exit(ExitCode.USAGE)


def run(arguments: list[str]) -> int:
    """The exit code of `redrive ARGUMENTS`. What went wrong has been told on stderr, without a stack trace."""
    try:
        result = get_command(app)(args=arguments, prog_name="redrive", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return ExitCode.FAILED
    except Exception as error:  # noqa: BLE001  the last place where an error can become one clear line
        return report(error)
    return result if isinstance(result, int) else ExitCode.OK


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def _forget_stdout() -> None:
    # The reader is gone (`redrive list | head`). Python would complain once more when it flushes at exit.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
