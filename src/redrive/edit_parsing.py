"""Edit operations as they are written on a command line.

| option | example |
|---|---|
| `set` | `customer.id=17` |
| `remove` | `customer.note` |
| `rename` | `customer.mail=email` |
| `set-header` | `tenant=acme` |
| `remove-header` | `tenant` |
| `payload-file` | the bytes of a new payload |
| `patch` | the bytes of a JSON Patch document, which may hold the operations above as well |

A value is JSON if it reads as JSON, else text: `17` is a number, `"17"` and `seventeen` are texts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from redrive.editing import (
    Operation,
    Remove,
    RemoveHeader,
    Rename,
    Set,
    SetHeader,
    SetPayload,
    is_json,
    json_value,
)
from redrive.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_OPERATIONS = 1000

_patch = msgspec.json.Decoder(tuple[Operation, ...])
# A place in front of the first `=` that stands outside of quotes. In a pointer quotes are plain characters.
_assignment = re.compile(r'(/[^=]*|(?:"(?:[^"\\]|\\.)*"|[^="])+)=(.*)', re.DOTALL)


def parse_operations(given: Iterable[tuple[str, str | bytes]]) -> tuple[Operation, ...]:
    """Pairs of an option's name (without dashes) and what was given to it, in the order in which they are to be
    applied. UsageError says what cannot be read, without its value.
    """
    found: list[Operation] = []
    for option, text in given:
        found += _of_file(option, text) if isinstance(text, bytes) else [_of_option(option, text)]
    if len(found) > MAX_OPERATIONS:
        raise UsageError(f"{len(found):,} operations", remedy=f"use at most {MAX_OPERATIONS:,} in one edit")
    return tuple(found)


def _of_option(option: str, text: str) -> Operation:
    read, example = _OPTIONS[option]
    try:
        return read(text)
    except UnicodeEncodeError:
        reason = "the text is not valid UTF-8"
    except ValueError as error:
        reason = str(error)
    raise UsageError(f"--{option}: {reason}", remedy=f"write it like --{option} {example}")


def _of_file(option: str, content: bytes) -> tuple[Operation, ...]:
    if option == "patch":
        return _of_patch(content)
    try:
        return (SetPayload(payload=content),)
    except ValueError as error:
        raise UsageError(
            f"--{option}: {error}",
            remedy="say what differs with --set or --patch, or edit them one by one: redrive edit ID --from FILE",
        ) from None


def _of_patch(document: bytes) -> tuple[Operation, ...]:
    try:
        return _patch.decode(document)
    except msgspec.ValidationError as error:
        reason = f"the patch is not a list of operations: {error}"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        reason = "the patch is not JSON"
    raise UsageError(
        reason, remedy='write it like [{"op": "replace", "path": "/customer/id", "value": 17}] (RFC 6902)'
    )


def _assigned(text: str, what: str) -> tuple[str, str]:
    found = _assignment.fullmatch(text)
    if found is None:
        raise ValueError(f"{what} is missing, or the = behind it")
    return found[1], found[2]


def _set(text: str) -> Set:
    path, value = _assigned(text, "a place")
    return Set(path=path, value=_value(value))


def _remove(text: str) -> Remove:
    if not text:
        raise ValueError("a place is missing")
    return Remove(path=text)


def _rename(text: str) -> Rename:
    path, name = _assigned(text, "a place")
    return Rename(path=path, to=name)


def _set_header(text: str) -> SetHeader:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError("the = behind the header's name is missing")
    return SetHeader(name=name, value=_value(value))


def _value(text: str) -> msgspec.Raw:
    raw = text.encode()
    return msgspec.Raw(raw) if is_json(raw) else json_value(text)


_OPTIONS: dict[str, tuple[Callable[[str], Operation], str]] = {
    "set": (_set, "customer.id=17"),
    "remove": (_remove, "customer.note"),
    "rename": (_rename, "customer.mail=email"),
    "set-header": (_set_header, "tenant=acme"),
    "remove-header": (lambda text: RemoveHeader(name=text), "tenant"),
}
