"""How grants, names and roles are written, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.access import Grant, Role
from redrive.access_settings import AccessSettings, OidcSettings
from redrive.accounts import checked_grants, checked_token_name, checked_user_name, grant_of, grant_texts, role_of
from redrive.errors import UsageError
from redrive.identity_wiring import access_policy, oidc, provider, sessions
from redrive.testing import ManualClock


@pytest.mark.parametrize(
    ("text", "grant"),
    [
        ("viewer", Grant(Role.VIEWER)),
        (" admin ", Grant(Role.ADMIN)),
        ("operator:orders", Grant(Role.OPERATOR, ("orders",))),
        ("operator:pay*", Grant(Role.OPERATOR, ("pay*",))),
        ("operator:*", Grant(Role.OPERATOR)),
        ("operator:a:b c", Grant(Role.OPERATOR, ("a:b c",))),
    ],
)
def test_a_grant_is_a_role_and_maybe_queues(text: str, grant: Grant) -> None:
    assert grant_of(text) == grant


@pytest.mark.parametrize(
    "text", ["", "root", "Viewer", "viewer,admin", "operator:", "operator:a*b", "operator:**", "viewer:\n",
             ":orders", "operator:" + "x" * 300, "operator:\ud800"],
)  # fmt: skip
def test_anything_else_is_no_grant(text: str) -> None:
    with pytest.raises(UsageError):
        grant_of(text)


@given(st.sampled_from(Role), st.lists(st.text(min_size=1, max_size=9), max_size=3))
def test_grants_are_written_as_they_are_read(role: Role, names: list[str]) -> None:
    queues = tuple(name for name in names if name.isprintable() and name.strip() == name and "*" not in name)
    grant = Grant(role, queues) if queues else Grant(role)
    assert [grant_of(text) for text in grant_texts([grant])] == [Grant(role, (each,)) for each in grant.queues]


def test_grants_are_had_once_and_there_is_at_least_one() -> None:
    assert checked_grants([Grant(Role.VIEWER), Grant(Role.VIEWER)]) == (Grant(Role.VIEWER),)
    for wrong in ([], [Grant(Role.VIEWER, ())], [Grant(Role.VIEWER, ("",))], [Grant(Role.VIEWER, ("a*b",))]):
        with pytest.raises(UsageError):
            checked_grants(wrong)


@pytest.mark.parametrize(
    ("text", "name"), [("eve", "eve"), (" Eve ", "eve"), ("eve.b+c@x-y_z.org", "eve.b+c@x-y_z.org")]
)
def test_names_of_users_are_plain(text: str, name: str) -> None:
    assert checked_user_name(text) == name


@pytest.mark.parametrize(
    "text", ["", " ", "-eve", ".eve", "eve adams", "oidc:eve", "token:eve", "first start", "\u0435ve", "eve\n.",
             "é", "x" * 65, "eve\0", "e/ve", "\ud800", "\u212a"],
)  # fmt: skip
def test_names_that_could_be_taken_for_others_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        checked_user_name(text)


def test_a_token_has_a_name_on_one_line() -> None:
    assert checked_token_name("  deploy \n of  shop ") == "deploy of shop"
    for wrong in ("", " \n", "x" * 65, "a\0b", "a\u202eb"):
        with pytest.raises(UsageError):
            checked_token_name(wrong)


@pytest.mark.parametrize(
    ("text", "role", "grant"),
    [
        ("ops=operator", "ops", Grant(Role.OPERATOR)),
        ("  shop ops  =  operator:orders ", "shop ops", Grant(Role.OPERATOR, ("orders",))),
        ("cn=ops,dc=x = viewer", "cn=ops,dc=x", Grant(Role.VIEWER)),
        ("a = viewer:b = admin", "a", Grant(Role.VIEWER, ("b = admin",))),
    ],
)
def test_a_role_of_a_provider_grants_one_of_ours(text: str, role: str, grant: Grant) -> None:
    assert role_of(text) == (role, grant)


@pytest.mark.parametrize(
    "text", ["", "ops", "ops =", "= admin", "ops = root", "ops = viewer:", "ops: admin", "o\n= admin"]
)
def test_anything_else_grants_nothing(text: str) -> None:
    with pytest.raises(UsageError):
        role_of(text)


def test_the_settings_make_a_provider_or_none() -> None:
    assert provider(OidcSettings()) is None
    assert oidc(OidcSettings(), ManualClock()) is None
    settings = OidcSettings.model_validate(
        {
            "issuer": "https://idp.example.org",
            "client_id": "redrive",
            "client_secret": "hidden away",
            "role_map": ["ops = operator:orders"],
        }
    )
    made = provider(settings)
    assert made is not None
    assert (made.issuer, made.client_secret, made.roles) == (
        "https://idp.example.org",
        "hidden away",
        (("ops", Grant(Role.OPERATOR, ("orders",))),),
    )
    assert "hidden" not in f"{settings!r} {made!r}"
    assert oidc(settings, ManualClock()) is not None


@pytest.mark.parametrize(
    "values",
    [
        {"issuer": "https://idp.example.org"},
        {"issuer": "https://idp.example.org", "client_id": "redrive"},
        {"issuer": "idp.example.org", "client_id": "redrive", "role_map": "ops = viewer"},
        {"issuer": "https://idp.example.org", "client_id": "redrive", "role_map": "ops = root"},
        {"roles_claim": ""},
    ],
)
def test_a_provider_that_is_not_complete_is_refused(values: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"should|needs|no role|grants nothing"):
        OidcSettings.model_validate(values)


def test_a_token_is_not_older_by_default_than_it_may_be() -> None:
    with pytest.raises(ValueError, match="token_max_age"):
        AccessSettings(token_age=10.0, token_max_age=9.0)
    assert access_policy(AccessSettings()).token_age.days == 90
    assert sessions(AccessSettings(), None, ManualClock()) is not None  # type: ignore[arg-type]  # it is not asked
