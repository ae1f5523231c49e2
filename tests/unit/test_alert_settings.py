"""Rules of alerts in the settings: what is usual, what is changed, and what makes no sense."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from redrive.alerts.alert import Severity
from redrive.alerts.rule import DEFAULTS, AlertRule, RuleKind
from redrive.configuration import load
from redrive.errors import ConfigurationError


def rules_of(text: str, tmp_path: Path) -> dict[str, AlertRule]:
    (tmp_path / "redrive.toml").write_text(text)
    found = load(config=tmp_path / "redrive.toml", environ={}).settings.alerts.judged()
    return {rule.name: rule for rule in found}


def test_without_a_word_every_kind_of_alert_is_looked_at(tmp_path: Path) -> None:
    assert rules_of("", tmp_path) == {str(kind): rule for kind, rule in DEFAULTS.items()}
    assert {rule.kind for rule in DEFAULTS.values()} == set(RuleKind)


def test_a_critical_failure_is_told_whenever_it_begins_unless_somebody_wants_it_otherwise(tmp_path: Path) -> None:
    assert rules_of("", tmp_path)["critical"].cooldown == 0
    assert rules_of('[alerts.rules.critical]\ncooldown = "5m"\n', tmp_path)["critical"].cooldown == 300
    assert rules_of("[alerts.rules.rate]\ncooldown = 0\n", tmp_path)["rate"].cooldown == 0
    assert rules_of('[alerts.rules.pending]\non = "pending"\n', tmp_path)["pending"] == DEFAULTS[RuleKind.PENDING]


def test_a_table_changes_the_rule_of_its_name_or_makes_one_more(tmp_path: Path) -> None:
    rules = rules_of(
        "[alerts.rules.pending]\nthreshold = 5000\n[alerts.rules.age]\nenabled = false\n"
        '[alerts.rules.payments]\non = "rate"\nthreshold = 1\nqueues = ["pay*"]\nremind = "10m"\n'
        'severity = "critical"\n',
        tmp_path,
    )

    assert "age" not in rules
    assert rules["pending"] == replace(DEFAULTS[RuleKind.PENDING], threshold=5000)
    assert rules["payments"] == replace(
        DEFAULTS[RuleKind.RATE],
        name="payments",
        threshold=1,
        queues=("pay*",),
        remind=600.0,
        severity=Severity.CRITICAL,
    )


@pytest.mark.parametrize(
    "url", ["S3CRET:abc://x", "S3CRET://x", "s3cret", "s3cret://", "://s3cret", "s3 cret://x"]
)
def test_a_channel_s_url_that_is_none_is_refused_without_being_quoted(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigurationError, match="should be a URL") as refused:
        rules_of(f'[alerts.channels.ops]\nurl = "{url}"\n', tmp_path)
    assert "cret" not in f"{refused.value} {refused.value.remedy}".lower().replace("a secret", "")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[alerts.rules.mine]\nthreshold = 1\n", "should say what it is `on`: pending, growth"),
        ('[alerts.rules.mine]\non = "depth"\n', "pending"),
        ("[alerts.rules.failure_rate]\nthreshold = 10\n", "a share below 1"),
        ('[alerts.rules.rate]\nwindow = "10s"\n', "from one minute to one day"),
        ('[alerts.rules.rate]\nwindow = "2d"\n', "from one minute to one day"),
        ("[alerts.rules.age]\neach_queue = true\n", "leave it out; it is for growth, pending, rate"),
        ('[alerts.rules.store_down]\nqueues = ["a"]\n', "`queues` says nothing about that: leave it out"),
        ("[alerts.rules.store_down]\nat_most = 5\n", "`at_most` says nothing about that"),
        ('[alerts.rules.store_down]\nremind = "1h"\n', "`remind` says nothing about that"),
        ("[alerts.rules.spool]\nthreshold = 5\n", "`threshold` says nothing about that"),
        ("[alerts.rules.age]\nthreshold = 0\n", "`threshold` says nothing about that"),
        ("[alerts.rules.new_group]\nat_least = 5\n", "it is for accelerating_group, failure_rate"),
        ('[alerts.rules.critical]\nwindow = "5m"\n', "`window` says nothing about that"),
        ('[alerts.rules.pending]\non = "rate"\n', "give one on rate another name"),
        ('[alerts.rules.rate]\nqueues = ["pay*ments"]\n', "'pay*ments' is no name and no `beginning*`"),
        ('[alerts.rules.merged]\non = "rate"\n', "no rule is named 'merged'"),
        ('[alerts.rules.test]\non = "rate"\n', "no rule is named 'test'"),
        ('[alerts]\nevery = "2m"\n[alerts.rules.rate]\nwindow = "1m"\n', "look oftener"),
        ('[alerts]\nevery = "1h"\n', "rule 'pending' looks back for 5m alone"),
        ('[alerts.rules.new_group]\nwindow = "5s"\n', "rule 'new_group' looks back for 5s alone"),
        ('[alerts.rules.rate]\nchannels = ["nobody"]\n', "names channel 'nobody'; there are: none"),
        ("[alerts.rules.rate]\nthreshold = -1\n", "greater than or equal to 0"),
        ('[alerts]\nevery = "0s"\n', "every"),
    ],
)
def test_a_rule_that_makes_no_sense_is_told_with_what_would(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        rules_of(text, tmp_path)
    assert told in f"{refused.value} {refused.value.remedy}"
