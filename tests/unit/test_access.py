"""Roles, permissions and scopes: what is not granted is not allowed (TH9, TH24)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.access import PERMISSIONS, Grant, Identity, Permission, Role, common, covers, fits, local

P = Permission
NAMES = st.text("ab*.", min_size=1, max_size=4).filter(lambda text: "*" not in text)
PATTERNS = st.one_of(NAMES, NAMES.map(lambda name: name + "*"), st.just("*"))
SCOPES = st.one_of(st.none(), st.lists(PATTERNS, max_size=3).map(tuple))


def test_every_role_says_what_it_may_do() -> None:
    assert set(PERMISSIONS) == set(Role)


def test_every_permission_is_had_by_some_role() -> None:
    assert frozenset().union(*PERMISSIONS.values()) == set(Permission)


def test_a_worker_records_and_does_nothing_else() -> None:
    assert PERMISSIONS[Role.INGEST] == {P.INGEST}
    assert [role for role in Role if P.INGEST in PERMISSIONS[role]] == [Role.INGEST]


def test_an_auditor_sees_no_letters() -> None:
    assert PERMISSIONS[Role.AUDITOR] == {P.AUDIT}


@pytest.mark.parametrize(
    ("permission", "roles"),
    [
        (P.REVEAL, {Role.PAYLOAD, Role.EDITOR, Role.ADMIN}),
        (P.EDIT, {Role.EDITOR, Role.ADMIN}),
        (P.APPROVE, {Role.APPROVER, Role.ADMIN}),
        (P.PURGE, {Role.ADMIN}),
        (P.ADMINISTER, {Role.ADMIN}),
        (P.REDRIVE, {Role.OPERATOR, Role.ADMIN}),
    ],
)
def test_what_is_dangerous_has_few_roles(permission: Permission, roles: set[Role]) -> None:
    assert {role for role in Role if permission in PERMISSIONS[role]} == roles


def test_nobody_may_do_anything_without_a_grant() -> None:
    nobody = Identity(name="nobody")
    assert not any(nobody.may(each) for each in Permission)
    assert all(nobody.scope_of(each) == () for each in Permission)


def test_grants_add_up_each_for_its_queues() -> None:
    eve = Identity(name="eve", grants=(Grant(Role.VIEWER), Grant(Role.OPERATOR, ("orders", "pay*"))))
    assert eve.scope_of(P.READ) is None
    assert eve.scope_of(P.REDRIVE) == ("orders", "pay*")
    assert eve.may(P.REDRIVE, "payments")
    assert not eve.may(P.REDRIVE, "order")
    assert not eve.may(P.EDIT)


def test_whoever_has_the_machine_has_everything_but_a_workers_part() -> None:
    assert all(local("ann").scope_of(each) is None for each in Permission if each is not P.INGEST)


@pytest.mark.parametrize(
    ("queue", "pattern", "answer"),
    [
        ("orders", "orders", True),
        ("orders", "order", False),
        ("orders", "orders*", True),
        ("orders", "*", True),
        ("orders", "o*s", False),
        ("orders", "ORDERS", False),
        ("orders", "order?", False),
        ("orders", "order.", False),
        ("orders", "", False),
        ("", "*", True),
        ("o*s", "o*s", True),
    ],
)
def test_a_pattern_is_a_name_or_its_beginning(queue: str, pattern: str, answer: bool) -> None:  # noqa: FBT001  an example
    assert fits(queue, pattern) is answer


def _inside(queue: str, scope: tuple[str, ...] | None) -> bool:
    return scope is None or any(fits(queue, each) for each in scope)


@given(SCOPES, SCOPES, st.lists(NAMES, min_size=1, max_size=20))
def test_what_is_common_is_in_both_and_whatever_is_in_both_is_common(
    one: tuple[str, ...] | None, other: tuple[str, ...] | None, queues: list[str]
) -> None:
    both = common(one, other)
    for queue in queues:
        assert _inside(queue, both) == (_inside(queue, one) and _inside(queue, other))


@given(SCOPES, SCOPES, st.lists(NAMES, min_size=1, max_size=20))
def test_a_scope_that_covers_another_misses_nothing_of_it(
    one: tuple[str, ...] | None, other: tuple[str, ...] | None, queues: list[str]
) -> None:
    if covers(one, other):
        assert all(_inside(queue, one) for queue in queues if _inside(queue, other))
