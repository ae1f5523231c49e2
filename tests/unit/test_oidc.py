"""What an identity provider says is believed if it is proven, and nothing else is (TH13)."""

from __future__ import annotations

import base64
import hashlib
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from redrive.access import Grant, Identity, Role
from redrive.errors import Unreachable
from redrive.identity.claims import ALGORITHMS
from redrive.identity.oidc import Oidc, Provider
from redrive.identity.sign_ins import SignIns, local_path
from redrive.outgoing import Outgoing
from redrive.testing import ManualClock
from redrive.testing.letters import NOON
from support.account_book import account_book
from support.fake_idp import (
    FakeIdentityProvider,
    fake_identity_provider,
    key_of,
    part,
    public_jwk,
    public_pem,
    signed,
)

OPERATOR, ADMIN = Grant(Role.OPERATOR, ("orders",)), Grant(Role.ADMIN)
TRUSTING = ssl.create_default_context()
SECRET = "the client's secret"  # noqa: S105  an example


@pytest.fixture
async def idp() -> AsyncIterator[FakeIdentityProvider]:
    async with fake_identity_provider(ManualClock(NOON)) as provider:
        yield provider


def oidc_of(idp: FakeIdentityProvider, **values: Any) -> Oidc:
    provider = Provider(
        issuer=idp.issuer,
        client_id="redrive",
        client_secret=SECRET,
        audience="redrive-api",
        roles=(("dlq-ops", OPERATOR), ("dlq-admins", ADMIN)),
    )
    outgoing = Outgoing(allowed=[f"localhost:{idp.port}"], security=TRUSTING)
    return Oidc(msgspec.structs.replace(provider, **values), outgoing, idp.clock)


def clock_of(idp: FakeIdentityProvider) -> ManualClock:
    assert isinstance(idp.clock, ManualClock)
    return idp.clock


# Tokens that are good


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [("rsa", "RS256"), ("rsa", "PS256"), ("ec", "ES256"), ("ed", "EdDSA"), ("ed", "Ed25519")],
)
async def test_every_algorithm_of_ours_proves_who_it_is(
    idp: FakeIdentityProvider, key: str, algorithm: str
) -> None:
    found = await oidc_of(idp).identify(idp.token(key, algorithm), request_id="r")
    assert found == Identity(name="oidc:4f2a", grants=(OPERATOR,), request_id="r")


def test_no_other_algorithm_is_ours() -> None:
    assert set(ALGORITHMS) == {"RS256", "PS256", "ES256", "EdDSA", "Ed25519"}


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": NOON.timestamp() - 59},
        {"nbf": NOON.timestamp() + 60, "iat": NOON.timestamp() + 60},
        {"aud": ["other", "redrive-api"]},
        {"realm_access": {"roles": ["unknown", 7, None, "dlq-ops"]}},
        {"nbf": NOON.timestamp() - 0.5},
    ],
)
async def test_what_is_within_the_rules_is_believed(idp: FakeIdentityProvider, claims: dict[str, Any]) -> None:
    assert await oidc_of(idp).identify(idp.token(**claims)) is not None


@pytest.mark.parametrize(
    ("path", "claims"),
    [
        ("roles", {"roles": ["dlq-ops", "dlq-admins", "dlq-ops"]}),
        ("resource_access.redrive.roles", {"resource_access": {"redrive": {"roles": ["dlq-admins", "dlq-ops"]}}}),
        ("https://example.org/roles", {"https://example.org/roles": ["dlq-ops", "dlq-admins"]}),
    ],
)
async def test_roles_are_found_where_the_settings_say(
    idp: FakeIdentityProvider, path: str, claims: dict[str, Any]
) -> None:
    found = await oidc_of(idp, roles_claim=path).identify(idp.token(**claims))
    assert found is not None
    assert found.grants == (OPERATOR, ADMIN)


async def test_one_role_may_stand_alone(idp: FakeIdentityProvider) -> None:
    found = await oidc_of(idp, roles_claim="role").identify(idp.token(role="dlq-admins"))
    assert found is not None
    assert found.grants == (ADMIN,)


async def test_the_name_is_the_claim_of_the_settings(idp: FakeIdentityProvider) -> None:
    found = await oidc_of(idp, name_claim="email").identify(idp.token(email="eve@example.org"))
    assert found is not None
    assert found.name == "oidc:eve@example.org"


async def test_a_token_about_nobody_has_no_other_name(idp: FakeIdentityProvider) -> None:
    claims = {name: value for name, value in idp.claims(email="eve@example.org").items() if name != "sub"}
    assert await oidc_of(idp, name_claim="email").identify(signed(RS, claims, "rsa")) is None


async def test_without_an_audience_tokens_are_for_the_client(idp: FakeIdentityProvider) -> None:
    oidc = oidc_of(idp, audience="")
    assert await oidc.identify(idp.token(aud="redrive")) is not None
    assert await oidc.identify(idp.token()) is None


# Tokens that are broken

Break = Callable[[FakeIdentityProvider], str]
RS = {"alg": "RS256", "kid": "rsa"}


def with_claims(**claims: Any) -> Break:
    return lambda idp: idp.token(**claims)


def without(name: str) -> Break:
    return lambda idp: signed(RS, {key: value for key, value in idp.claims().items() if key != name}, "rsa")


def with_header(key: str | bytes = "rsa", **header: Any) -> Break:
    """None takes a field away."""
    fields = {name: value for name, value in {**RS, **header}.items() if value is not None}
    return lambda idp: signed(fields, idp.claims(), key)


def changed(change: Callable[[str], str]) -> Break:
    return lambda idp: change(idp.token())


def swapped(idp: FakeIdentityProvider) -> str:
    """The signature of a good token under other claims."""
    head, _, proof = idp.token().split(".")
    return f"{head}.{part(idp.claims(realm_access={'roles': ['dlq-admins']}))}.{proof}"


def unsigned(algorithm: str, proof: str = "") -> Break:
    return lambda idp: f"{part({'alg': algorithm, 'kid': 'rsa'})}.{part(idp.claims())}.{proof}"


def as_payload(raw: bytes) -> Break:
    return lambda _idp: signed(RS, raw, "rsa")


def published(name: str, algorithm: str, **jwk: Any) -> Break:
    """The provider shows this key, and the token is signed by it."""

    def broken(idp: FakeIdentityProvider) -> str:
        idp.keys.append({**public_jwk(name), **jwk})
        return signed({"alg": algorithm, "kid": name}, idp.claims(), name)

    return broken


def twice(idp: FakeIdentityProvider) -> str:
    """Two keys of one id: nobody knows which is meant."""
    idp.keys.append({**public_jwk("rsa.other"), "kid": "rsa"})
    return signed(RS, idp.claims(), "rsa.other")


def shared_secret(idp: FakeIdentityProvider) -> str:
    idp.keys.append({"kty": "oct", "k": part(b"x" * 32), "kid": "oct", "alg": "HS256"})
    return signed({"alg": "HS256", "kid": "oct"}, idp.claims(), b"x" * 32)


NOW = int(NOON.timestamp())
EVIL = {"jwk": public_jwk("rsa.evil"), "jku": "http://localhost:1/keys", "x5u": "http://localhost:1/cert"}
BROKEN: dict[str, Break] = {
    "alg none": unsigned("none"),
    "alg none with a dot of proof": unsigned("none", "AA"),
    "alg nOnE": unsigned("nOnE", "AA"),
    "alg NONE signed": with_header(alg="NONE"),
    "no alg": with_header(alg=None),
    "alg a list": with_header(alg=["RS256"]),
    "alg a number": with_header(alg=256),
    "alg in small letters": with_header(alg="rs256"),
    "HS256 by the public key": with_header(public_pem("rsa"), alg="HS256"),
    "HS512 by the public key": with_header(public_pem("rsa"), alg="HS512"),
    "HS256 by the client's secret": with_header(SECRET.encode(), alg="HS256"),
    "HS256 by nothing": with_header(b"", alg="HS256"),
    "HS256 by a key of the provider": shared_secret,
    "RS256 said, a shared secret used": with_header(b"x" * 32),
    "RS512": with_header(alg="RS512"),
    "ES384": with_header(alg="ES384"),
    "no key id": with_header(kid=None),
    "an empty key id": with_header(kid=""),
    "a key id that is a number": with_header(kid=1),
    "an unknown key id": with_header(kid="unknown"),
    "a key id that is a path": with_header(kid="../../dev/null"),
    "another key under a known id": with_header("rsa.evil"),
    "its own key in the header": with_header("rsa.evil", **EVIL),
    "ES256 said of an RSA key": with_header(alg="ES256"),
    "RS256 said of an EC key": with_header("ec", kid="ec"),
    "EdDSA said of an EC key": with_header("ec", kid="ec", alg="EdDSA"),
    "a key for encryption": published("rsa.enc", "RS256", use="enc"),
    "a key for another algorithm": published("rsa.alg", "RS256", alg="RS512"),
    "a key that may not verify": published("rsa.ops", "RS256", key_ops=["encrypt"]),
    "a key of 1024 bits": published("rsa-1024", "RS256"),
    "a key of another curve": published("ec-384", "ES256"),
    "a key that cannot be read": published("ec.bad", "ES256", x="AAAA"),
    "a key without its parts": published("rsa.parts", "RS256", n=None),
    "two keys of one id": twice,
    "a critical header": with_header(crit=["exp"], exp=1),
    "an unknown critical header": with_header(crit=["x"], x=1),
    "an unencoded payload": with_header(b64=False, crit=["b64"]),
    "a packed payload": with_header(zip="DEF"),
    "a cut signature": changed(lambda token: token[:-8]),
    "no signature": changed(lambda token: token.rpartition(".")[0] + "."),
    "two parts": changed(lambda token: token.rpartition(".")[0]),
    "four parts": changed(lambda token: token + ".AA"),
    "five parts": lambda _idp: ".".join([part({"alg": "RSA-OAEP", "enc": "A256GCM", "kid": "rsa"}), *["AA"] * 4]),
    "a signature of other claims": swapped,
    "a space before": changed(lambda token: " " + token),
    "a newline behind": changed(lambda token: token + "\n"),
    "padding": changed(lambda token: token.replace(".", "=.", 1)),
    "letters that are not ASCII": changed(lambda token: token.replace(".", ".é", 1)),
    "nothing": lambda _idp: "",
    "three dots": lambda _idp: "...",
    "a header that is a list": lambda idp: signed([RS], idp.claims(), "rsa"),
    "a header that is no JSON": lambda idp: signed(b"{alg:RS256}", idp.claims(), "rsa"),
    "a header that nests": lambda idp: signed(b"[" * 5000, idp.claims(), "rsa"),
    "claims that are a list": as_payload(b"[]"),
    "claims that are text": as_payload(b'"admin"'),
    "claims that are no JSON": as_payload(b"{"),
    "claims that are no text": as_payload(b"\xff\xfe"),
    "claims that nest": as_payload(b'{"a":' * 1500 + b"1" + b"}" * 1500),
    "twenty kibibytes": with_claims(filler="x" * 20_000),
    "expired": with_claims(exp=NOW - 60),
    "no end": without("exp"),
    "an end that is text": with_claims(exp=str(NOW + 300)),
    "an end that is true": with_claims(exp=True),
    "an end that is null": with_claims(exp=None),
    "an end that is no number": with_claims(exp=float("nan")),
    "an end that never comes": with_claims(exp=float("inf")),
    "an end before 1970": with_claims(exp=-1),
    "an end in milliseconds": with_claims(exp=(NOW + 300) * 1000),
    "a list of ends": with_claims(exp=[NOW + 300]),
    "from later on": with_claims(nbf=NOW + 61),
    "from a text on": with_claims(nbf="now"),
    "from true on": with_claims(nbf=True),
    "made later": with_claims(iat=NOW + 61),
    "another issuer": with_claims(iss="http://localhost:1/realm"),
    "an issuer with a slash": lambda idp: idp.token(iss=idp.issuer + "/"),
    "an issuer in a list": lambda idp: idp.token(iss=[idp.issuer]),
    "no issuer": without("iss"),
    "another audience": with_claims(aud="other"),
    "a list of others": with_claims(aud=["other", "redrive-api2"]),
    "an audience that is part of it": with_claims(aud="redrive"),
    "an empty audience": with_claims(aud=""),
    "an audience that is a table": with_claims(aud={"redrive-api": 1}),
    "no audience": without("aud"),
    "an id token by its type": with_claims(typ="ID"),
    "an id token by its hash": with_claims(at_hash="abc"),
    "nobody": without("sub"),
    "an empty somebody": with_claims(sub=""),
    "somebody who is a number": with_claims(sub=7),
    "somebody with a newline": with_claims(sub="eve\nadmin"),
    "somebody endless": with_claims(sub="x" * 300),
    "no roles": without("realm_access"),
    "an empty list of roles": with_claims(realm_access={"roles": []}),
    "unknown roles": with_claims(realm_access={"roles": ["dlq-op", "DLQ-OPS", "dlq-ops "]}),
    "roles in a table": with_claims(realm_access={"roles": {"dlq-ops": True}}),
    "roles one too deep": with_claims(realm_access={"roles": [["dlq-ops"]]}),
    "roles in a text": with_claims(realm_access="roles"),
    "an API token": lambda _idp: f"rdv_abcdefghjk23_{'0' * 64}",
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
async def test_a_broken_token_proves_nothing(idp: FakeIdentityProvider, broken: Break) -> None:
    token = broken(idp)
    assert await oidc_of(idp).identify(token) is None
    assert set(idp.asked) <= {"/realm/.well-known/openid-configuration", "/realm/keys"}


def test_there_are_enough_broken_tokens() -> None:
    assert len(BROKEN) >= 30


# Keys


async def test_keys_are_asked_for_once_and_again_after_an_hour(idp: FakeIdentityProvider) -> None:
    oidc = oidc_of(idp)
    for _ in range(5):
        assert await oidc.identify(idp.token()) is not None
    assert idp.asked.count("/realm/keys") == 1
    clock_of(idp).advance(3600)
    assert await oidc.identify(idp.token()) is not None
    assert idp.asked.count("/realm/keys") == 2


async def test_a_new_key_is_found_and_one_taken_back_is_not_used(idp: FakeIdentityProvider) -> None:
    oidc = oidc_of(idp)
    assert await oidc.identify(idp.token()) is not None
    clock_of(idp).advance(30)
    idp.keys = [public_jwk("rsa.new")]

    assert await oidc.identify(idp.token("rsa.new")) is not None
    assert await oidc.identify(idp.token("rsa")) is None


async def test_unknown_keys_do_not_make_us_ask_without_end(idp: FakeIdentityProvider) -> None:
    oidc = oidc_of(idp)
    for number in range(50):
        assert await oidc.identify(idp.token("ec", "ES256")) is not None
        header = {"alg": "RS256", "kid": f"unknown {number}"}
        assert await oidc.identify(signed(header, idp.claims(), "rsa")) is None
        clock_of(idp).advance(1)
    assert idp.asked.count("/realm/keys") == 2  # fifty seconds


async def test_a_provider_that_is_away_keeps_nobody_out_whose_key_is_known(idp: FakeIdentityProvider) -> None:
    oidc = oidc_of(idp)
    assert await oidc.identify(idp.token()) is not None
    idp.is_up = False
    clock_of(idp).advance(4000)
    assert await oidc.identify(idp.token()) is not None


async def test_a_provider_that_was_never_there_is_no_refusal(idp: FakeIdentityProvider) -> None:
    oidc = oidc_of(idp)
    idp.is_up = False
    for _ in range(3):
        with pytest.raises(Unreachable):
            await oidc.identify(idp.token())
    assert len(idp.asked) == 1  # and it is not asked all the time
    idp.is_up = True
    clock_of(idp).advance(30)
    assert await oidc.identify(idp.token()) is not None


@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "http://localhost:1/realm"},
        {"issuer": None},
        {"jwks_uri": None},
        {"jwks_uri": "http://127.0.0.1:9/keys"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": "https://localhost:22/keys"},
        {"token_endpoint": "http://169.254.169.254/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": 7},
    ],
)
async def test_a_discovery_document_that_leads_elsewhere_is_not_followed(
    idp: FakeIdentityProvider, document: dict[str, Any]
) -> None:
    idp.document = document
    with pytest.raises(Exception, match=r"identity provider|may not be asked"):
        await oidc_of(idp).identify(idp.token())
    assert idp.asked == ["/realm/.well-known/openid-configuration"]


# Browsers


class Browser:
    """On its way through the provider, as far as the query goes."""

    def __init__(self, idp: FakeIdentityProvider, sign_ins: SignIns) -> None:
        self.idp, self.sign_ins = idp, sign_ins
        self.exchanges: list[dict[str, str]] = []
        self.id_claims: dict[str, Any] = {}
        self.access_claims: dict[str, Any] = {}
        idp.answers = self._answer

    async def begin(self, return_to: str = "/letters") -> dict[str, str]:
        begun = await self.sign_ins.begin("https://redrive.example/callback", return_to)
        self.cookie = begun.state
        self.url = begun.url
        self.query = {name: values[0] for name, values in parse_qs(urlsplit(begun.url).query).items()}
        return self.query

    def _answer(self, asked: Any) -> dict[str, Any]:
        self.exchanges.append(dict(asked))
        proof = (
            base64.urlsafe_b64encode(hashlib.sha256(asked["code_verifier"].encode()).digest())
            .rstrip(b"=")
            .decode()
        )
        if asked["code"] != "good" or proof != self.query["code_challenge"]:
            return {}
        own = {"aud": "redrive", "nonce": self.query["nonce"], **self.id_claims}
        access = {"aud": "account", "azp": "redrive", **self.access_claims}
        return {
            "id_token": self.idp.token(**own),
            "access_token": self.idp.token(**access),
            "token_type": "Bearer",
        }

    async def finish(self, **values: str) -> Any:
        return await self.sign_ins.finish(
            **{"state": self.query["state"], "cookie": self.cookie, "code": "good", **values}
        )


@pytest.fixture
async def browser(idp: FakeIdentityProvider) -> AsyncIterator[Browser]:
    async with account_book() as (store, clock):
        idp.clock = clock
        yield Browser(idp, SignIns(store, oidc_of(idp), clock))


async def test_a_browser_signs_in(browser: Browser) -> None:
    query = await browser.begin()

    finished = await browser.finish()

    assert finished is not None
    assert (finished.identity, finished.return_to) == (Identity(name="oidc:4f2a", grants=(OPERATOR,)), "/letters")
    assert browser.url.startswith(f"{browser.idp.issuer}/authorize?")
    assert (query["response_type"], query["client_id"], query["scope"]) == ("code", "redrive", "openid profile")
    assert (query["code_challenge_method"], query["redirect_uri"]) == ("S256", "https://redrive.example/callback")
    [asked] = browser.exchanges
    assert (asked["grant_type"], asked["redirect_uri"]) == ("authorization_code", query["redirect_uri"])
    basic = base64.b64encode(f"redrive:{SECRET}".encode())
    assert b"authorization: basic " + basic.lower() in browser.idp.requests[1].lower()
    assert "client_secret" not in asked


async def test_nothing_secret_is_in_the_url(browser: Browser) -> None:
    await browser.begin()
    await browser.finish()
    assert SECRET not in browser.url
    assert browser.exchanges[0]["code_verifier"] not in browser.url


async def test_every_sign_in_has_its_own_state_nonce_and_challenge(browser: Browser) -> None:
    first, second = await browser.begin(), await browser.begin()
    assert all(first[name] != second[name] for name in ("state", "nonce", "code_challenge"))


async def test_an_answer_counts_once(browser: Browser) -> None:
    await browser.begin()
    assert await browser.finish() is not None
    assert await browser.finish() is None
    assert len(browser.exchanges) == 1


@pytest.mark.parametrize(
    "values",
    [
        {"state": "0" * 64},
        {"state": "0" * 64, "cookie": "0" * 64},
        {"state": ""},
        {"cookie": ""},
        {"cookie": "0" * 64},
        {"cookie": "\ud800"},
        {"code": ""},
        {"code": "x" * 5000},
    ],
)
async def test_an_answer_of_another_browser_is_not_even_exchanged(
    browser: Browser, values: dict[str, str]
) -> None:
    await browser.begin()
    assert await browser.finish(**values) is None
    assert browser.exchanges == []


async def test_a_sign_in_holds_for_ten_minutes(browser: Browser) -> None:
    await browser.begin()
    clock_of(browser.idp).advance(600)
    assert await browser.finish() is None


async def test_a_code_that_the_provider_does_not_know_is_nobody(browser: Browser) -> None:
    await browser.begin()
    assert await browser.finish(code="bad") is None


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "redrive-api"},
        {"aud": ["redrive", "other"]},
        {"aud": ["redrive", "other"], "azp": "other"},
        {"azp": "other"},
        {"iss": "http://localhost:1/realm"},
        {"exp": NOW - 60},
        {"realm_access": {"roles": []}},
    ],
)
async def test_an_id_token_for_another_sign_in_is_nobody(browser: Browser, claims: dict[str, Any]) -> None:
    browser.id_claims = claims
    await browser.begin()
    assert await browser.finish() is None


async def test_roles_may_stand_in_the_access_token_alone(browser: Browser) -> None:
    browser.id_claims = {"realm_access": None}
    browser.access_claims = {"realm_access": {"roles": ["dlq-admins"]}}
    await browser.begin()
    finished = await browser.finish()
    assert finished is not None
    assert finished.identity.grants == (ADMIN,)


@pytest.mark.parametrize("claims", [{"sub": "somebody else"}, {"azp": "other"}, {"exp": NOW - 60}, {"iss": "x"}])
async def test_an_access_token_of_somebody_else_gives_no_roles(browser: Browser, claims: dict[str, Any]) -> None:
    browser.id_claims = {"realm_access": None}
    browser.access_claims = claims
    await browser.begin()
    assert await browser.finish() is None


async def test_a_client_without_a_secret_has_pkce_alone(browser: Browser) -> None:
    browser.sign_ins._oidc = oidc_of(browser.idp, client_secret="")
    await browser.begin()
    assert await browser.finish() is not None
    assert browser.exchanges[0]["client_id"] == "redrive"
    assert not any(b"authorization:" in each.lower() for each in browser.idp.requests)


async def test_a_provider_that_wants_the_secret_in_the_body_has_it_there(browser: Browser) -> None:
    browser.idp.document = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    await browser.begin()
    assert await browser.finish() is not None
    assert browser.exchanges[0]["client_secret"] == SECRET


@pytest.mark.parametrize("path", ["/", "/letters?q=queue:orders", "/groups/1#x"])
def test_paths_of_ours_are_returned_to(path: str) -> None:
    assert local_path(path) == path


@pytest.mark.parametrize(
    "path",
    ["", "//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)",
     "/\t/evil.example", "/\n", " /", "evil.example", "/x\\y", "/" + "x" * 3000, "///evil.example"],
)  # fmt: skip
def test_no_other_place_is_returned_to(path: str) -> None:
    assert local_path(path) == "/"


async def test_nothing_shows_a_secret_by_accident(idp: FakeIdentityProvider) -> None:
    provider = Provider(issuer=idp.issuer, client_id="redrive", client_secret=SECRET)
    assert SECRET not in repr(provider)
    assert key_of("rsa") is key_of("rsa")
