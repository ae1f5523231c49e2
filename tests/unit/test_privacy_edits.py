"""What a run's edit writes into messages is shown with the masks of those messages."""

from __future__ import annotations

import json

import msgspec
import pytest

from redrive.editing import Operation, Remove, Set, SetHeader, SetPayload, json_value
from redrive.privacy.edit_masks import masked_edit
from redrive.privacy.maskers import UNMASKED
from redrive.privacy.masking import Masker

MASKER = Masker()


def shown(operation: Operation) -> str:
    [masked] = masked_edit([operation], MASKER)
    return msgspec.json.encode(masked).decode()


@pytest.mark.parametrize(
    ("operation", "secret"),
    [
        (Set(path="customer.email", value=json_value("grace@example.org")), "grace@example.org"),
        (Set(path="/customer/cpf", value=msgspec.Raw(b"52998224725")), "52998224725"),
        (Set(path="password", value=json_value("hunter2")), "hunter2"),
        (Set(path="a", value=json_value({"password": "hunter2", "n": 1})), "hunter2"),
        (SetHeader(name="authorization", value=json_value("Basic abc")), "abc"),
        (SetHeader(name="x-contact", value=json_value("grace@example.org")), "grace@example.org"),
        (SetPayload(payload=b'{"email": "grace@example.org"}'), "grace@example.org"),
    ],
)
def test_what_is_personal_or_lets_somebody_in_is_not_shown(operation: Operation, secret: str) -> None:
    assert secret in msgspec.json.encode(operation).decode() or isinstance(operation, SetPayload)
    assert secret not in shown(operation)


@pytest.mark.parametrize(
    "operation",
    [
        Set(path="status", value=json_value("open")),
        Set(path="items.0.quantity", value=msgspec.Raw(b"12345678901234567890123")),
        Set(path="/a~1b/ü", value=json_value([1, None, {"x": "y"}])),
        SetHeader(name="x-tenant", value=json_value("eu")),
        Remove(path="customer.email"),
    ],
)
def test_all_else_is_shown_as_it_is(operation: Operation) -> None:
    assert masked_edit([operation], MASKER) == (operation,)


def test_without_masking_what_lets_somebody_in_is_hidden_all_the_same() -> None:
    operation = SetHeader(name="authorization", value=json_value("Basic abc"))
    [masked] = masked_edit([operation], UNMASKED.general)
    assert json.loads(msgspec.json.encode(masked))["value"] == "(hidden)"
