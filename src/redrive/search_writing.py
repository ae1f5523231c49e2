"""Terms back into text: canonical, and read again as the same terms."""

from __future__ import annotations

import re
from datetime import datetime

from redrive.search_grammar import CONNECTIVES, DATA, HEADER
from redrive.search_terms import COMPARISONS, DataTerm, FieldTerm, Filter, HeaderTerm, Op, Term, TextTerm

_PLAIN_VALUE = re.compile(r"[\w./@+#:-]+")
_PLAIN_WORD = re.compile(r"\w+")
_PLAIN_SEGMENT = re.compile(r"[\w-]+")


def unparse(filter_: Filter) -> str:
    """The filter's text. `parse` gives the same filter for it at any time, unless quoting made it too long."""
    return " ".join(("-" if term.negated else "") + _written(term) for term in filter_.terms)


def _written(term: Term) -> str:
    if isinstance(term, TextTerm):
        plain = _PLAIN_WORD.fullmatch(term.text) and term.text not in CONNECTIVES
        return (term.text if plain else _quoted(term.text)) + "*" * term.begins
    return f"{_name(term)}:{_condition(term)}"


def _name(term: FieldTerm | HeaderTerm | DataTerm) -> str:
    if isinstance(term, FieldTerm):
        return str(term.field)
    kind, path = (HEADER, (term.name,)) if isinstance(term, HeaderTerm) else (DATA, term.path)
    return ".".join((kind, *(_plain_or_quoted(segment, _PLAIN_SEGMENT) for segment in path)))


def _condition(term: FieldTerm | HeaderTerm | DataTerm) -> str:
    if term.op is Op.EXISTS:
        return "*"
    sign = str(term.op) if term.op in COMPARISONS else ""
    ending = "*" if term.op is Op.BEGINS else ""
    return sign + ",".join(value_text(each) + ending for each in term.values)


def value_text(value: str | int | datetime) -> str:
    """A value as it stands behind a colon, in quotes if it has to be."""
    if isinstance(value, datetime):
        return value.isoformat()
    return _plain_or_quoted(str(value), _PLAIN_VALUE)


def _plain_or_quoted(text: str, plain: re.Pattern[str]) -> str:
    return text if plain.fullmatch(text) else _quoted(text)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
