"""`redrive demo`: the whole loop in a minute, with no server and no configuration."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redrive.cli.output import console, note

if TYPE_CHECKING:
    from redrive.demo.feed import Feed
    from redrive.demo.story import Story

app = typer.Typer()

_FOLDER = Path(".redrive/demo")


@app.command()
def demo(
    once: Annotated[bool, typer.Option("--once", help="Tell the story to its end and exit.")] = False,
) -> None:
    """See a small shop fail, retry, set apart and put back, on the embedded broker and store, with the console.

    The link that it prints opens the console in your browser, signed in. Its files lie in .redrive/demo of the
    working folder and are made anew each time.
    """
    from redrive.demo.feed import Feed  # noqa: PLC0415  the demo's parts load when it runs
    from redrive.demo.story import Story, prepare  # noqa: PLC0415  as above

    settings_file = prepare(_FOLDER)
    os.environ["REDRIVE_DEMO_FOLDER"] = str(_FOLDER)
    live = sys.stdout.isatty()
    feed = Feed(None if live else lambda line: print(line, flush=True))  # noqa: T201  the story, told line by line
    feed.install()
    if live:
        story = _on_screen(settings_file, feed, once=once)
    else:
        story = Story(settings_file, feed, lambda _: None)
        _tell(story, once=once)
    for line in _commands(settings_file, story.left):
        note(line)


def _on_screen(settings_file: Path, feed: Feed, *, once: bool) -> Story:
    from rich.live import Live  # noqa: PLC0415  as above

    from redrive.demo.screen import screen  # noqa: PLC0415  as above
    from redrive.demo.shop import done  # noqa: PLC0415  as above
    from redrive.demo.story import Story  # noqa: PLC0415  as above

    with Live(console=console(), auto_refresh=False) as display:

        def paint(now: Story, commands: tuple[str, ...] | None = None) -> None:
            if commands is None:
                commands = _commands(settings_file, now.left) if now.left else ()
            seen = screen(
                now.chapter,
                done=done,
                depths=now.depths,
                feed=feed,
                groups=now.groups,
                commands=commands,
                console=now.console,
                height=display.console.height,
            )
            display.update(seen, refresh=True)

        story = Story(settings_file, feed, paint)
        _tell(story, once=once)
        paint(story, commands=())  # they follow below, where they can be copied
    return story


def _tell(story: Story, *, once: bool) -> None:
    with suppress(KeyboardInterrupt):
        asyncio.run(story.tell(once=True) if once else _open(story))
    if not once:
        note("the shop is closed; its messages and letters are kept")


async def _open(story: Story) -> None:
    """The shop and the console, until one of them ends."""
    from redrive.demo.console import serve_console  # noqa: PLC0415  as above

    telling = asyncio.create_task(story.tell(once=False))
    serving = asyncio.create_task(serve_console(story.settings, story.open_console))
    try:
        await asyncio.wait({telling, serving}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done() and isinstance(serving.exception(), ModuleNotFoundError):
            story.feed.add("story    For the console in a browser: pip install 'redrive[server]'")
            await telling
        for done in (each for each in (serving, telling) if each.done()):
            done.result()
    finally:
        telling.cancel()
        serving.cancel()
        await asyncio.gather(telling, serving, return_exceptions=True)


def _commands(settings_file: Path, letter: str) -> tuple[str, ...]:
    redrive = f"{_redrive()} -c {settings_file}"
    return (
        "",
        "Now you. Look at what was set apart, put one back, and let it be handled:",
        "",
        f"  {redrive} list",
        f"  {redrive} retry {letter or 'ID'} --yes",
        f"  {redrive} work redrive.demo.shop:app --drain",
        "",
        "and then see the whole life of that message:",
        "",
        f"  {redrive} show {letter or 'ID'}",
    )


def _redrive() -> str:
    """The command as it can be typed here."""
    if shutil.which("redrive"):
        return "redrive"
    given = Path(sys.argv[0])
    return os.path.relpath(given) if given.exists() else "python -m redrive"
