"""${message}."""

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}

from cloister.hub.store.models.base import JSON_COLUMN, Moment

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables of this version."""
    ${upgrades if upgrades else "pass"}
