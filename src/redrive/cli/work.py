"""`redrive work MODULE:APP`: runs the handlers of an App until it is told to stop."""

from __future__ import annotations

from typing import Annotated

import typer

from redrive.cli.app_target import load_app
from redrive.cli.event_loop import run
from redrive.cli.invocation import settings_of
from redrive.errors import UsageError

app = typer.Typer()


@app.command("work")
def work(
    ctx: typer.Context,
    target: Annotated[str, typer.Argument(metavar="MODULE:APP", help="app:app is `app` in app.py.")],
    queue: Annotated[
        list[str] | None, typer.Option("--queue", "-q", metavar="NAME", help="Only this queue; repeatable.")
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency",
            min=1,
            help="Handlers at once per queue, if the queue does not say.",
            show_default=False,
        ),
    ] = None,
    drain: Annotated[bool, typer.Option("--drain", help="Stop when the queues are empty.")] = False,
) -> None:
    """Run the handlers of an App on their queues.

    Ctrl-C or SIGTERM: running handlers may finish within worker.grace. A second one does not wait for them.
    """
    from redrive.configuration import Flag  # noqa: PLC0415  the whole machinery, not needed for --help
    from redrive.wiring import run_worker  # noqa: PLC0415  as above

    given = [] if concurrency is None else [Flag("--concurrency", ("worker", "concurrency"), concurrency)]
    settings = settings_of(ctx, given)
    loaded = load_app(target)
    unknown = [name for name in queue or () if name not in loaded.handlers]
    if unknown:
        known = ", ".join(loaded.handlers) or "none"
        raise UsageError(f"{target} has no handler for queue {unknown[0]!r}", remedy=f"it handles: {known}")
    run(run_worker(loaded, settings, queues=queue or (), drain=drain))
