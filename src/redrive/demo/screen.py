"""The shop on a terminal: queues, what just happened, dead letters by cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from redrive.dead_letter import FailureGroup
    from redrive.demo.feed import Feed
    from redrive.transports import QueueDepth

QUEUES = ("orders", "payments", "emails")
_WITH_COMMANDS, _FEWEST_LINES = 36, 4
_STYLES = {"console": "cyan", "retry": "yellow", "dead": "red", "story": "bold cyan", "redrive": "green"}


def screen(
    chapter: str,
    *,
    done: Mapping[str, int],
    depths: Mapping[str, QueueDepth],
    feed: Feed,
    groups: Sequence[FailureGroup],
    commands: Sequence[str],
    console: str,
    height: int,
) -> RenderableType:
    """Fits a terminal of this many lines: what just happened gives way first, then the commands."""
    if height < _WITH_COMMANDS:
        commands = ()
    lines = list(feed.lines)[-max(_FEWEST_LINES, height - _WITH_COMMANDS) :]
    return Group(
        Panel(Text(chapter, style="bold"), title="redrive demo", border_style="cyan"),
        *([_console(console)] if console else []),
        _queues(done, depths, feed),
        Panel(Group(*(_line(each) for each in lines)), title="what just happened", border_style="dim"),
        _groups(groups),
        *(Text(each, no_wrap=True, overflow="fold") for each in commands),
    )


def _console(link: str) -> Text:
    """In one piece, so that a terminal can open it."""
    return Text.assemble(
        ("Open the console: ", "bold"), (link, f"cyan link {link}"), no_wrap=True, overflow="fold"
    )


def _queues(done: Mapping[str, int], depths: Mapping[str, QueueDepth], feed: Feed) -> Table:
    table = Table(expand=True, title="queues", title_justify="left")
    table.add_column("queue")
    for title in ("handled", "waiting", "waiting for a retry", "retries so far", "dead-lettered"):
        table.add_column(title, justify="right")
    for queue in QUEUES:
        ready, retrying = depths.get(queue), depths.get(f"{queue}_retry")
        table.add_row(
            queue,
            str(done.get(queue, 0)),
            str(ready.total if ready else 0),
            str(retrying.total if retrying else 0),
            str(feed.retries[queue]),
            Text(str(feed.dead[queue]), style="red" if feed.dead[queue] else ""),
        )
    return table


def _groups(groups: Sequence[FailureGroup]) -> Table:
    table = Table(expand=True, title="dead letters by cause", title_justify="left")
    table.add_column("cause", ratio=1, overflow="ellipsis", no_wrap=True)
    table.add_column("queue")
    table.add_column("pending", justify="right")
    table.add_column("ever", justify="right")
    for group in groups:
        table.add_row(Text(group.title), group.queue, str(group.pending), str(group.total))
    return table


def _line(text: str) -> Text:
    return Text(text, style=_STYLES.get(text.partition(" ")[0], ""), no_wrap=True, overflow="ellipsis")
