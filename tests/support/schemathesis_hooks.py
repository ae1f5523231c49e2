"""How Schemathesis has to read our OpenAPI so that it does not take right answers for wrong ones."""

from __future__ import annotations

from typing import Any

import schemathesis


@schemathesis.hook
def before_load_schema(_: schemathesis.HookContext, raw_schema: dict[str, Any]) -> None:
    """A parameter that is a list or null is a list: no URL can say null. Whatever Schemathesis puts there becomes
    text, and one text is a list of one (`?ids=false` asks for the letter "false"), so the schema is kept. It knows
    that of a list, and not of a list or null.
    """
    for operations in raw_schema["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", []):
                parameter["schema"] = _never_null(parameter["schema"])


def _never_null(schema: dict[str, Any]) -> dict[str, Any]:
    lists = (each for each in schema.get("anyOf", []) if each.get("type") == "array")
    return next(lists, schema)
