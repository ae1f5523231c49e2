"""Everything a store says, row by row, so that two moments can be compared. Knows nothing of the product."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chaos.lab.rows import rows_of_each

if TYPE_CHECKING:
    from chaos.lab.rows import Database

_TABLES = (
    *("letters", "revisions", "failures", "groups", "claims", "redrives", "audit"),
    *("handler_attempts", "secrets", "search_queue", "search_parts"),
)
_FACET = "group_id, queue, handler, kind, type, short_type, event_type, status"
_NUMBERS = {
    "totals": f"SELECT {_FACET}, letters, resolve_ms FROM totals JOIN facets ON facets.id = facet_id"  # noqa: S608  no text of others
    f" UNION ALL SELECT {_FACET}, letters, resolve_ms FROM counter_deltas",
    "counters": f"SELECT {_FACET}, hour, letters FROM counters JOIN facets ON facets.id = facet_id"  # noqa: S608  as above
    f" UNION ALL SELECT {_FACET}, hour, letters FROM counter_deltas",
}
_SUMS = {
    "totals": f"SELECT {_FACET}, sum(letters), sum(resolve_ms) FROM ({_NUMBERS['totals']}) AS all_of_them"  # noqa: S608  as above
    f" GROUP BY {_FACET} HAVING sum(letters) <> 0",
    "counters": f"SELECT {_FACET}, hour, sum(letters) FROM ({_NUMBERS['counters']}) AS all_of_them"  # noqa: S608  as above
    f" GROUP BY {_FACET}, hour HAVING sum(letters) <> 0",
}

Snapshot = dict[str, list[tuple[Any, ...]]]


def snapshot(store: Database) -> Snapshot:
    """Rows of every table; of the counters their sums, however far they are added up."""
    queries = {name: f"SELECT * FROM {name}" for name in _TABLES} | _SUMS  # noqa: S608  as above
    found = rows_of_each(store, list(queries.values()))
    return {name: sorted(each, key=repr) for name, each in zip(queries, found, strict=True)}
