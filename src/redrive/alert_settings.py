"""Settings of alerts: see `redrive.settings`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec.structs import replace
from pydantic import AfterValidator, BeforeValidator, Field, InstanceOf, model_validator

from redrive.alerts.alert import Severity
from redrive.alerts.rule import (
    DEFAULTS,
    MEANT_FOR,
    OF_GROUPS,
    OF_PROCESSES,
    RESERVED,
    SAMPLED,
    AlertRule,
    RuleKind,
)
from redrive.alerts.signing import key_of
from redrive.duration import short
from redrive.secret_url import HiddenUrl
from redrive.section import Section
from redrive.setting_values import (
    REQUIRED,
    SECRET,
    OptionalPositive,
    OptionalSeconds,
    OptionalSecret,
    OptionalTimeout,
    Positive,
    QueueNames,
    RuleName,
    number,
    unset,
)

if TYPE_CHECKING:
    from redrive.secret_text import SecretText


_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S.*", re.DOTALL)
"""What stands before :// is shown to people: it must not be the beginning of something secret."""


def _url(value: Any) -> Any:
    if isinstance(value, HiddenUrl):
        return value
    if not isinstance(value, str) or not _URL.fullmatch(value.strip()):
        # It is not quoted: it may be a secret.
        raise ValueError(
            "should be a URL such as 'slack://…', 'mailto://…' or 'https://…', in lower case before ://"
        )
    return HiddenUrl(value.strip())


def _signing(value: SecretText | None) -> SecretText | None:
    if value is not None:
        key_of(value.reveal())
    return value


class ChannelSettings(Section):
    """One way to tell somebody."""

    url: Annotated[InstanceOf[HiddenUrl], BeforeValidator(_url), SECRET, REQUIRED] = HiddenUrl("")
    """One of apprise's, or `https://…` for our signed webhook."""
    secret: Annotated[OptionalSecret, AfterValidator(_signing)] = None
    """What a webhook is signed with. None: for all others."""
    min_severity: Severity = Severity.INFO
    """Less is not told here."""

    @property
    def is_webhook(self) -> bool:
        return self.url.reveal().partition(":")[0].lower() in {"https", "http"}

    @model_validator(mode="after")
    def _complete(self) -> ChannelSettings:
        if not self.url.reveal():
            raise ValueError("should say `url`: where alerts go")
        if self.is_webhook and self.secret is None:
            raise ValueError(
                "an https:// URL is a signed webhook and needs `secret`; "
                "for Slack, Teams and others write apprise's URL, such as slack://…"
            )
        if self.secret is not None and not self.is_webhook:
            raise ValueError("`secret` is for webhooks, whose URL begins with https://")
        return self


class AlertRuleSettings(Section):
    """One thing to tell people of. Named like a kind of rule, it changes that one; else it is one more."""

    on: Annotated[RuleKind | None, BeforeValidator(unset)] = None
    """None: as its name says."""
    enabled: bool = True
    severity: Annotated[Severity | None, BeforeValidator(unset)] = None
    """None, here and below: as is usual for its kind."""
    threshold: Annotated[Annotated[float, BeforeValidator(number), Field(ge=0)] | None, BeforeValidator(unset)] = (
        None
    )
    at_least: OptionalPositive = None
    window: OptionalTimeout = None
    cooldown: OptionalSeconds = None
    """From one beginning that was told to the next one about the same thing."""
    remind: OptionalTimeout = None
    """None: it is told once."""
    at_most: Annotated[Annotated[Positive, Field(le=100)] | None, BeforeValidator(unset)] = None
    """Told one by one within the cooldown; more are one message."""
    queues: QueueNames = ()
    """By name or `beginning*`. Empty: all."""
    each_queue: bool = False
    channels: QueueNames = ()
    """Empty: all."""

    def rule(self, name: str) -> AlertRule:
        """ValueError for what makes no sense."""
        kind = _kind(name, self.on)
        given = {key: value for key in _OF_RULES if _is_given(value := getattr(self, key))}
        for key in given:
            if kind not in MEANT_FOR.get(key, DEFAULTS):
                raise ValueError(
                    f"rule {name!r} is on {kind}, and `{key}` says nothing about that: {_remedy(key)}"
                )
        rule = replace(DEFAULTS[kind], name=name, **given)
        _check(rule)
        return rule


_OF_RULES = (
    *("severity", "threshold", "at_least", "window", "cooldown", "remind", "at_most", "queues", "each_queue"),
    "channels",
)


def _is_given(value: object) -> bool:
    return value is not None and value is not False and value != ()  # 0 is a value


def _remedy(key: str) -> str:
    meant = MEANT_FOR[key]
    few = len(meant) <= len(DEFAULTS) / 2
    return f"leave it out; it is for {', '.join(sorted(meant))}" if few else "leave it out"


def _kind(name: str, on: RuleKind | None) -> RuleKind:
    if name in RESERVED:
        raise ValueError(f"no rule is named {name!r}: messages of that name are told by Redrive itself; rename it")
    if name not in DEFAULTS and on is None:
        raise ValueError(f"rule {name!r} should say what it is `on`: {', '.join(RuleKind)}")
    if name in DEFAULTS and on not in {None, name}:
        raise ValueError(f"rule {name!r} is on {name}, as everybody expects of it: give one on {on} another name")
    return on or RuleKind(name)


def _check(rule: AlertRule) -> None:
    for pattern in rule.queues:
        if "*" in pattern[:-1]:
            raise ValueError(f"rule {rule.name!r}: {pattern!r} is no name and no `beginning*` of names")
    if rule.kind is RuleKind.FAILURE_RATE and rule.threshold >= 1:
        raise ValueError(f"rule {rule.name!r}: `threshold` is a share below 1, such as 0.1")
    if rule.kind in SAMPLED and not _SHORTEST <= rule.window <= _LONGEST:
        raise ValueError(f"rule {rule.name!r}: `window` is from one minute to one day")
    if rule.kind in OF_PROCESSES and rule.window > _LONGEST / 2:
        raise ValueError(f"rule {rule.name!r}: `window` is at most 12h; after a day nobody is expected any more")


_LOOKING_BACK = (SAMPLED | OF_GROUPS | {RuleKind.FAILED_RUN}) - {RuleKind.CRITICAL}
_SHORTEST, _LONGEST = 60.0, 86400.0
"""Of windows whose numbers are kept to be compared."""


class AlertSettings(Section):
    """Of whoever tells people."""

    every: Annotated[OptionalTimeout, Field(ge=1)] = 15.0
    """From one look at the rules to the next. None: nobody looks."""
    rules: dict[RuleName, AlertRuleSettings] = {}  # noqa: RUF012  pydantic copies it
    channels: dict[RuleName, ChannelSettings] = {}  # noqa: RUF012  pydantic copies it
    allowed_hosts: QueueNames = ()
    """Hosts of webhooks that may have private addresses or plain HTTP, as `host` or `host:port`."""
    outbox: Path = Path(".redrive/alerts.db")
    """What is to be told and is not yet, and what could not be delivered."""
    waiting: Annotated[Positive, Field(le=10_000)] = 100
    """Alerts that wait for one channel, at most; more are merged into one message that counts them."""
    attempts: Annotated[Positive, Field(le=100)] = 10
    """Of one alert by one channel; then it is undelivered."""
    undelivered: Annotated[Positive, Field(le=100_000)] = 1000
    """Undelivered alerts of one channel that are kept, the newest; older ones are counted."""

    def judged(self) -> list[AlertRule]:
        """Every kind of rule, as is usual or as these settings say, and their own."""
        own = {name: given.rule(name) for name, given in self.rules.items()}
        usual = {str(kind): rule for kind, rule in DEFAULTS.items()}
        disabled = {name for name, given in self.rules.items() if not given.enabled}
        return [rule for name, rule in {**usual, **own}.items() if name not in disabled]

    @model_validator(mode="after")
    def _coherent(self) -> AlertSettings:
        for rule in self.judged():
            if self.every is not None and rule.kind in _LOOKING_BACK and rule.window < self.every:
                every, window = short(self.every), short(rule.window)
                raise ValueError(
                    f"`every` is {every}, and rule {rule.name!r} looks back for {window} alone: what comes "
                    "between would not be seen; look oftener, or give the rule a longer `window`"
                )
            for name in rule.channels:
                if name not in self.channels:
                    known = ", ".join(self.channels) or "none"
                    raise ValueError(f"rule {rule.name!r} names channel {name!r}; there are: {known}")
        return self
