"""Which names queues can have."""

from __future__ import annotations

from redrive.errors import PublishRefused

_MAX_NAME = 255


def check_name(name: str) -> None:
    """PublishRefused if no queue can have it."""
    try:
        fits = 0 < len(name.encode()) <= _MAX_NAME and not name.startswith("amq.")
    except UnicodeEncodeError:
        fits = False
    if not fits:
        raise PublishRefused(
            f"{name[:_MAX_NAME]!r} cannot be the name of a queue",
            permanent=True,
            remedy=f"use 1 to {_MAX_NAME} bytes of text that does not begin with amq.",
        )
