"""Builds what identifies people from the settings: see `redrive.wiring`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from redrive.account_actions import AccessPolicy
from redrive.accounts import role_of
from redrive.identity.sessions import Sessions

if TYPE_CHECKING:
    from redrive.access_settings import AccessSettings, OidcSettings
    from redrive.accounts import AccountStore
    from redrive.clock import Clock
    from redrive.identity.oidc import Oidc, Provider


def access_policy(settings: AccessSettings) -> AccessPolicy:
    return AccessPolicy(
        token_age=timedelta(seconds=settings.token_age), token_max_age=timedelta(seconds=settings.token_max_age)
    )


def sessions(settings: AccessSettings, store: AccountStore, clock: Clock) -> Sessions:
    longest, idle = timedelta(seconds=settings.session), timedelta(seconds=settings.session_idle)
    return Sessions(store, clock, longest=longest, idle=idle)


def oidc(settings: OidcSettings, clock: Clock) -> Oidc | None:
    """None: the settings name no provider."""
    found = provider(settings)
    if found is None:
        return None
    from redrive.identity.oidc import Oidc  # noqa: PLC0415  only those who have one load what it needs
    from redrive.outgoing import Outgoing  # noqa: PLC0415  as above

    return Oidc(found, Outgoing(allowed=settings.allowed_hosts), clock)


def provider(settings: OidcSettings) -> Provider | None:
    if settings.issuer is None or settings.client_id is None:
        return None
    from redrive.identity.oidc import Provider  # noqa: PLC0415  as above

    return Provider(
        issuer=settings.issuer,
        client_id=settings.client_id,
        client_secret="" if settings.client_secret is None else settings.client_secret.reveal(),
        audience=settings.audience or "",
        roles_claim=settings.roles_claim,
        roles=tuple(role_of(each) for each in settings.role_map),
        name_claim=settings.name_claim,
    )
