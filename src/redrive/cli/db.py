"""`redrive db upgrade`, `redrive db check`, `redrive db index` and `redrive db environment`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from redrive.actions import Actions
from redrive.cli.changing import DryRunOption, progress
from redrive.cli.invocation import actor, at_store, settings_of
from redrive.cli.outcome import ExitCode, complain
from redrive.cli.reasons import ReasonOption, given_reason

app = typer.Typer(help="Upgrade the store's tables, check them, or fill the search index.", no_args_is_help=True)

_RESTORE = "stop the workers and restore the file from a backup, or move it away to begin with an empty one"


@app.command("upgrade")
def upgrade(ctx: typer.Context, dry_run: DryRunOption = False) -> None:
    """Make the store's tables, or bring them up to date. Safe to repeat; workers may go on meanwhile."""
    from redrive.wiring import check_store, upgrade_store  # noqa: PLC0415  Alembic is slow to import, --help is not

    settings = settings_of(ctx)
    if dry_run:
        found = check_store(settings)
        typer.echo(f"{settings.store.url} is at {found.current or 'nothing'}, would be at {found.head}")
    else:
        typer.echo(f"{settings.store.url} is at {upgrade_store(settings)}")


@app.command("check")
def check(ctx: typer.Context) -> int:
    """Say whether the store is whole, its tables are the right ones, and what they hold adds up."""
    from redrive.wiring import check_store  # noqa: PLC0415  as above

    settings = settings_of(ctx)
    found = check_store(settings)
    for line in found.damage:
        complain(f"{settings.store.url} is damaged: {line}", _RESTORE)
    for line in (*found.problems, *found.risks):
        complain(f"{settings.store.url}: {line}")
    if found.healthy:
        typer.echo(f"ok: {settings.store.url} is at {found.current}")
        return ExitCode.OK
    return ExitCode.UNREACHABLE if found.damage else ExitCode.FAILED


@app.command("index")
def index(ctx: typer.Context) -> None:
    """Make every letter searchable now, not behind the work of the workers. Safe to repeat and to interrupt."""

    async def work(actions: Actions) -> int:
        with progress("Indexing", await actions.search_backlog()) as advance:
            return await actions.index(on_progress=advance)

    typer.echo(f"{at_store(ctx, work):,} letters indexed")


@app.command("environment")
def environment(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="What it belongs to from now on; '' for nothing.", show_default=False)
    ] = None,
    reason: ReasonOption = None,
) -> None:
    """Tell which environment the store belongs to, or give it to another one. Processes see it when they start."""
    if name is None:
        typer.echo(_unchecked(ctx, lambda actions: actions.environment()) or "(none)")
        return
    why = given_reason(reason)
    before = _unchecked(ctx, lambda actions: actions.rename_environment(name, why))
    typer.echo(f"{before or '(none)'} -> {name.strip() or '(none)'}")


def _unchecked(ctx: typer.Context, work: Callable[[Actions], Awaitable[str]]) -> str:
    """At the store whatever it belongs to: else its name could not be corrected."""
    from redrive.access import local  # noqa: PLC0415  as above
    from redrive.configuration import Flag  # noqa: PLC0415  as above
    from redrive.wiring import desk  # noqa: PLC0415  as above

    settings = settings_of(ctx, (Flag("db environment", ("app", "environment"), ""),))

    async def run() -> str:
        async with desk(settings, local(actor())) as actions:
            return await work(actions)

    return asyncio.run(run())
