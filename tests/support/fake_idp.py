"""A FAKE identity provider on loopback: discovery, keys and a token endpoint, and tokens as broken as a test asks.

It is nobody's product and checks nothing that a real one has to; what it is asked is kept for the test to look at.
"""

from __future__ import annotations

import base64
import hmac
import json
import warnings
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, OKPKey, RSAKey

from redrive.clock import Clock
from support.listener import Listener, http, listening

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


@cache
def key_of(name: str) -> PrivateKey:
    """One key for each name and run of the tests: `rsa`, `rsa-1024`, `ec`, `ec-384`, `ed`, and whatever follows a
    dot tells them apart.
    """
    kind = name.partition(".")[0]
    if kind.startswith("rsa"):
        return rsa.generate_private_key(65537, int(kind.partition("-")[2] or 2048))
    if kind.startswith("ec"):
        return ec.generate_private_key(ec.SECP384R1() if kind == "ec-384" else ec.SECP256R1())
    return ed25519.Ed25519PrivateKey.generate()


def public_pem(name: str) -> bytes:
    wanted = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    return key_of(name).public_key().public_bytes(*wanted)


def public_jwk(name: str, **more: Any) -> dict[str, Any]:
    kinds: dict[str, Any] = {"r": RSAKey, "c": ECKey, "d": OKPKey}
    with warnings.catch_warnings(action="ignore", category=SecurityWarning):  # some are bad on purpose
        imported = kinds[name[0] if name[0] == "r" else name[1]].import_key(public_pem(name))
    return {**imported.as_dict(private=False), "kid": name, **more}


def part(value: object) -> str:
    """A part of a token: JSON, or the bytes as they are."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def signature(algorithm: str, key: str | bytes, data: bytes) -> bytes:
    """By the key of that name; bytes are a shared secret."""
    if isinstance(key, bytes):
        return hmac.digest(key, data, "sha512" if algorithm == "HS512" else "sha256")
    private = key_of(key)
    if isinstance(private, rsa.RSAPrivateKey):
        salted = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
        return private.sign(data, salted if algorithm == "PS256" else padding.PKCS1v15(), hashes.SHA256())
    if isinstance(private, ec.EllipticCurvePrivateKey):
        size = (private.key_size + 7) // 8
        numbers = decode_dss_signature(private.sign(data, ec.ECDSA(hashes.SHA256())))
        return b"".join(number.to_bytes(size, "big") for number in numbers)
    return private.sign(data)


def signed(header: object, claims: object, key: str | bytes) -> str:
    algorithm = header.get("alg", "") if isinstance(header, dict) else ""
    text = f"{part(header)}.{part(claims)}"
    return f"{text}.{part(signature(algorithm, key, text.encode()))}"


class FakeIdentityProvider(Listener):
    def __init__(self, clock: Clock) -> None:
        super().__init__(b"")
        self.clock = clock
        self.keys: list[dict[str, Any]] = [public_jwk("rsa", use="sig"), public_jwk("ec"), public_jwk("ed")]
        self.document: dict[str, Any] = {}
        self.answers: Callable[[Mapping[str, str]], dict[str, Any]] = lambda _asked: {}
        self.asked: list[str] = []
        self.is_up = True

    @property
    def issuer(self) -> str:
        return f"http://localhost:{self.port}/realm"

    def claims(self, **more: Any) -> dict[str, Any]:
        now = int(self.clock.now().timestamp())
        return {
            "iss": self.issuer,
            "aud": "redrive-api",
            "sub": "4f2a",
            "iat": now,
            "exp": now + 300,
            "realm_access": {"roles": ["dlq-ops"]},
            **more,
        }

    def token(self, key: str = "rsa", algorithm: str = "RS256", **more: Any) -> str:
        return signed({"alg": algorithm, "kid": key, "typ": "JWT"}, self.claims(**more), key)

    def reply(self, request: bytes) -> bytes:
        head, _, body = request.partition(b"\r\n\r\n")
        path = head.split(b" ")[1].decode()
        self.asked.append(path)
        if not self.is_up:
            return http(b"", "503 Away")
        if path == "/realm/.well-known/openid-configuration":
            return http(json.dumps(self._discovery()).encode())
        if path == "/realm/keys":
            return http(json.dumps({"keys": self.keys}).encode())
        if path == "/realm/token":
            return self._exchange({name: values[0] for name, values in parse_qs(body.decode()).items()})
        return http(b"", "404 Not Found")

    def _discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "response_types_supported": ["code"],
            **self.document,
        }

    def _exchange(self, asked: Mapping[str, str]) -> bytes:
        answer = self.answers(asked)
        return http(json.dumps(answer).encode(), "200 OK" if answer else "400 Bad Request")


@asynccontextmanager
async def fake_identity_provider(clock: Clock) -> AsyncIterator[FakeIdentityProvider]:
    async with listening(FakeIdentityProvider(clock)) as provider:
        assert isinstance(provider, FakeIdentityProvider)
        yield provider
