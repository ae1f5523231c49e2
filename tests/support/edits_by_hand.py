"""What an edit operation means, on Python's own lists and dicts: a second opinion on what is done in the text."""

from __future__ import annotations

import copy
import json
from typing import Any

from redrive.editing import Add, Copy, Move, Remove, Rename, Replace, Set
from redrive.json_path import tokens_of

END = "-"


class NoFit(Exception):
    pass


def _inside(value: Any, token: str) -> Any:
    """The child, by the letter of RFC 6901."""
    if isinstance(value, dict) and token in value:
        return value[token]
    if isinstance(value, list) and token.isdecimal() and token.isascii() and int(token) < len(value):
        return value[int(token)]
    raise NoFit


def get(value: Any, tokens: tuple[str, ...]) -> Any:
    for token in tokens:
        value = _inside(value, token)
    return value


def _add(value: Any, tokens: tuple[str, ...], new: Any) -> Any:
    if not tokens:
        return new
    holder, token = get(value, tokens[:-1]), tokens[-1]
    if isinstance(holder, dict):
        holder[token] = new
    elif isinstance(holder, list) and (token == END or (token.isdecimal() and int(token) <= len(holder))):
        holder.insert(len(holder) if token == END else int(token), new)
    else:
        raise NoFit
    return value


def _replace(value: Any, tokens: tuple[str, ...], new: Any) -> Any:
    get(value, tokens)
    if not tokens:
        return new
    holder = get(value, tokens[:-1])
    holder[tokens[-1] if isinstance(holder, dict) else int(tokens[-1])] = new
    return value


def _remove(value: Any, tokens: tuple[str, ...]) -> Any:
    get(value, tokens)
    if not tokens:
        raise NoFit
    holder = get(value, tokens[:-1])
    del holder[tokens[-1] if isinstance(holder, dict) else int(tokens[-1])]
    return value


def _set(value: Any, tokens: tuple[str, ...], new: Any) -> Any:
    for depth in range(len(tokens)):
        try:
            get(value, tokens[: depth + 1])
        except NoFit:
            for token in reversed(tokens[depth + 1 :]):
                new = {token: new}
            return _add(value, tokens[: depth + 1], new)
    return _replace(value, tokens, new)


def _rename(value: Any, tokens: tuple[str, ...], to: str) -> Any:
    found = get(value, tokens)
    holder = get(value, tokens[:-1])
    if not tokens or isinstance(holder, list) or (to in holder and to != tokens[-1]):
        raise NoFit
    return _add(_remove(value, tokens), (*tokens[:-1], to), found)


def by_hand(value: Any, operation: Any) -> Any:
    """The value after the operation; NoFit if it cannot be made."""
    value, tokens = copy.deepcopy(value), tokens_of(operation.path)
    match operation:
        case Add():
            return _add(value, tokens, json.loads(bytes(operation.value)))
        case Replace():
            return _replace(value, tokens, json.loads(bytes(operation.value)))
        case Set():
            return _set(value, tokens, json.loads(bytes(operation.value)))
        case Remove():
            return _remove(value, tokens)
        case Rename():
            return _rename(value, tokens, operation.to)
        case Copy():
            return _add(value, tokens, copy.deepcopy(get(value, tokens_of(operation.source))))
        case Move():
            source = tokens_of(operation.source)
            found = get(value, source)
            return value if source == tokens else _add(_remove(value, source), tokens, found)
    return _expected(value, tokens, json.loads(bytes(operation.value)))


def _expected(value: Any, tokens: tuple[str, ...], wanted: Any) -> Any:
    # By their texts, in which true is not 1. No float that is worth an integer is among the values.
    if json.dumps(get(value, tokens), sort_keys=True) != json.dumps(wanted, sort_keys=True):
        raise NoFit
    return value
