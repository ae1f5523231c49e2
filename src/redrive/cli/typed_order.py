"""The order in which a command's options were typed, for those whose order means something.

A parser gives each option its values; which value of one option stood before which of another it forgets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

if TYPE_CHECKING:
    import typer

_KEY = "redrive.typed"


class InTypedOrder(TyperCommand):
    """A command that remembers it: see `typed`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = list(args)  # parsing empties it
        left: list[str] = super().parse_args(ctx, args)
        _, _, order = self.make_parser(ctx).parse_args(given)
        ctx.meta[_KEY] = [parameter.name for parameter in order]
        return left


def typed(ctx: typer.Context) -> list[str]:
    """The names of the command's parameters as they were typed, one that was given twice twice."""
    found: list[str] = ctx.meta.get(_KEY, [])
    return found
