"""The filter language of list, export and everything else that selects letters (docs/filter-language.md).

`queue:orders type:TimeoutError age:>2d data.customer.id:123 -handler:refund "connection refused"`

`parse` reads a filter's text, `unparse` writes it again; a Filter and its terms are what a store compiles and
`search_match.matches` defines.
"""

from __future__ import annotations

from redrive.search_grammar import parse
from redrive.search_terms import (
    COMPARISONS,
    DataTerm,
    Field,
    FieldTerm,
    Filter,
    HeaderTerm,
    Op,
    Term,
    TextTerm,
    index_of,
    number_of,
)
from redrive.search_writing import unparse

__all__ = [
    "COMPARISONS",
    "DataTerm",
    "Field",
    "FieldTerm",
    "Filter",
    "HeaderTerm",
    "Op",
    "Term",
    "TextTerm",
    "index_of",
    "number_of",
    "parse",
    "unparse",
]
