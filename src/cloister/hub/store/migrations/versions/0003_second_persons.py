"""Links and lost second factors of data owners, operators and auditors wait for a second person."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make places for who asked and who confirmed."""
    op.add_column("enrolments", sa.Column("confirmed_by", sa.String(), nullable=True))
    op.add_column("users", sa.Column("factor_reset_asked_by", sa.String(), nullable=True))
