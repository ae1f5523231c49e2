"""What runs beside the engine, from the settings: automatic rules, and what is assumed after silence."""

from __future__ import annotations

import asyncio
from datetime import UTC, time
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from redrive.assuming import Assuming, Silence
from redrive.automatic import AutomaticRuns
from redrive.rules import AutomaticRule, Window
from redrive.run import Brakes, Canary

if TYPE_CHECKING:
    from redrive.clock import Clock
    from redrive.run_policy import RunPolicy
    from redrive.settings import RuleSettings, Settings
    from redrive.stores import RunStore
    from redrive.transports import Transport


async def serve_beside(
    settings: Settings, *, store: RunStore, transport: Transport, clock: Clock, policy: RunPolicy
) -> None:
    """Until it is cancelled; returns at once if the settings ask for nothing of it."""
    serving = []
    if rules := rules_of(settings):
        automatic = AutomaticRuns(rules, store=store, transport=transport, clock=clock, policy=policy)
        serving.append(automatic.serve())
    if (silence := silence_of(settings)).shortest is not None:
        serving.append(Assuming(silence, store=store, clock=clock).serve())
    await asyncio.gather(*serving)


def rules_of(settings: Settings) -> list[AutomaticRule]:
    return [_rule(name, rule) for name, rule in settings.rules.items() if rule.enabled]


def _rule(name: str, rule: RuleSettings) -> AutomaticRule:
    return AutomaticRule(
        name=name,
        when=rule.when,
        wait=rule.wait,
        at_most=rule.at_most,
        rate=rule.rate,
        canary=Canary(steps=rule.canary, wait=rule.canary_wait, at_most_back=rule.at_most_back),
        brakes=Brakes(
            came_back=rule.pause_when_back, publish_errors=rule.publish_errors, backlog=rule.max_backlog
        ),
        window=_window(rule),
    )


def _window(rule: RuleSettings) -> Window | None:
    if rule.window is None:
        return None
    opens, closes = (time.fromisoformat(each.strip()) for each in rule.window.split("-"))
    return Window(opens=opens, closes=closes, zone=UTC if rule.time_zone == "UTC" else ZoneInfo(rule.time_zone))


def silence_of(settings: Settings) -> Silence:
    return Silence(
        queues={name: queue.dead_letters.assume_after for name, queue in settings.queues.items()},
        otherwise=settings.dead_letters.assume_after,
    )
