"""The settings as a tree of keys: what may stand where, and how a value is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redrive.alert_settings import AlertRuleSettings, ChannelSettings
from redrive.duration import seconds, short
from redrive.section import Section
from redrive.setting_values import BYTES, SECONDS
from redrive.settings import QueueSettings, RuleSettings, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic.fields import FieldInfo

    from redrive.configuration.file import KeyPath

NAMED: dict[KeyPath, type[Section]] = {
    ("queues",): QueueSettings,
    ("rules",): RuleSettings,
    ("alerts", "channels"): ChannelSettings,
    ("alerts", "rules"): AlertRuleSettings,
}
"""Tables of sections whose names people give."""

_SIZES = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


def section_at(key: KeyPath) -> type[Section] | None:
    """The section of that name, the one of a queue or a rule included; None if there is none."""
    table = table_of(key)
    if table is None:
        return _below(Settings, key)
    return None if key == table else _below(NAMED[table], key[len(table) + 1 :])


def table_of(key: KeyPath) -> KeyPath | None:
    """The table of named sections that the key is or lies in; None if there is none."""
    return next((table for table in NAMED if key[: len(table)] == table), None)


def _below(section: type[Section], key: KeyPath) -> type[Section] | None:
    for part in key:
        field = section.model_fields.get(part)
        kind = None if field is None else field.annotation
        if not (isinstance(kind, type) and issubclass(kind, Section)):
            return None
        section = kind
    return section


def keys_in(key: KeyPath) -> list[str]:
    section = section_at(key)
    return [] if section is None else list(section.model_fields)


def field_at(key: KeyPath) -> FieldInfo | None:
    """The field of a single value; None for a section or a key that does not exist."""
    section = section_at(key[:-1])
    if section is None or key in NAMED or section_at(key) is not None:
        return None
    return section.model_fields.get(key[-1])


def homes_of(name: str) -> list[KeyPath]:
    """The sections that have a key of that name."""
    return [section for section in _sections() if name in keys_in(section)]


def _sections(above: KeyPath = ()) -> Iterator[KeyPath]:
    for name in keys_in(above):
        if section_at(key := (*above, name)) is not None:
            yield key
            yield from _sections(key)


def leaves(values: Section, above: KeyPath = ()) -> Iterator[tuple[KeyPath, FieldInfo, Any]]:
    """Every single value with its key, queues and rules last."""
    for name, field in type(values).model_fields.items():
        value = getattr(values, name)
        if isinstance(value, Section):
            yield from leaves(value, (*above, name))
        elif isinstance(value, dict):
            yield from _named_leaves(value, (*above, name))
        else:
            yield (*above, name), field, value


def _named_leaves(named: Mapping[str, Section], above: KeyPath) -> Iterator[tuple[KeyPath, FieldInfo, Any]]:
    for name, section in named.items():
        yield from leaves(section, (*above, name))


def text_of(field: FieldInfo, value: Any) -> str:
    """The value as one would write it; a secret with stars."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(text_of(field, item) for item in value)
    if SECONDS in field.metadata:
        return _duration_text(value)
    if BYTES in field.metadata:
        return _size_text(value)
    return str(value)


def _duration_text(value: float) -> str:
    text = short(value)
    return text if seconds(text) == value else f"{value:g}s"


def _size_text(value: int) -> str:
    for unit, size in _SIZES:
        if value and value % size == 0:
            return f"{value // size}{unit}"
    return str(value)
