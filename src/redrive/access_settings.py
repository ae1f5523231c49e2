"""Settings of those who sign in: tokens, sessions, an identity provider. See `redrive.settings`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from redrive.accounts import role_of
from redrive.errors import UsageError
from redrive.section import Section
from redrive.setting_values import OptionalName, OptionalSecret, Positive, QueueNames, Timeout, unset

_DAY = 86400.0
Text = Annotated[str, Field(min_length=1)]


def _address(value: Any) -> Any:
    if value is not None and not (isinstance(value, str) and value.startswith(("https://", "http://"))):
        raise ValueError("should be a URL such as 'https://idp.example.org/realms/main', or 'none'")
    return value


def _roles(value: tuple[str, ...]) -> tuple[str, ...]:
    for text in value:
        try:
            role_of(text)
        except UsageError as error:
            raise ValueError(f"{error}; {error.remedy}") from None
    return value


class AccessSettings(Section):
    """Of `redrive serve`, and of tokens wherever they are made."""

    token_age: Timeout = 90 * _DAY
    """What a new token holds for, if nobody says anything else."""
    token_max_age: Timeout = 365 * _DAY
    """And at most."""
    session: Timeout = 12 * 3600.0
    """A browser's session ends so long after it began, whatever happens."""
    session_idle: Timeout = 3600.0
    """And so long after it was seen last."""
    failed_attempts: Positive = 20
    """To sign in or to show a token, in a minute and from one address; after them there is a wait."""

    @model_validator(mode="after")
    def _sensible(self) -> AccessSettings:
        if self.token_age > self.token_max_age:
            raise ValueError("token_age should not be longer than token_max_age")
        return self


class OidcSettings(Section):
    """An OpenID Connect provider whose people and tokens may come in."""

    issuer: Annotated[str | None, BeforeValidator(_address), BeforeValidator(unset)] = None
    """Exactly as its tokens have it. None: there is no provider."""
    client_id: OptionalName = None
    client_secret: OptionalSecret = None
    """None: the client is public, and PKCE alone protects the code."""
    audience: OptionalName = None
    """Whom access tokens are for. None: client_id."""
    roles_claim: Text = "realm_access.roles"
    """Where in its tokens the roles stand."""
    role_map: Annotated[QueueNames, AfterValidator(_roles)] = ()
    """What its roles grant here, such as "dlq-admins = admin" or "shop-ops = operator:orders"."""
    name_claim: Text = "sub"
    """What tells its people apart: nothing that they can change about themselves."""
    allowed_hosts: QueueNames = ()
    """Hosts of the provider that may have private addresses or plain HTTP, as `host` or `host:port`."""

    @model_validator(mode="after")
    def _complete(self) -> OidcSettings:
        if self.issuer is not None and self.client_id is None:
            raise ValueError("issuer needs client_id")
        if self.issuer is not None and not self.role_map:
            raise ValueError("issuer needs role_map: without roles nobody may do anything")
        return self
