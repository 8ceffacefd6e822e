"""Schemas that are still guesses from the rows are sealed; `seal_guesses` moves those that were in plain."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make a place for sealed schemas."""
    op.add_column("dataset_versions", sa.Column("sealed_schema", sa.LargeBinary(), nullable=True))
