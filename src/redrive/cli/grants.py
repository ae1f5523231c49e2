"""What a command grants: `--grant ROLE`, or `--grant ROLE:QUEUES`."""

from __future__ import annotations

from typing import Annotated

import typer

from redrive.access import Grant, Role
from redrive.accounts import grant_of

GrantOption = Annotated[
    list[str],
    typer.Option(
        "--grant",
        "-g",
        metavar="ROLE[:QUEUES]",
        help=f"A role ({', '.join(Role)}), for all queues or one: operator:orders, operator:pay*. Repeatable.",
        show_default=False,
    ),
]


def granted(texts: list[str]) -> list[Grant]:
    return [grant_of(text) for text in texts]
