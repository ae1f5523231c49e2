"""The public vocabulary of Redrive. Names load on first use, so that `redrive --help` stays quick."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redrive.app import App as App
    from redrive.classification import caused_by as caused_by
    from redrive.dead_letter import DeadLetter as DeadLetter
    from redrive.dead_letter import FailureGroup as FailureGroup
    from redrive.dead_letter import Status as Status
    from redrive.errors import Drop as Drop
    from redrive.errors import Permanent as Permanent
    from redrive.errors import RedriveError as RedriveError
    from redrive.errors import Transient as Transient
    from redrive.execute import execute_with_retry as execute_with_retry
    from redrive.failure import Failure as Failure
    from redrive.failure import FailureKind as FailureKind
    from redrive.inbox import SqliteInbox as SqliteInbox
    from redrive.message import Message as Message
    from redrive.policy import FailurePolicy as FailurePolicy
    from redrive.policy import Retry as Retry
    from redrive.schedule import explicit as explicit
    from redrive.schedule import exponential as exponential
    from redrive.schedule import fixed as fixed
    from redrive.schedule import linear as linear
    from redrive.transports import Delivery as Delivery

__version__ = "0.1.0"

_HOMES = {
    "App": "redrive.app",
    "DeadLetter": "redrive.dead_letter",
    "Delivery": "redrive.transports",
    "Drop": "redrive.errors",
    "Failure": "redrive.failure",
    "FailureGroup": "redrive.dead_letter",
    "FailureKind": "redrive.failure",
    "FailurePolicy": "redrive.policy",
    "Message": "redrive.message",
    "Permanent": "redrive.errors",
    "RedriveError": "redrive.errors",
    "Retry": "redrive.policy",
    "SqliteInbox": "redrive.inbox",
    "Status": "redrive.dead_letter",
    "Transient": "redrive.errors",
    "caused_by": "redrive.classification",
    "execute_with_retry": "redrive.execute",
    "explicit": "redrive.schedule",
    "exponential": "redrive.schedule",
    "fixed": "redrive.schedule",
    "linear": "redrive.schedule",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605  one list of names, not two


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'redrive' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
