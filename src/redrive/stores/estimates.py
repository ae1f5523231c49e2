"""What PostgreSQL's planner is told, and what it thinks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, true
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import ClauseElement, Executable

if TYPE_CHECKING:
    from sqlalchemy import Connection, Select
    from sqlalchemy.sql.compiler import SQLCompiler


class _Explain(Executable, ClauseElement):
    inherit_cache = False

    def __init__(self, statement: Select[Any]) -> None:
        self.statement = statement


@compiles(_Explain, "postgresql")
def _explain(element: _Explain, compiler: SQLCompiler, **options: Any) -> str:
    return "EXPLAIN (FORMAT JSON) " + compiler.process(element.statement, **options)


def estimated_rows(connection: Connection, statement: Select[Any]) -> float:
    """How many rows the planner expects; it runs nothing."""
    found = connection.execute(_Explain(statement)).scalar_one()
    plan = json.loads(found) if isinstance(found, str) else found
    return float(plan[0]["Plan"]["Plan Rows"])


def plan_anew(connection: Connection, *, by_index: bool = False, in_order: bool = False) -> None:
    """PostgreSQL weighs what follows in this transaction by the values that are asked for. It would else settle,
    after some questions, on one plan for all of them, and a frequent word is not found by the way of a rare one.
    Nor does it call in more processes: to start them takes longer than a page does.

    `by_index`: it takes an index wherever there is one. What it costs to read all rows of the search index it gets
    wrong, for it does not know that their content lies apart.

    `in_order`: it goes along an index in the order that is asked for. Of a table that has grown since it was last
    analysed it would else gather and sort all rows for each page.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_BY_INDEX if by_index else _IN_ORDER if in_order else _ANEW)


def plan_once(connection: Connection) -> None:
    """After `plan_anew`: what follows in this transaction finds letters by their ids, whatever these are, and one
    plan is good for all of them.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_ONCE)


_ONCE = select(func.set_config("plan_cache_mode", "auto", true()))
_custom = func.set_config("plan_cache_mode", "force_custom_plan", true())
_alone = func.set_config("max_parallel_workers_per_gather", "0", true())
_indexed = func.set_config("enable_seqscan", "off", true())
_ANEW = select(_custom, _alone)
_BY_INDEX = select(_custom, _alone, _indexed)
_IN_ORDER = select(_custom, _alone, _indexed, func.set_config("enable_bitmapscan", "off", true()))
