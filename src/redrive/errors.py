"""The one error tree. Every text says what happened; `remedy` says what to do about it.

RedriveError
├── UsageError            wrong arguments                          exit 2
│   └── FilterError       a filter that cannot be read, and where
├── ConfigurationError    settings that cannot be used             exit 2
│   ├── MissingExtra      a driver whose package is not installed
│   └── KeyMissing        something is sealed with a key that is not known here
├── NotFound              nothing under that id or name            exit 3
│   └── Shredded          it is there, and its key was destroyed
├── SealBroken            what was sealed is not what it was       exit 6
├── Refused               not allowed now, nothing was changed     exit 5
│   ├── TransitionRefused the letter's status does not allow it
│   └── EditRefused       an edit does not fit this message; which operation is data
├── Denied                whoever asks may not do that            exit 5
├── Unreachable           store or broker cannot be reached        exit 6
│   ├── NoStoreYet        nobody has made its tables
│   └── CorruptFile       a file of ours is damaged
├── PublishRefused        the broker said no; `permanent` is data
├── TrailTooLong          the message fits, the story of its failures does not; `room` is data
├── NotDelivered          a channel did not take an alert; `permanent` is data
├── Unfinished            it took longer than it may; nothing was changed
├── LeaseLost             somebody else holds this delivery now
└── NotDurable            no sink could make a failure durable

HandlerSignal             what a handler raises to decide itself
├── Transient             try again (optionally not before `retry_after`)
├── Permanent             retrying cannot help
└── Drop                  done with it, keep nothing
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from redrive.duration import seconds

if TYPE_CHECKING:
    from redrive.duration import Duration


class RedriveError(Exception):
    exit_code: ClassVar[int] = 1

    def __init__(self, text: str, *, remedy: str = "") -> None:
        super().__init__(text)
        self.remedy = remedy


class UsageError(RedriveError):
    exit_code = 2


class FilterError(UsageError):
    """`column` counts the filter's characters from 1; behind its last one if something is missing there."""

    def __init__(self, text: str, *, column: int, remedy: str) -> None:
        super().__init__(f"filter, column {column}: {text}", remedy=remedy)
        self.column = column


class ConfigurationError(RedriveError):
    exit_code = 2


class MissingExtra(ConfigurationError):
    def __init__(self, scheme: str, extra: str) -> None:
        super().__init__(
            f"{scheme}:// needs a package that is not installed",
            remedy=f"pip install 'redrive[{extra}]'",
        )


class KeyMissing(ConfigurationError):
    """It is whole as far as anybody can tell without that key. `kek_id` names the key; empty: none is set."""

    def __init__(self, kek_id: str, *, known: str = "", what: str = "it") -> None:
        told = f"{what} is sealed with the key {kek_id}" if kek_id else f"{what} is sealed"
        here = f"; known here: {known}" if known else ", and no key is set here"
        super().__init__(
            told + here,
            remedy="set encryption.key or key_path, or name the file of that key in encryption.old_keys",
        )
        self.kek_id = kek_id
        self._known = known

    def about(self, what: str) -> KeyMissing:
        """The same, said of what is sealed, such as a file."""
        return KeyMissing(self.kek_id, known=self._known, what=what)


class NotFound(RedriveError):
    exit_code = 3


class Shredded(NotFound):
    """What it held is gone for ever, as somebody wanted it to be."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} was shredded: its data key was destroyed",
            remedy="nobody can bring it back; a backup that has the data key is the only other copy",
        )


class SealBroken(RedriveError):
    """Changed, cut off, or in another place than it was sealed for. Nothing of it is given out."""

    exit_code = 6


class Refused(RedriveError):
    exit_code = 5


class TransitionRefused(Refused):
    """The letter (or run) exists, its status does not allow the change; nothing was changed."""

    def __init__(self, letter_id: str, wanted: str, status: str, *, noun: str = "letter") -> None:
        super().__init__(f"{noun} {letter_id} is {status}: cannot {wanted} it")
        self.letter_id = letter_id
        self.status = status


class EditRefused(Refused):
    """The message stays as it is. `operation` counts from 1; 0: it is not one operation's doing."""

    def __init__(self, text: str, *, operation: int = 0, place: str = "", remedy: str) -> None:
        super().__init__(text, remedy=remedy)
        self.operation = operation
        self.place = place


class Denied(RedriveError):
    """Nothing was changed, and nothing was shown. `permission` is what is missing."""

    exit_code = 5

    def __init__(self, who: str, permission: str, *, where: str = "") -> None:
        place = f" for {where}" if where else ""
        super().__init__(
            f"{who} lacks the permission {permission}{place}",
            remedy="ask an administrator for a role that has it; docs/access.md lists the roles",
        )
        self.permission = permission


class Unreachable(RedriveError):
    exit_code = 6


class Undecided(Unreachable):
    """The connection was lost while COMMIT was under way: nobody knows whether it happened."""


class NoStoreYet(Unreachable):
    """The database answers, or its folder is there, and it holds no store: `redrive db upgrade` makes it."""


class CorruptFile(Unreachable):
    pass


class PublishRefused(RedriveError):
    """The broker refused a message. Permanent: the same message would be refused again."""

    def __init__(self, text: str, *, permanent: bool, remedy: str = "") -> None:
        super().__init__(text, remedy=remedy)
        self.permanent = permanent


class NotDelivered(RedriveError):
    """Nobody was told, as far as is known. Permanent: trying again would not help. `again_in`: in how many seconds
    the receiver wants to be asked again, if it has said so.
    """

    def __init__(self, text: str, *, permanent: bool, remedy: str = "", again_in: float | None = None) -> None:
        super().__init__(text, remedy=remedy)
        self.permanent = permanent
        self.again_in = again_in


class TrailTooLong(RedriveError):
    """Nothing was sent. With a trail of at most `room` bytes (0: none) the message fits."""

    def __init__(self, room: int) -> None:
        super().__init__(f"the broker takes no more than {room} bytes of failures with this message")
        self.room = room


class Unfinished(RedriveError):
    """A look at something took longer than it may."""


class LeaseLost(RedriveError):
    """The delivery was handed to somebody else; this copy must not be acknowledged."""


class NotDurable(RedriveError):
    """Neither store nor dead-letter queue nor spool took the letter: it must not be acknowledged."""


class HandlerSignal(Exception):
    pass


class Transient(HandlerSignal):
    retry_after: float | None = None
    """Seconds. On the class too: a subclass need not call this constructor."""

    def __init__(self, text: str = "", *, retry_after: Duration | None = None) -> None:
        super().__init__(text)
        self.retry_after = None if retry_after is None else seconds(_not_past(retry_after))


def _not_past(retry_after: Duration) -> Duration:
    # A moment that has passed meanwhile means "now"; refusing it would turn a transient failure into ours.
    if isinstance(retry_after, timedelta):
        return max(retry_after, timedelta())
    return retry_after if isinstance(retry_after, str) else max(retry_after, 0)


class Permanent(HandlerSignal):
    pass


class Drop(HandlerSignal):
    pass
