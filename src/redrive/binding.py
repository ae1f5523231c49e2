"""Gives a handler what its annotations ask for.

`bytes`, `str`, `dict` or nothing: the payload as it is, as text, as JSON. A dataclass, msgspec struct, TypedDict
or builtin: decoded and validated by msgspec. A pydantic model, or a type made of such: by pydantic. `Message`: the
message itself. The inbox's transaction, where the handler has an inbox. Parameters with a default keep it. What
does not decode is a permanent failure, and its text says where and why without repeating the payload.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec

from redrive.errors import ConfigurationError, Permanent
from redrive.message import Message, read_json

Decode = Callable[[Message], Any]
Bind = Callable[[Message, Any], tuple[Any, ...]]

_PYDANTIC = "__pydantic_core_schema__"
_MAX_TOLD = 20
_REMEDY = "use a dataclass, a pydantic model, a msgspec struct, dict, str, bytes or Message"


class Undecodable(Permanent):
    """The payload is not what the handler's annotation asks for."""


def bind(function: Callable[..., Any], *, transaction: type | None = None) -> Bind:
    """A function that makes the positional arguments of `function` from a message and a transaction.

    ConfigurationError, when the handler is registered, for a signature that cannot be served.
    """
    name = getattr(behind(function), "__qualname__", repr(function))
    if inspect.isgeneratorfunction(behind(function)) or inspect.isasyncgenfunction(behind(function)):
        raise ConfigurationError(
            f"handler {name} is a generator: calling it would run nothing", remedy="take its 'yield' out"
        )
    sources = [_source(name, each, transaction) for each in _parameters(function)]
    if sum(source not in {_the_message, _the_transaction} for source in sources) > 1:
        raise ConfigurationError(
            f"handler {name} asks for the payload more than once",
            remedy="annotate one parameter with the payload's type, and another with Message if needed",
        )
    if len(sources) == 1:  # the usual shape, without a generator on the hot path
        only = sources[0]
        return lambda message, tx: (only(message, tx),)
    return lambda message, tx: tuple([source(message, tx) for source in sources])


def payload_type(function: Callable[..., Any], *, transaction: type | None = None) -> str:
    """The name of the payload's type, for people: S2's MessageType."""
    for annotation in map(_bare, _parameters(function)):
        if annotation is not Message and (transaction is None or annotation is not transaction):
            return getattr(annotation, "__name__", None) or str(annotation)
    return "Message"


def behind(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that carries the name and the annotations: that of a partial, or an object's `__call__`."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else getattr(type(function), "__call__", function)  # noqa: B004  the method itself is wanted, not the answer


def _parameters(function: Callable[..., Any]) -> list[Any]:
    try:
        hints = typing.get_type_hints(behind(function), include_extras=True)
        parameters = list(inspect.signature(function).parameters.values())
    except (NameError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"the annotations of {getattr(function, '__qualname__', function)} cannot be read: {error}",
            remedy="import the types it names at run time, not only under TYPE_CHECKING",
        ) from None
    return [hints.get(parameter.name, Any) for parameter in _positional(parameters)]


def _positional(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """Those that are given something: all without a default; the only one even so."""
    found = [each for each in parameters if each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD}]
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and each.default is each.empty:
            raise ConfigurationError(
                f"handler parameter {each.name!r} is keyword-only and has no default",
                remedy="give it a default, or take the '*' before it away",
            )
        if each.kind is each.VAR_POSITIONAL and not found:
            raise ConfigurationError(
                f"a handler with nothing but *{each.name} would be given no payload",
                remedy="name its parameter; a decorator keeps the names with functools.wraps",
            )
    return [each for each in found if each.default is each.empty] or found[:1]


def _bare(annotation: Any) -> Any:
    return annotation.__origin__ if typing.get_origin(annotation) is Annotated else annotation


Source = Callable[[Message, Any], Any]


def _the_message(message: Message, _: Any) -> Message:
    return message


def _the_transaction(_: Message, transaction: Any) -> Any:
    return transaction


def _source(name: str, annotation: Any, transaction: type | None) -> Source:
    if _bare(annotation) is Message:
        return _the_message
    if transaction is not None and _bare(annotation) is transaction:
        return _the_transaction
    decode = _decoder(name, annotation)
    return lambda message, _: decode(message)


def _decoder(name: str, annotation: Any) -> Decode:
    bare = _bare(annotation)
    if bare is bytes:
        return _as_bytes
    if bare == bytes | None:
        return lambda message: message.payload
    if bare is str:
        return _as_text
    if bare is Any or bare is object:
        return _as_json
    if bare is dict or bare in (dict[str, Any], dict[str, object]):
        return _as_dict
    try:
        return _by_type(annotation)
    except (TypeError, RuntimeError, NameError) as error:  # pydantic's are RuntimeErrors
        raise ConfigurationError(
            f"handler {name} asks for {annotation!r}, which cannot be decoded: {error}", remedy=_REMEDY
        ) from None


def _by_type(annotation: Any) -> Decode:
    strangers = list(_strangers(msgspec.inspect.type_info(annotation), set()))
    if any(hasattr(each, _PYDANTIC) for each in strangers):
        return _by_pydantic(annotation)
    if strangers:
        raise TypeError(f"nothing says how {strangers[0].__name__} is made from JSON")
    return _by_msgspec(annotation)


def _strangers(info: Any, seen: set[int]) -> Iterator[type]:
    """The types in msgspec's description of an annotation that are not msgspec's to make."""
    if id(info) in seen:  # a type that contains itself
        return
    seen.add(id(info))
    if isinstance(info, msgspec.inspect.CustomType) or hasattr(getattr(info, "cls", None), _PYDANTIC):
        yield info.cls
    for value in (getattr(info, field) for field in info.__struct_fields__):
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, msgspec.inspect.Type | msgspec.inspect.Field):
                yield from _strangers(part, seen)


def _as_bytes(message: Message) -> bytes:
    payload = message.payload
    if payload is None:
        raise Undecodable("the message has no body, and the handler asks for bytes")
    return payload


def _as_text(message: Message) -> str:
    """A text that was sent as such comes out as such, without JSON's quotes."""
    payload = _as_bytes(message)
    if message.envelope is not None and payload.startswith(b'"'):
        return str(_as_json(message))
    try:
        return payload.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Undecodable(f"the payload is not UTF-8: {error.reason} at byte {error.start}") from None


def _as_json(message: Message) -> Any:
    try:
        return read_json(message.payload)
    except ValueError as error:
        raise Undecodable(str(error)) from None


def _as_dict(message: Message) -> dict[str, Any]:
    value = _as_json(message)
    if not isinstance(value, dict):
        raise Undecodable(f"the payload is a {type(value).__name__}, and the handler asks for a dict")
    return value


def _by_pydantic(annotation: Any) -> Decode:
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415  only for apps that use it

    adapter = TypeAdapter(annotation)
    names = _declared(adapter)

    def decode(message: Message) -> Any:
        try:
            return adapter.validate_json(_as_bytes(message))
        except ValidationError as error:
            told = "; ".join(_told(each, names) for each in error.errors(include_url=False)[:_MAX_TOLD])
            raise Undecodable(f"{error.error_count()} validation errors for {error.title}: {told}") from None

    return decode


def _declared(adapter: Any) -> frozenset[str]:
    """The names of a type's fields and parts: any other name in the place of an error came with the payload."""
    try:
        schema = adapter.json_schema()
    except (TypeError, ValueError, RuntimeError):  # a type that JSON has no schema for
        return frozenset()
    return frozenset(_names(schema))


def _names(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, part in schema.items():
            if key in {"properties", "$defs"}:
                yield from part
            yield from _names(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _names(part)


def _told(error: Any, names: frozenset[str]) -> str:
    """One of pydantic's errors; where its sentence repeats what was given, its name instead."""
    steps = (str(step) if isinstance(step, int) or step in names else "*" for step in error["loc"])
    place = ".".join(steps) or "payload"
    given = error["input"]
    repeats = isinstance(given, str | int | float) and str(given) in error["msg"]
    repeats = repeats or error["type"] == "union_tag_invalid"
    return f"{place}: {error['type'] if repeats else error['msg']}"


def _by_msgspec(annotation: Any) -> Decode:
    decoder = msgspec.json.Decoder(annotation)

    def decode(message: Message) -> Any:
        try:
            return decoder.decode(_as_bytes(message))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Undecodable(_without_value(str(error))) from None
        except RecursionError:
            raise Undecodable("the payload nests too deep to be decoded") from None

    return decode


def _without_value(text: str) -> str:
    """Three of msgspec's sentences repeat a value or a name, between their first words and the place."""
    for beginning in ("Invalid enum value", "Invalid value", "Object contains unknown field"):
        if text.startswith(beginning):
            _, at, place = text.rpartition(" - at `")
            return f"{beginning} - at `{place}" if at and place.endswith("`") else beginning
    return text
