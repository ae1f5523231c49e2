"""Where the queues are: `sqs://eu-west-1`, or `sqs://eu-west-1/123456789012` for queues of another account.

Credentials, profiles and endpoints are found as every tool of AWS finds them; none of them stands in a URL.
"""

from __future__ import annotations

import re

import msgspec

from redrive.errors import ConfigurationError

_REGION = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_ACCOUNT = re.compile(r"[0-9]{12}")


class Address(msgspec.Struct, frozen=True):
    region: str
    account: str = ""
    """Whose queues they are; empty: those of whoever asks."""


def parse(url: str) -> Address:
    """ConfigurationError, which quotes nothing of it, for anything that is no such URL."""
    scheme, _, rest = url.partition("://")
    region, _, account = rest.removesuffix("/").partition("/")
    known = _REGION.fullmatch(region) and (not account or _ACCOUNT.fullmatch(account))
    if scheme != "sqs" or not known:
        raise ConfigurationError(
            "the sqs:// address cannot be read",
            remedy="write sqs://REGION, or sqs://REGION/ACCOUNT with the twelve digits of the queues' account; "
            "credentials come from the environment, a profile or a role, as for every tool of AWS",
        )
    return Address(region, account)
