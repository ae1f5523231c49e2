"""The search index tells which of its parts were made with masks. Those that are there already were not: they are
made anew behind the work that goes on, and columns of their letters with them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_PLAIN = sa.text("NOT private")


def upgrade() -> None:
    op.add_column("search_parts", sa.Column("private", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index(
        "ix_search_parts_plain",
        "search_parts",
        ["letter_id"],
        postgresql_where=_PLAIN,
        sqlite_where=_PLAIN,
    )
