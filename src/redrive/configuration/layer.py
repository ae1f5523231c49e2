"""One source of settings: nested values, where each stands, and how that source spells a key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redrive.configuration.file import KeyPath


def _dotted(key: KeyPath) -> str:
    return ".".join(key)


@dataclass(frozen=True, eq=False)
class Layer:
    values: Mapping[str, Any] = field(repr=False)  # it may hold a secret
    place: Callable[[KeyPath], str]
    spell: Callable[[KeyPath], str] = _dotted
    overrides_queues: bool = False
    """A value for all queues in this layer also wins over what a lower layer says about one queue."""

    def holds(self, key: KeyPath) -> bool:
        found: Any = self.values
        for part in key:
            if not isinstance(found, Mapping) or part not in found:
                return False
            found = found[part]
        return True


@dataclass(frozen=True)
class Problem:
    place: str
    text: str
    remedy: str
    layer: Layer | None = None

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place else self.text


def merged(layers: Sequence[Layer]) -> dict[str, Any]:
    """The layers over each other, later ones on top; tables are joined, everything else is replaced."""
    result: dict[str, Any] = {}
    for layer in layers:
        if layer.overrides_queues:
            result = _without_queues_own(result, layer.values)
        result = _joined(result, layer.values)
    return result


def _joined(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(lower)
    for key, value in upper.items():
        below = result.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        result[key] = _joined(below, value) if both else value  # type: ignore[arg-type]  # `both` says it
    return result


def _without_queues_own(result: dict[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    queues = result.get("queues")
    keys = upper.get("worker", {})
    if not isinstance(queues, Mapping) or not keys:
        return result
    kept = {name: _without(own, keys) for name, own in queues.items()}
    return {**result, "queues": kept}


def _without(own: Any, keys: Mapping[str, Any]) -> Any:
    return {key: value for key, value in own.items() if key not in keys} if isinstance(own, Mapping) else own
