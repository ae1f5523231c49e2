"""How a run goes about it: the options of `retry`, and the plan that they and the settings make."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from redrive.cli.changing import RateOption
from redrive.cli.filters import duration
from redrive.errors import UsageError

if TYPE_CHECKING:
    from redrive.letter_query import LetterQuery
    from redrive.run import Brakes, Canary, RunPlan
    from redrive.run_policy import RunPolicy

NEVER = "never"

NameOption = Annotated[
    str | None,
    typer.Option(
        "--as", metavar="NAME", help="Who you are; without it, the name of your account.", show_default=False
    ),
]


def _option(*names: str, metavar: str, help_: str, panel: str | None = None) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        *names, metavar=metavar, help=help_, show_default=False, rich_help_panel=panel
    )
    return option


_CARE = "Care"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """One field for each option."""

    rate: RateOption = None
    to: Annotated[str | None, _option("--to", metavar="QUEUE", help_="Send to this queue instead.")] = None
    original_exchange: Annotated[
        bool,
        typer.Option(
            "--original-exchange",
            "--original-topic",
            help="To the first exchange and all its queues; Kafka, Service Bus: the first topic and its readers.",
        ),
    ] = False
    reason: Annotated[str, _option("--reason", "-r", metavar="TEXT", help_="Why: the run keeps it.")] = ""
    canary: Annotated[
        str | None,
        _option(
            "--canary",
            metavar="N[,N...]",
            help_="First N, then N in all, then the rest; each time if few enough came back. 0: none.",
            panel=_CARE,
        ),
    ] = None
    canary_wait: Annotated[
        str | None,
        _option("--canary-wait", metavar="DURATION", help_="How long to wait for outcomes.", panel=_CARE),
    ] = None
    at_most_back: Annotated[
        str | None,
        _option("--at-most-back", metavar="SHARE", help_="Of the canary, may come back: 20% or 0.2.", panel=_CARE),
    ] = None
    pause_when_back: Annotated[
        str | None,
        _option(
            "--pause-when-back",
            metavar="SHARE",
            help_="Pause when more of the last 100 came back: 50%, or never.",
            panel=_CARE,
        ),
    ] = None
    max_backlog: Annotated[
        int | None,
        typer.Option(
            "--max-backlog",
            metavar="N",
            min=1,
            help="Pause when more wait in the target queue.",
            show_default=False,
            rich_help_panel=_CARE,
        ),
    ] = None
    name: NameOption = None

    def plan(self, selection: LetterQuery, policy: RunPolicy, *, at_most: int | None = None) -> RunPlan:
        """What is not said comes from the settings. UsageError names the option that cannot be read."""
        from redrive.run import RunPlan  # noqa: PLC0415  not needed for --help

        if self.to is not None and self.original_exchange:
            both = "--to and --original-exchange (or --original-topic)"
            raise UsageError(f"{both} exclude each other", remedy="give one of them")
        return RunPlan(
            selection=selection,
            at_most=at_most,
            target=self.to,
            to_origin=self.original_exchange,
            rate=_rate(self.rate) or policy.rate,
            canary=self._canary(policy.canary),
            brakes=self._brakes(policy.brakes),
            reason=self.reason.strip(),
        )

    def _canary(self, usual: Canary) -> Canary:
        canary = usual
        if self.canary is not None:
            canary = msgspec.structs.replace(canary, steps=steps(self.canary))
        if self.canary_wait is not None:
            canary = msgspec.structs.replace(canary, wait=duration(self.canary_wait, "--canary-wait"))
        if self.at_most_back is not None:
            canary = msgspec.structs.replace(canary, at_most_back=share(self.at_most_back, "--at-most-back"))
        return canary

    def _brakes(self, usual: Brakes) -> Brakes:
        brakes = usual
        if self.pause_when_back is not None:
            never = self.pause_when_back.strip().lower() == NEVER
            limit = None if never else share(self.pause_when_back, "--pause-when-back")
            brakes = msgspec.structs.replace(brakes, came_back=limit)
        if self.max_backlog is not None:
            brakes = msgspec.structs.replace(brakes, backlog=self.max_backlog)
        return brakes


def _rate(rate: float | None) -> float | None:
    from redrive.run import MAX_RATE  # noqa: PLC0415  not needed for --help

    if rate is not None and not 0 < rate <= MAX_RATE:
        raise UsageError(
            f"a rate of {rate:g} per second is not possible",
            remedy=f"give a number above 0, at most {MAX_RATE:,.0f}",
        )
    return rate


def steps(text: str) -> tuple[int, ...]:
    """`5` or `1,5,50`; `0` is none."""
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        found = (-1,)
    if found == (0,):
        return ()
    if min(found) < 1 or any(later <= earlier for earlier, later in pairwise(found)):
        raise UsageError(f"--canary: {text!r} is no canary", remedy="write it like 5, or rising like 1,5,50")
    return found


def share(text: str, option: str) -> float:
    """`20%` or `0.2`."""
    percent = text.strip().endswith("%")
    try:
        found = float(text.strip().removesuffix("%")) / (100 if percent else 1)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise UsageError(f"{option}: {text!r} is not a share", remedy="write it like 20% or 0.2")
    return found
