"""Gives a handler what its annotations ask for.

`bytes`, `str`, `dict` or nothing: the payload as it is, as text, as JSON. A dataclass, msgspec struct, TypedDict
or builtin: decoded and validated by msgspec. A pydantic model: by pydantic. `Message`: the message itself. The
inbox's transaction, where the handler has an inbox. What does not decode is a permanent failure, and its text
says where and why without repeating the payload.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from redrive.errors import ConfigurationError, Permanent
from redrive.message import Message, read_json

Decode = Callable[[Message], Any]
Bind = Callable[[Message, Any], tuple[Any, ...]]


class Undecodable(Permanent):
    """The payload is not what the handler's annotation asks for."""


def bind(function: Callable[..., Any], *, transaction: type | None = None) -> Bind:
    """A function that makes the positional arguments of `function` from a message and a transaction.

    ConfigurationError, when the handler is registered, for a signature that cannot be served.
    """
    name = getattr(function, "__qualname__", repr(function))
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


def payload_type(function: Callable[..., Any]) -> str:
    """The name of the payload's type, for people: S2's MessageType."""
    for annotation in _parameters(function):
        if annotation is not Message:
            return getattr(annotation, "__name__", None) or str(annotation)
    return "Message"


def _parameters(function: Callable[..., Any]) -> list[Any]:
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError) as error:
        raise ConfigurationError(
            f"the annotations of {getattr(function, '__qualname__', function)} cannot be read: {error}",
            remedy="import the types it names at run time, not only under TYPE_CHECKING",
        ) from None
    found = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in {parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL}:
            if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
                raise ConfigurationError(
                    f"handler parameter {parameter.name!r} is keyword-only and has no default"
                )
            continue
        found.append(hints.get(parameter.name, Any))
    return found


Source = Callable[[Message, Any], Any]


def _the_message(message: Message, _: Any) -> Message:
    return message


def _the_transaction(_: Message, transaction: Any) -> Any:
    return transaction


def _source(name: str, annotation: Any, transaction: type | None) -> Source:
    if annotation is Message:
        return _the_message
    if transaction is not None and annotation is transaction:
        return _the_transaction
    decode = _decoder(name, annotation)
    return lambda message, _: decode(message)


def _decoder(name: str, annotation: Any) -> Decode:
    if annotation is bytes:
        return _as_bytes
    if annotation == bytes | None:
        return lambda message: message.payload
    if annotation is str:
        return _as_text
    if annotation in {Any, object}:
        return _as_json
    if annotation is dict or typing.get_origin(annotation) is dict:
        return _as_dict
    if hasattr(annotation, "model_validate_json"):
        return _by_pydantic(annotation)
    return _by_msgspec(name, annotation)


def _as_bytes(message: Message) -> bytes:
    payload = message.payload
    if payload is None:
        raise Undecodable("the message has no body, and the handler asks for bytes")
    return payload


def _as_text(message: Message) -> str:
    try:
        return _as_bytes(message).decode("utf-8")
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


def _by_pydantic(model: Any) -> Decode:
    from pydantic import ValidationError  # noqa: PLC0415  only for apps that use it

    def decode(message: Message) -> Any:
        try:
            return model.model_validate_json(_as_bytes(message))
        except ValidationError as error:
            # pydantic's own text repeats the input; these parts do not.
            told = "; ".join(
                f"{'.'.join(str(step) for step in each['loc']) or 'payload'}: {each['msg']}"
                for each in error.errors(include_input=False, include_url=False, include_context=False)
            )
            raise Undecodable(f"{error.error_count()} validation errors for {error.title}: {told}") from None

    return decode


def _by_msgspec(name: str, annotation: Any) -> Decode:
    try:
        decoder = msgspec.json.Decoder(annotation)
    except TypeError as error:
        raise ConfigurationError(
            f"handler {name} asks for {annotation!r}, which cannot be decoded: {error}",
            remedy="use a dataclass, a pydantic model, a msgspec struct, dict, str, bytes or Message",
        ) from None

    def decode(message: Message) -> Any:
        try:
            return decoder.decode(_as_bytes(message))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Undecodable(str(error)) from None
        except RecursionError:
            raise Undecodable("the payload nests too deep to be decoded") from None

    return decode
