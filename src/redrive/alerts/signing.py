"""How a webhook is signed: as Standard Webhooks (standardwebhooks.com) has it, for which receivers find libraries
in many languages. Secrets are written as they are there, too.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

PREFIX = "whsec_"
SHORTEST, LONGEST = 24, 64
"""Bytes of a secret."""


def key_of(secret: str) -> bytes:
    """The bytes to sign with. ValueError with the accepted form for anything else; the text is not quoted."""
    try:
        found = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if not secret.startswith(PREFIX) or not SHORTEST <= len(found) <= LONGEST:
        raise ValueError(
            f"should be {PREFIX} and base64 of {SHORTEST} to {LONGEST} random bytes, "
            f'such as `echo "{PREFIX}$(openssl rand -base64 32)"` makes'
        )
    return found


def signature(key: bytes, *, message_id: str, timestamp: int, body: bytes) -> str:
    """Of id, timestamp and body, with full stops between them."""
    signed = b".".join((message_id.encode(), str(timestamp).encode(), body))
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
