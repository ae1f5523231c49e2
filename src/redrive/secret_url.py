"""A URL that may hold a password: it shows itself with stars, and gives its text only when asked by name."""

from __future__ import annotations

import re

_USER = re.compile(r"^([\w+.-]+://[^:@/?]*):.*@", re.DOTALL)
_PARAMETER = re.compile(r"([?&;][^=&;]*(?:pass|pwd|secret|token|key|sig|credential)[^=&;]*=)[^&;]*", re.IGNORECASE)


class SecretUrl:
    """`str`, `repr` and formatting hide the password; `reveal` is for the driver that connects."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __str__(self) -> str:
        # Greedy up to the last "@": a password with an unescaped "@" or "/" hides too much, never too little.
        return _PARAMETER.sub(r"\1***", _USER.sub(r"\1:***@", self._text))

    def __repr__(self) -> str:
        return f"SecretUrl('{self}')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretUrl) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


class HiddenUrl(SecretUrl):
    """A URL of which any part may be a secret, as tokens are in those of chats: it shows its scheme alone."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self._text.partition(':')[0]}://***"

    def __repr__(self) -> str:
        return f"HiddenUrl('{self}')"
