"""Which rules of a subscription let a message through that is marked for one subscription."""

from __future__ import annotations

import pytest

from redrive.transports.servicebus.topics import ONLY, Rule, gets

_ONLY_MAIL = f'"{ONLY}" IS NULL OR "{ONLY}" = \'mail\''


@pytest.mark.parametrize(
    ("rule", "let_through"),
    [
        (Rule(sql=_ONLY_MAIL), True),
        (Rule(sql=f"[{ONLY}] is null or [{ONLY}]='mail'"), True),
        (Rule(sql=f"user.[{ONLY}] IS NULL OR user.[{ONLY}] = 'mail'"), True),
        (Rule(sql=_ONLY_MAIL.replace("mail", "o''brien")), False),
        (Rule(sql="FALSE"), False),
        (Rule(sql="amount > 17"), None),
        (Rule(properties={ONLY: "mail"}), True),
        (Rule(properties={ONLY: "billing"}), False),
        (Rule(properties={"kind": "placed"}), None),
        (Rule(more=True), None),
    ],
)
def test_of_a_rule_is_told_what_it_lets_through(*, rule: Rule, let_through: bool | None) -> None:
    assert gets([rule], "mail") is let_through


def test_a_subscription_gets_what_any_of_its_rules_lets_through() -> None:
    assert gets([Rule(sql="1=0"), Rule(sql="1=1")], "mail") is True
    assert gets([Rule(sql="1=0"), Rule(sql="amount > 17")], "mail") is None
    assert gets([], "mail") is False
