"""Who may do what: permissions, the roles that bundle them, and the queues they hold for.

Roles add up and nothing is allowed that no role allows. A grant may name queues (`orders`) or beginnings of names
(`pay*`): what lies in other queues is then not there for whoever has it, rather than forbidden, so that nobody can
try out ids.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

EVERYWHERE = ("*",)

Scope = tuple[str, ...] | None
"""Queues, by name or by the beginning of their names; None: all of them, whatever their names."""


class Permission(StrEnum):
    READ = "letters:read"
    """Letters, groups, numbers and queues, with everything personal masked."""
    REVEAL = "letters:reveal"
    EXPORT = "letters:export"
    DECIDE = "letters:decide"
    """Resolve, discard, restore, quarantine, release."""
    EDIT = "letters:edit"
    PURGE = "letters:purge"
    REDRIVE = "runs:make"
    """Make, pause, resume and cancel runs."""
    APPROVE = "runs:approve"
    ANNOTATE = "groups:change"
    AUDIT = "audit:read"
    ADMINISTER = "access:manage"
    """Tokens, users, keys, retention."""
    INGEST = "letters:record"
    """Hand letters in and confirm redrives: what a worker needs, and nothing else."""


class Role(StrEnum):
    VIEWER = "viewer"
    OPERATOR = "operator"
    PAYLOAD = "payload"
    EDITOR = "editor"
    APPROVER = "approver"
    ADMIN = "admin"
    AUDITOR = "auditor"
    INGEST = "ingest"


_P = Permission
PERMISSIONS: dict[Role, frozenset[Permission]] = {
    Role.VIEWER: frozenset({_P.READ}),
    Role.OPERATOR: frozenset({_P.READ, _P.DECIDE, _P.REDRIVE, _P.ANNOTATE}),
    Role.PAYLOAD: frozenset({_P.READ, _P.REVEAL, _P.EXPORT}),
    Role.EDITOR: frozenset({_P.READ, _P.REVEAL, _P.EDIT}),
    Role.APPROVER: frozenset({_P.READ, _P.APPROVE}),
    Role.ADMIN: frozenset(Permission) - {_P.INGEST},
    Role.AUDITOR: frozenset({_P.AUDIT}),
    Role.INGEST: frozenset({_P.INGEST}),
}


def fits(queue: str, pattern: str) -> bool:
    """A name, or its beginning if the pattern ends in `*`. No other character has a meaning."""
    return queue.startswith(pattern[:-1]) if pattern.endswith("*") else queue == pattern


def _is_part(pattern: str, of: str) -> bool:
    """Whether whatever fits the first one fits the other one too."""
    return fits(pattern[:-1], of) and of.endswith("*") if pattern.endswith("*") else fits(pattern, of)


def covers(scope: Scope, other: Scope) -> bool:
    """Whether everything in the other one is in this one too."""
    if scope is None or other is None:
        return scope is None
    return all(any(_is_part(each, pattern) for pattern in scope) for each in other)


def common(one: Scope, other: Scope) -> Scope:
    """What is in both."""
    if one is None or other is None:
        return other if one is None else one
    pairs = ((a, b) for a in one for b in other)
    both = (a if _is_part(a, b) else b for a, b in pairs if _is_part(a, b) or _is_part(b, a))
    return tuple(dict.fromkeys(both))


class Grant(msgspec.Struct, frozen=True):
    """A role, and the queues it holds for."""

    role: Role
    queues: tuple[str, ...] = EVERYWHERE


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever asks for something."""

    name: str
    grants: tuple[Grant, ...] = ()
    token: str = ""
    """The id of the API token that was shown; never its secret."""
    request_id: str = ""

    def may(self, permission: Permission, queue: str | None = None) -> bool:
        """For that queue; without one, for any."""
        patterns = self.queues_for(permission)
        return bool(patterns) if queue is None else any(fits(queue, each) for each in patterns)

    def permissions(self) -> dict[str, tuple[str, ...]]:
        """Each that is had, and the queues it holds for."""
        return {str(each): queues for each in Permission if (queues := self.queues_for(each))}

    def scope_of(self, permission: Permission) -> Scope:
        queues = self.queues_for(permission)
        return None if queues == EVERYWHERE else queues

    def queues_for(self, permission: Permission) -> tuple[str, ...]:
        """Patterns of the queues that the permission holds for."""
        found = (each.queues for each in self.grants if permission in PERMISSIONS[each.role])
        patterns = tuple(dict.fromkeys(pattern for queues in found for pattern in queues))
        return EVERYWHERE if EVERYWHERE[0] in patterns else patterns


def local(name: str) -> Identity:
    """Somebody at the command line of a machine that holds the store's own credentials: nothing is kept from them
    that they could not take anyway.
    """
    return Identity(name=name, grants=(Grant(Role.ADMIN),))
