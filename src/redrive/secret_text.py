"""A text that is a secret: it shows itself as stars, and gives itself only when asked by name."""

from __future__ import annotations


class SecretText:
    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __str__(self) -> str:
        return "***"

    def __repr__(self) -> str:
        return "SecretText('***')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretText) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)
