"""Masking as the settings have it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from pydantic import ValidationError

from redrive.privacy.detectors import KINDS
from redrive.privacy.field_names import ANYWHERE, AS_A_WORD, AT_THE_END
from redrive.privacy_wiring import maskers_of
from redrive.settings import Settings

DOCS = (Path(__file__).parents[2] / "docs" / "masking.md").read_text()
BODY = b'{"customer": {"name": "J"}, "items": [{"holder": "H"}], "nickname": "n", "page": {"token": "t"}}'


def _shown(queue: str, **settings: object) -> bytes | None:
    return maskers_of(Settings.model_validate(settings)).for_queue(queue).payload(BODY)


def test_masking_is_on_without_any_setting() -> None:
    assert _shown("orders") == BODY.replace(b'"t"', b'"[masked]"')


def test_a_queues_own_rules_hold_beside_the_general_ones() -> None:
    general = {"fields": ["nickname"], "hidden": "customer.name, /items/*/holder"}
    own = {"masking": {"shown": ["data.page.token"]}}
    hidden = BODY.replace(b'"J"', b'"[masked]"').replace(b'"H"', b'"[masked]"').replace(b'"n"', b'"[masked]"')
    assert _shown("orders", masking=general, queues={"orders": own}) == hidden
    assert _shown("others", masking=general, queues={"orders": own}) == hidden.replace(b'"t"', b'"[masked]"')


@pytest.mark.parametrize(
    ("general", "own", "masks"),
    [
        *((True, True, True), (True, False, False), (False, True, True), (False, False, False)),
        *((True, "none", True), (False, "none", False)),
    ],
)
def test_masking_can_be_switched_for_one_queue(general: object, own: object, masks: object) -> None:
    queues = {"orders": {"masking": {"enabled": own}}}
    assert (_shown("orders", masking={"enabled": general}, queues=queues) != BODY) is masks
    assert (_shown("others", masking={"enabled": general}, queues=queues) != BODY) is general


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("hidden", ["customer..name"], "a key is missing in a path"),
        ("hidden", ["a/~2"], None),
        ("hidden", ["/a/~2"], "in a JSON Pointer, ~ is written ~0"),
        ("hidden", [""], "should hold paths into the payload: write it like 'customer.name'"),
        ("shown", [7], "should hold paths into the payload"),
        ("shown", ['"a'], "a quote in a path is never closed"),
        ("fields", ["--"], "should hold names of fields, such as 'nickname'"),
        ("fields", [7], "should hold names of fields"),
    ],
)
def test_what_cannot_be_used_is_told_with_a_remedy(key: str, value: object, told: str | None) -> None:
    if told is None:
        Settings.model_validate({"masking": {key: value}})
        return
    for wrong in ({"masking": {key: value}}, {"queues": {"orders": {"masking": {key: value}}}}):
        with pytest.raises(ValidationError, match=told.replace("(", "\\(")):
            Settings.model_validate(wrong)


def test_the_docs_show_settings_and_masks_as_they_are() -> None:
    settings = Settings.model_validate(tomllib.loads(DOCS.split("```toml\n")[1].split("```")[0]))
    assert settings.masking.hidden == ("customer.name", "items.*.holder")
    note = "call (11) 98765-4321 or write to ana@example.com"
    body = {"customer": {"name": "Ana", "cpf": "1"}, "note": note, "n": 52998224725}
    shown = maskers_of(Settings()).for_queue("orders").payload(json.dumps(body).encode())
    assert shown is not None
    assert shown.decode() in DOCS


def test_the_docs_name_every_kind_and_every_field() -> None:
    bare = "".join(filter(str.isalnum, DOCS))
    assert [kind for kind in KINDS if f"`[{kind}]`" not in DOCS] == []
    assert [word for word in (*ANYWHERE, *AS_A_WORD, *AT_THE_END) if word not in bare] == []
