"""What is new and what is back is found by itself, however many groups there are. Indexes alone: an older version
works on.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.create_index("ix_groups_first_seen", "groups", ["first_seen"])
    returned = sa.text("generation > 1 AND status IN ('PENDING', 'QUARANTINED')")
    op.create_index(
        "ix_letters_returned",
        "letters",
        ["changed_at", "group_id"],
        postgresql_where=returned,
        sqlite_where=returned,
    )
