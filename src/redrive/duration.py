"""Durations as people write them: `"250ms"`, `"5s"`, `"1h30m"`, `"2d"`, a number of seconds, a timedelta."""

from __future__ import annotations

import math
from datetime import timedelta

Duration = str | int | float | timedelta

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_SHOWN = (("d", 86400.0), ("h", 3600.0), ("m", 60.0), ("s", 1.0))


def seconds(value: Duration) -> float:
    """The duration in seconds. Raises ValueError with the accepted forms for anything else."""
    if isinstance(value, timedelta):
        result = value.total_seconds()
    elif isinstance(value, str):
        result = _parse(value)
    elif isinstance(value, bool):
        raise ValueError(f"{value!r} is not a duration: write it like '5s', '10m', '2h' or '1d'")  # noqa: TRY004  one error for callers
    else:
        result = _number(value)
    if not math.isfinite(result) or result < 0:
        raise ValueError(f"{value!r} is not a duration: it must be finite and not negative")
    return result


def _number(value: float) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{value!r} is not a duration: write it like '5s', '10m', '2h' or '1d'") from None


def _parse(text: str) -> float:
    rest, total = text.strip().lower(), 0.0
    if not rest:
        raise ValueError("an empty text is not a duration: write it like '5s', '10m', '2h' or '1d'")
    try:
        return float(rest)
    except ValueError:
        pass
    while rest:
        digits = len(rest) - len(rest.lstrip("0123456789."))
        number, rest = rest[:digits], rest[digits:]
        letters = len(rest) - len(rest.lstrip("abcdefghijklmnopqrstuvwxyz"))
        unit, rest = rest[:letters], rest[letters:].lstrip()
        if unit not in _UNITS or not number or number.count(".") > 1 or number == ".":
            raise ValueError(f"{text!r} is not a duration: write it like '250ms', '5s', '1h30m' or '2d'")
        total += float(number) * _UNITS[unit]
    return total


def short(value: float) -> str:
    """A duration for people, two units at most: `3d4h`, `12m`, `5s`, `250ms`."""
    if value < 0.9995:  # noqa: PLR2004  what would round to 1000 ms is a second
        return f"{value * 1000:.0f}ms" if value else "0s"
    parts: list[str] = []
    rest = float(round(value)) if value >= 10 else round(value, 1)  # noqa: PLR2004  tenths below 10 s only
    for unit, size in _SHOWN:
        count = rest if unit == "s" else rest // size
        if count:
            parts.append(f"{count:g}{unit}")
            rest -= count * size
    return "".join(parts[:2])
