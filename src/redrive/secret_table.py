"""Settings of which every value may be a secret: the table shows its names, and stars for what they are set to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    Value = str | int | float | bool


class SecretTable:
    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Value] | None = None) -> None:
        self._values = dict(values or {})

    def reveal(self) -> dict[str, Value]:
        return dict(self._values)

    def __bool__(self) -> bool:
        return bool(self._values)

    def __str__(self) -> str:
        return ", ".join(f"{name}=***" for name in self._values) or "none"

    def __repr__(self) -> str:
        return f"SecretTable({self})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretTable) and other._values == self._values

    def __hash__(self) -> int:
        return hash(tuple(self._values))
