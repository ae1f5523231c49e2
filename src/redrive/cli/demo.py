"""`redrive demo`: the whole loop in a minute, with no server and no configuration."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
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
    """See a small shop fail, retry, set apart and put back, on the embedded broker and store.

    Its files lie in .redrive/demo of the working folder and are made anew each time.
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
                height=display.console.height,
            )
            display.update(seen, refresh=True)

        story = Story(settings_file, feed, paint)
        _tell(story, once=once)
        paint(story, commands=())  # they follow below, where they can be copied
    return story


def _tell(story: Story, *, once: bool) -> None:
    try:
        asyncio.run(story.tell(once=once))
    except KeyboardInterrupt:
        note("the shop is closed; its messages and letters are kept")


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
