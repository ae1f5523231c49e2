"""Whatever a token says, it proves something or it does not, and nothing else happens (TH13)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.access import Grant, Role
from redrive.identity.claims import Expected, Unbelievable, believed, marks, usable_key
from redrive.identity.oidc import Oidc, Provider
from redrive.outgoing import Outgoing
from redrive.testing import ManualClock
from redrive.testing.letters import NOON
from support.fake_idp import part, public_jwk, signed

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["iss", "aud", "sub", "exp", "nbf", "iat", "azp", "nonce", "typ", "realm_access", "roles"])
OURS = {"iss": "i", "aud": "a", "sub": "s", "exp": NOON.timestamp() + 60, "realm_access": {"roles": ["ops"]}}
EXPECTED = Expected(issuer="i", audience="a")
KEY = usable_key(public_jwk("ed"), "EdDSA")
OIDC = Oidc(
    Provider(issuer="i", client_id="c", roles=(("ops", Grant(Role.VIEWER)),)), Outgoing(), ManualClock(NOON)
)


@settings(max_examples=60)
@given(st.text() | st.lists(JSON.map(part), min_size=2, max_size=4).map(".".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(Unbelievable):
        marks(text)


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(["alg", "kid", "crit", "typ", "x"]), JSON))
def test_any_header_is_read_or_refused(header: dict[str, Any]) -> None:
    with suppress(Unbelievable):
        marks(f"{part(header)}.AA.AA")


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(["kty", "use", "alg", "key_ops", "n", "e", "crv", "x", "y"]), JSON),
       st.sampled_from(["rsa", "ec", "ed"]))  # fmt: skip
def test_any_key_is_read_or_refused(changes: dict[str, Any], name: str) -> None:
    algorithm = {"rsa": "RS256", "ec": "ES256", "ed": "EdDSA"}[name]
    with suppress(Unbelievable):
        usable_key({**public_jwk(name), **changes}, algorithm)


@settings(max_examples=60)
@given(st.dictionaries(NAMES, JSON, max_size=4))
def test_any_claims_are_believed_or_refused(changes: dict[str, Any]) -> None:
    token = signed({"alg": "EdDSA", "kid": "ed"}, {**OURS, **changes}, "ed")
    with suppress(Unbelievable):
        claims = believed(token, KEY, EXPECTED, algorithm="EdDSA", now=NOON)
        found = OIDC._identity(claims, OIDC._granted(claims), "")
        assert found is not None
        assert found.grants == (Grant(Role.VIEWER),)
        assert claims["iss"] == "i"


def test_the_claims_that_are_changed_there_are_believed_as_they_are() -> None:
    token = signed({"alg": "EdDSA", "kid": "ed"}, OURS, "ed")
    claims = believed(token, KEY, EXPECTED, algorithm="EdDSA", now=NOON)
    assert OIDC._identity(claims, OIDC._granted(claims), "") is not None
