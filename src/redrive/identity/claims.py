"""What a signed JSON Web Token says, if it is to be believed. Pure: the time and the key come in.

The token never chooses how it is checked: algorithms are those of `ALGORITHMS`, each with its one kind of key, and
keys are those of the identity provider, by their ids. Keys and addresses in a token's header are not looked at.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any

import msgspec
from joserfc import jwt
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from redrive.errors import RedriveError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from joserfc._rfc7515.model import JWSAlgModel  # what its registry gives; it has no public home

ALGORITHMS: Mapping[str, str] = {
    "RS256": "RSA",
    "PS256": "RSA",
    "ES256": "EC",
    "EdDSA": "OKP",
    "Ed25519": "OKP",
}
"""And the kind of key that goes with each. Nothing with a shared secret, and not `none`."""

SKEW = 60
"""Seconds by which clocks may differ."""

LARGEST = 16 * 1024
_SMALLEST_RSA = 2048
_BITS_PER_CHARACTER = 6
_LONGEST_KEY_ID = 256
_PARTS = 3


class Unbelievable(RedriveError):
    """The token proves nothing. The text is for the log; it quotes nothing of the token."""


class Marks(msgspec.Struct, frozen=True):
    """What a token's header says about its signature."""

    algorithm: str
    key_id: str


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    issuer: str
    audience: str
    nonce: str | None = None
    """Of an id token: the one that was sent along. None: an access token."""
    made_for: str | None = None
    """The client, of an access token that it has just got from the provider itself: any audience will do then."""


class _Registry(JWSRegistry):
    max_header_length = 2048

    def get_alg(self, name: str) -> JWSAlgModel:
        """The one that is allowed. EdDSA without a warning: the name is old, the signature is that of Ed25519."""
        if name not in (self.allowed or ()):
            raise UnsupportedAlgorithmError("not the one that its header named before")
        return self.algorithms[name]


def marks(token: str) -> Marks:
    parts = token.split(".")
    if len(token) > LARGEST or len(parts) != _PARTS or not token.isascii() or not all(parts):
        raise Unbelievable("it is not a signed token")
    header = _json(parts[0])
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise Unbelievable("its algorithm is not one of ours")
    if not isinstance(key_id, str) or not 0 < len(key_id) <= _LONGEST_KEY_ID:
        raise Unbelievable("it names no key")
    if "crit" in header or "b64" in header or "zip" in header:
        raise Unbelievable("its header asks for what we do not do")
    return Marks(algorithm, key_id)


def _json(part: str) -> Mapping[str, Any]:
    try:
        raw = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
        found = json.loads(raw)
    except (binascii.Error, ValueError, RecursionError):
        raise Unbelievable("its header cannot be read") from None
    if not isinstance(found, dict):
        raise Unbelievable("its header cannot be read")
    return found


def usable_key(jwk: Mapping[str, Any], algorithm: str) -> RSAKey | ECKey | OKPKey:
    """The provider's key, if it is meant for this. Unbelievable if it is not."""
    if jwk.get("kty") != ALGORITHMS[algorithm] or jwk.get("use", "sig") != "sig":
        raise Unbelievable("its key is for something else")
    operations = jwk.get("key_ops", ["verify"])
    may_verify = isinstance(operations, list) and "verify" in operations
    if jwk.get("alg", algorithm) != algorithm or not may_verify:
        raise Unbelievable("its key is for something else")
    public = {name: value for name, value in jwk.items() if name in {"kty", "n", "e", "crv", "x", "y"}}
    try:
        return _imported(public)
    except (JoseError, ValueError, TypeError, KeyError, AttributeError):
        raise Unbelievable("its key cannot be read") from None


def _imported(public: dict[str, Any]) -> RSAKey | ECKey | OKPKey:
    if public["kty"] == "RSA":
        if len(public["n"]) * _BITS_PER_CHARACTER < _SMALLEST_RSA:  # before the library warns about it
            raise Unbelievable("its key is too small")
        found = RSAKey.import_key(public)
        if found.raw_value.key_size < _SMALLEST_RSA:
            raise Unbelievable("its key is too small")
        return found
    if public["kty"] == "EC" and public["crv"] == "P-256":
        return ECKey.import_key(public)
    if public["kty"] == "OKP" and public["crv"] == "Ed25519":
        return OKPKey.import_key(public)
    raise Unbelievable("its key is of another curve")


def believed(
    token: str, key: RSAKey | ECKey | OKPKey, expected: Expected, *, algorithm: str, now: datetime
) -> Mapping[str, Any]:
    """The token's claims: signed by the key, by and for whom is expected, and now."""
    try:
        found = jwt.decode(token, key, registry=_Registry(algorithms=[algorithm], strict_check_header=False))
    except (JoseError, ValueError, TypeError, RecursionError):
        raise Unbelievable("its signature is not the provider's") from None
    claims = found.claims
    _check_time(claims, now.timestamp())
    _check_parties(claims, expected)
    return claims


def _check_time(claims: Mapping[str, Any], now: float) -> None:
    if _moment(claims.get("exp")) + SKEW <= now:
        raise Unbelievable("it has expired")
    for name in ("nbf", "iat"):
        if name in claims and _moment(claims[name]) - SKEW > now:
            raise Unbelievable("it holds from later on")


def _moment(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e11:  # noqa: PLR2004  year 5138
        raise Unbelievable("it does not say until when it holds")
    return float(value)


def _check_parties(claims: Mapping[str, Any], expected: Expected) -> None:
    if claims.get("iss") != expected.issuer:
        raise Unbelievable("it is of another issuer")
    audience = claims.get("aud")
    meant_for = audience if isinstance(audience, list) else [audience]
    is_given = expected.made_for is not None and claims.get("azp") == expected.made_for
    if not is_given and (not expected.audience or expected.audience not in meant_for):
        raise Unbelievable("it is for somebody else")
    if not isinstance(claims.get("sub"), str) or not claims["sub"]:
        raise Unbelievable("it is about nobody")
    if expected.nonce is None and (claims.get("typ") == "ID" or "at_hash" in claims):
        raise Unbelievable("it says who signed in somewhere, and lets nobody in")
    if expected.nonce is not None:
        _check_sign_in(claims, expected, several=len(meant_for) > 1)


def _check_sign_in(claims: Mapping[str, Any], expected: Expected, *, several: bool) -> None:
    if not expected.nonce or claims.get("nonce") != expected.nonce:
        raise Unbelievable("it answers another sign-in")
    if (several or "azp" in claims) and claims.get("azp") != expected.audience:
        raise Unbelievable("it was made for another client")


def at_path(claims: Mapping[str, Any], path: str) -> object:
    """The claim of that name, or at `outer.inner`. None if there is none."""
    if path in claims:  # a name with dots in it, such as a URL
        return claims[path]
    found: object = claims
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found
