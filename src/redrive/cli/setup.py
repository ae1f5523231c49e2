"""`redrive setup`: the store's tables, and on the broker what the queues of an app need."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from redrive.cli.app_target import load_app
from redrive.cli.changing import DryRunOption, YesOption, confirm
from redrive.cli.invocation import settings_of
from redrive.cli.outcome import ExitCode, complain
from redrive.cli.output import Format, FormatOption, note, write_rows
from redrive.cli.setup_tree import COLUMNS, counted, kind_of, name_of, rows, write_tree
from redrive.errors import NoStoreYet, UsageError

if TYPE_CHECKING:
    from redrive.app import App
    from redrive.broker_setup import BrokerExamined, BrokerSetup
    from redrive.settings import BrokerSettings, Settings
    from redrive.transports.setup import Found

app = typer.Typer()


@app.command("setup")
def setup(
    ctx: typer.Context,
    *,
    target: Annotated[
        str | None, typer.Argument(metavar="[MODULE:APP]", help="Whose queues; app:app is `app` in app.py.")
    ] = None,
    queue: Annotated[
        list[str] | None, typer.Option("--queue", "-q", metavar="NAME", help="This queue too; repeatable.")
    ] = None,
    delays: Annotated[
        bool, typer.Option("--delays", help="Delay queues too, which else the first retry that needs one makes.")
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: FormatOption = Format.TABLE,
) -> int:
    """Make what is missing: the store's tables, and queues, exchanges or topics on the broker. Safe to repeat.

    What exists is not changed, but that a queue of SQS without a RedrivePolicy gets one. If it is not as wanted,
    that is told with what can be done about it, and the exit code is 4. With broker.rabbitmq.declare = "never"
    every delay queue is made now; on Kafka, always those that retries can wait in.
    """
    settings = settings_of(ctx)
    loaded = None if target is None else load_app(target)
    code = ExitCode.OK
    if settings.broker.has_server:
        from redrive.broker_setup import broker_setup  # noqa: PLC0415  not needed for --help

        work = broker_setup(settings, loaded, _queues(settings, loaded, queue or []), delays=delays)
        code = _set_up_server(settings.broker, work, dry_run=dry_run, yes=yes, output=output)
    else:
        _set_up_file(settings, dry_run=dry_run)
    _set_up_store(settings, dry_run=dry_run)
    return code


def _set_up_server(
    broker: BrokerSettings, work: BrokerSetup, *, dry_run: bool, yes: bool, output: Format
) -> ExitCode:
    examined = asyncio.run(work.examine())
    missing = _things(examined, "missing")
    if not dry_run:
        if missing:
            confirm(f"Make {counted(missing)} on {broker.url}?", yes=yes)
        examined = asyncio.run(work.complete(examined))
    if output is Format.TABLE:
        write_tree(f"{broker.url}, {examined.told}", examined)
    else:
        write_rows(rows(examined), COLUMNS, output)
    _tell(missing, examined, dry_run=dry_run)
    if work.name_in_code_alone:
        note(f'Set app.name = "{work.name_in_code_alone}" too: commands that do not load the app need it here.')
    return _complain(examined)


def _queues(settings: Settings, loaded: App | None, named: list[str]) -> list[str]:
    handled = [] if loaded is None else list(loaded.handlers)
    queues = list(dict.fromkeys([*handled, *named])) or list(settings.queues)
    if not all(name.strip() for name in queues):
        raise UsageError("a queue without a name cannot be set up", remedy="give --queue a name")
    if not queues:
        raise UsageError(
            "there is no queue to set up", remedy="name the app, such as redrive setup app:app, or give --queue"
        )
    return queues


def _things(examined: BrokerExamined, *states: str) -> list[Found]:
    """Each once: several queues may share an exchange."""
    found = (each for one in examined.queues for each in one.things if each.state in states)
    return list({(kind_of(each), name_of(each)): each for each in found}.values())


def _tell(missing: list[Found], examined: BrokerExamined, *, dry_run: bool) -> None:
    if dry_run:
        note(f"Would make {counted(missing)}; nothing was changed." if missing else "Nothing is missing.")
        return
    made = _things(examined, "made")
    note(f"Made {counted(made)}." if made else "Nothing was missing.")


def _complain(examined: BrokerExamined) -> ExitCode:
    wrong = _things(examined, "differs", "refused")
    for found in wrong:
        for each in found.differences:
            complain(f"{kind_of(found)} {name_of(found)}: {each}; it is left as it is", each.remedy)
        if found.refusal:
            complain(
                f"{kind_of(found)} {name_of(found)}: {found.refusal}",
                "the broker's user needs to be allowed to configure it, and its nodes able to have it so",
            )
    return ExitCode.PARTLY if wrong else ExitCode.OK


def _set_up_file(settings: Settings, *, dry_run: bool) -> None:
    from redrive.wiring import producer  # noqa: PLC0415  as above

    async def touch() -> None:
        async with producer(settings) as transport:
            await transport.depths()

    if dry_run:
        note(f"broker {settings.broker.url} needs nothing but its file, made when it is missing")
        return
    asyncio.run(touch())
    note(f"broker {settings.broker.url} is ready; its queues need no set-up")


def _set_up_store(settings: Settings, *, dry_run: bool) -> None:
    from redrive.wiring import check_store, upgrade_store  # noqa: PLC0415  as above

    if not dry_run:
        note(f"store {settings.store.url} is at {upgrade_store(settings)}")
        return
    try:
        found = check_store(settings)
        then = "" if found.current == found.head else f", would be at {found.head}"
        note(f"store {settings.store.url} is at {found.current or 'nothing'}{then}")
    except NoStoreYet:
        note(f"store {settings.store.url} would be made")
