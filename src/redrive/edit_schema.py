"""Whether payloads fit a JSON Schema (drafts 4 to 2020-12), told without a value of theirs.

The schema stands alone: what it refers to must be in it, and nothing is ever fetched. Its patterns are matched by
RE2, in linear time. `format` is a remark, not a rule.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
import re2

from redrive.errors import ConfigurationError, UsageError
from redrive.json_path import dotted
from redrive.message import cut, read_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redrive.message import Message

MAX_SCHEMA = 256 * 1024
"""Bytes: a run's plan holds it."""
MAX_MISFITS = 20
_LONGEST_RULE = 80
_LONGEST_PLACE = 200
_DEFAULT = "https://json-schema.org/draft/2020-12/schema"
_NOT_SCHEMAS = frozenset({"const", "enum", "default", "examples"})

_silent = re2.Options()
_silent.log_errors = False  # RE2 would write the pattern to stderr


class Misfit(msgspec.Struct, frozen=True):
    place: str
    """A path in the payload; empty: the whole of it."""
    rule: str
    """The rule of the schema that it breaks."""

    def __str__(self) -> str:
        return f"{self.place or 'the whole payload'}: {self.rule}"


class SchemaCheck:
    """UsageError for what is no usable schema, ConfigurationError if the package for it is missing."""

    def __init__(self, document: bytes) -> None:
        self._jsonschema = _package("jsonschema")
        if len(document) > MAX_SCHEMA:
            raise _unusable(f"it has more than {MAX_SCHEMA:,} bytes")
        schema = _read(document)
        _check_patterns(schema)
        self._validator = self._made(schema)
        self._check_references(schema)

    def misfits(self, message: Message) -> list[Misfit]:
        """Where the payload does not fit: at most MAX_MISFITS places. None: it fits."""
        try:
            payload = read_json(message.payload)
        except ValueError:
            return [Misfit("", "it is not JSON")]
        try:
            errors = islice(self._validator.iter_errors(payload), MAX_MISFITS)
            return list(dict.fromkeys(map(_misfit, errors)))
        except (RecursionError, ArithmeticError, UnicodeError):
            return [Misfit("", "it nests too deep, or holds numbers or texts that cannot be checked")]
        except _package("referencing").exceptions.Unresolvable:
            raise _not_in_it() from None

    def _made(self, schema: Any) -> Any:
        validators = self._jsonschema.validators
        told = schema.get("$schema", _DEFAULT) if isinstance(schema, dict) else _DEFAULT
        known = validators.validator_for({"$schema": told}, default=None) if isinstance(told, str) else None
        if known is None:
            raise _unusable("its $schema names no draft that is known here")
        try:
            known.check_schema(schema)
        except self._jsonschema.exceptions.SchemaError as error:
            raise _unusable(f"at {dotted(_tokens(error)) or 'its top'}: {_rule(error)}") from None
        except RecursionError:
            raise _unusable("it nests too deep") from None
        # With a registry of its own, nothing is looked up outside of the document and the drafts.
        made = validators.extend(known, self._keywords())
        return made(schema, registry=_package("jsonschema_specifications").REGISTRY)

    def _keywords(self) -> dict[str, Any]:
        error = self._jsonschema.exceptions.ValidationError
        return {
            "pattern": lambda *given: _pattern(error, *given),
            "patternProperties": _pattern_properties,
            "additionalProperties": lambda *given: _additional_properties(error, *given),
        }

    def _check_references(self, schema: Any) -> None:
        referencing = _package("referencing")
        specification = _package("referencing.jsonschema").specification_with(
            schema.get("$schema", _DEFAULT) if isinstance(schema, dict) else _DEFAULT
        )
        registry = _package("jsonschema_specifications").REGISTRY
        top = registry.resolver_with_root(specification.create_resource(schema))
        try:
            for resolver, reference in _references(schema, top, specification):
                resolver.lookup(reference)
        except referencing.exceptions.Unresolvable:
            raise _not_in_it() from None


@lru_cache(maxsize=16)  # it is asked for with every portion of a run's letters
def check_by(schema: str) -> SchemaCheck:
    return SchemaCheck(schema.encode())


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        raise ConfigurationError(
            "a check by JSON Schema needs a package that is not installed", remedy="pip install 'redrive[schema]'"
        ) from missing


def _read(document: bytes) -> Any:
    try:
        found = read_json(document)
    except ValueError:
        raise _unusable("it is not JSON") from None
    if not isinstance(found, dict | bool):
        raise _unusable("it is neither an object nor true or false")
    return found


def _unusable(reason: str) -> UsageError:
    return UsageError(f"the JSON Schema cannot be used: {reason}", remedy="give a JSON Schema that stands alone")


def _not_in_it() -> UsageError:
    return _unusable("it refers to something that is not in it, and nothing is fetched")


def _references(schema: Any, resolver: Any, specification: Any) -> Iterator[tuple[Any, str]]:
    if isinstance(schema, list):
        for each in schema:
            yield from _references(each, resolver, specification)
    if not isinstance(schema, dict):
        return
    if isinstance(schema.get("$id"), str):
        resolver = resolver.in_subresource(specification.create_resource(schema))
    yield from ((resolver, schema[name]) for name in ("$ref", "$dynamicRef") if isinstance(schema.get(name), str))
    for name, each in schema.items():
        if name not in _NOT_SCHEMAS:
            yield from _references(each, resolver, specification)


def _check_patterns(schema: Any) -> None:
    keys = set(_keys(schema))
    if {"patternProperties", "unevaluatedProperties"} <= keys:
        # jsonschema would match these patterns itself, in time that can grow without bounds
        raise _unusable("it uses patternProperties and unevaluatedProperties together")
    for pattern in _patterns(schema):
        try:
            re2.compile(pattern, options=_silent)
        except re2.error:
            raise _unusable("a pattern of it is none for RE2 (no look-around, no back-references)") from None


def _keys(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema
    for each in _inner(schema):
        yield from _keys(each)


def _patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        if isinstance(schema.get("patternProperties"), dict):
            yield from schema["patternProperties"]
    for each in _inner(schema):
        yield from _patterns(each)


def _inner(schema: Any) -> list[Any]:
    if isinstance(schema, dict):
        return [each for name, each in schema.items() if name not in _NOT_SCHEMAS]
    return schema if isinstance(schema, list) else []


def _pattern(error: Any, validator: Any, pattern: str, instance: Any, _: Any) -> Iterator[Any]:
    if validator.is_type(instance, "string") and not re2.search(pattern, instance):
        yield error("")


def _pattern_properties(validator: Any, patterns: dict[str, Any], instance: Any, _: Any) -> Iterator[Any]:
    if validator.is_type(instance, "object"):
        for pattern, schema in patterns.items():
            for name in instance:
                if re2.search(pattern, name):
                    yield from validator.descend(instance[name], schema, path=name, schema_path=pattern)


def _additional_properties(error: Any, validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not validator.is_type(instance, "object"):
        return
    patterns = schema.get("patternProperties", {})
    for name in instance.keys() - schema.get("properties", {}).keys():
        if any(re2.search(pattern, name) for pattern in patterns):
            continue
        if rule is False:
            yield error("", path=[name])
        else:
            yield from validator.descend(instance[name], rule, path=name)


def _misfit(error: Any) -> Misfit:
    return Misfit(cut(dotted(_tokens(error)), _LONGEST_PLACE), _rule(error))


def _tokens(error: Any) -> tuple[str, ...]:
    return tuple(map(str, error.absolute_path))


def _rule(error: Any) -> str:
    """From the schema alone: jsonschema's own texts repeat the value."""
    if error.validator is None:
        return "nothing may be there"
    wanted = error.validator_value
    if error.validator == "required" and isinstance(wanted, list) and isinstance(error.instance, dict):
        wanted = [name for name in wanted if name not in error.instance]
    return f"{error.validator}: {cut(msgspec.json.encode(wanted).decode(), _LONGEST_RULE)}"
