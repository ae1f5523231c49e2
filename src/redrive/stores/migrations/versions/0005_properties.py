"""What a foreign broker said of a message beside its body, with the message as it came."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("revisions", sa.Column("properties", sa.LargeBinary(), nullable=True))
