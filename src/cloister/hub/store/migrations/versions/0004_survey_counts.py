"""The submissions of a survey are counted where the survey is kept, not by looking at all of them."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Count what there is; of closed surveys the number is kept already."""
    op.execute(
        "UPDATE surveys SET submissions = "
        "(SELECT COUNT(*) FROM survey_used_ids WHERE survey_used_ids.survey_id = surveys.id) WHERE submissions IS NULL"
    )
