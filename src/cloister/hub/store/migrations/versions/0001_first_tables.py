"""The first tables of the hub."""

import sqlalchemy as sa
from alembic import op

from cloister.hub.store.models.base import JSON_COLUMN, Moment

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables of this version."""
    op.create_table(
        "audit_entries",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("time", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("previous", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_audit_entries")),
        sa.UniqueConstraint("digest", name=op.f("uq_audit_entries_digest")),
    )
    with op.batch_alter_table("audit_entries", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_audit_entries_actor"), ["actor"], unique=False)
        batch_op.create_index(batch_op.f("ix_audit_entries_dataset_id"), ["dataset_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_audit_entries_target"), ["target"], unique=False)

    op.create_table(
        "organisations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("folded", sa.Text(), nullable=False),
        sa.Column("created", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_organisations")),
        sa.UniqueConstraint("folded", name=op.f("uq_organisations_folded")),
        sa.UniqueConstraint("name", name=op.f("uq_organisations_name")),
    )
    op.create_table(
        "sign_in_tries",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("locked_until", Moment(), nullable=True),
        sa.Column("updated", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_sign_in_tries")),
    )
    with op.batch_alter_table("sign_in_tries", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_sign_in_tries_updated"), ["updated"], unique=False)

    op.create_table(
        "used_states",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("expires", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_used_states")),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("folded", sa.Text(), nullable=False),
        sa.Column("display_name", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("password_hash", sa.Text(), nullable=True),
        sa.Column("totp_sealed", sa.LargeBinary(), nullable=True),
        sa.Column("totp_proposed", sa.LargeBinary(), nullable=True),
        sa.Column("totp_last_step", sa.BigInteger(), nullable=True),
        sa.Column("factor_reset_by", sa.Text(), nullable=True),
        sa.Column("roles", JSON_COLUMN, nullable=False),
        sa.Column("attributes", JSON_COLUMN, nullable=False),
        sa.Column("organisation_id", sa.Text(), nullable=True),
        sa.Column("proposed", JSON_COLUMN, nullable=True),
        sa.Column("is_disabled", sa.Boolean(), nullable=False),
        sa.Column("created", Moment(), nullable=False),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], name=op.f("fk_users_organisation_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("email", name=op.f("uq_users_email")),
        sa.UniqueConstraint("folded", name=op.f("uq_users_folded")),
        sa.UniqueConstraint("name", name=op.f("uq_users_name")),
    )
    with op.batch_alter_table("users", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_users_organisation_id"), ["organisation_id"], unique=False)

    op.create_table(
        "algorithms",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("provider_id", sa.Text(), nullable=False),
        sa.Column("organisation_id", sa.Text(), nullable=True),
        sa.Column("created", Moment(), nullable=False),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], name=op.f("fk_algorithms_organisation_id")),
        sa.ForeignKeyConstraint(["provider_id"], ["users.id"], name=op.f("fk_algorithms_provider_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_algorithms")),
        sa.UniqueConstraint("name", name=op.f("uq_algorithms_name")),
    )
    with op.batch_alter_table("algorithms", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_algorithms_organisation_id"), ["organisation_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_algorithms_provider_id"), ["provider_id"], unique=False)

    op.create_table(
        "api_tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("scopes", JSON_COLUMN, nullable=False),
        sa.Column("created", Moment(), nullable=False),
        sa.Column("expires", Moment(), nullable=True),
        sa.Column("revoked", Moment(), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_api_tokens_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_tokens")),
        sa.UniqueConstraint("digest", name=op.f("uq_api_tokens_digest")),
    )
    with op.batch_alter_table("api_tokens", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_api_tokens_user_id"), ["user_id"], unique=False)

    op.create_table(
        "datasets",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("organisation_id", sa.Text(), nullable=False),
        sa.Column("creator_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("facts", JSON_COLUMN, nullable=False),
        sa.Column("created", Moment(), nullable=False),
        sa.ForeignKeyConstraint(["creator_id"], ["users.id"], name=op.f("fk_datasets_creator_id")),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], name=op.f("fk_datasets_organisation_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_datasets")),
        sa.UniqueConstraint("organisation_id", "name", name=op.f("uq_datasets_organisation_id_name")),
    )
    with op.batch_alter_table("datasets", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_datasets_organisation_id"), ["organisation_id"], unique=False)

    op.create_table(
        "enrolments",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("made_by", sa.Text(), nullable=True),
        sa.Column("created", Moment(), nullable=False),
        sa.Column("expires", Moment(), nullable=False),
        sa.Column("used", Moment(), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_enrolments_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_enrolments")),
    )
    with op.batch_alter_table("enrolments", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_enrolments_user_id"), ["user_id"], unique=False)

    op.create_table(
        "identities",
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("created", Moment(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_identities_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("issuer", "subject", name=op.f("pk_identities")),
    )
    with op.batch_alter_table("identities", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_identities_user_id"), ["user_id"], unique=False)

    op.create_table(
        "known_browsers",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("expires", Moment(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_known_browsers_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_known_browsers")),
    )
    with op.batch_alter_table("known_browsers", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_known_browsers_user_id"), ["user_id"], unique=False)

    op.create_table(
        "login_sessions",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("csrf_digest", sa.Text(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("created", Moment(), nullable=False),
        sa.Column("seen", Moment(), nullable=False),
        sa.Column("expires", Moment(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_login_sessions_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_login_sessions")),
        sa.UniqueConstraint("id", name=op.f("uq_login_sessions_id")),
    )
    with op.batch_alter_table("login_sessions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_login_sessions_user_id"), ["user_id"], unique=False)

    op.create_table(
        "notices",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("link", sa.Text(), nullable=False),
        sa.Column("is_read", sa.Boolean(), nullable=False),
        sa.Column("created", Moment(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_notices_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notices")),
    )
    with op.batch_alter_table("notices", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_notices_user_id"), ["user_id"], unique=False)

    op.create_table(
        "policy_versions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("object_kind", sa.Text(), nullable=False),
        sa.Column("object_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("document", JSON_COLUMN, nullable=False),
        sa.Column("author_id", sa.Text(), nullable=True),
        sa.Column("created", Moment(), nullable=False),
        sa.ForeignKeyConstraint(["author_id"], ["users.id"], name=op.f("fk_policy_versions_author_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_policy_versions")),
        sa.UniqueConstraint(
            "object_kind", "object_id", "number", name=op.f("uq_policy_versions_object_kind_object_id_number")
        ),
    )
    op.create_table(
        "recovery_codes",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_recovery_codes_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_recovery_codes")),
    )
    with op.batch_alter_table("recovery_codes", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_recovery_codes_user_id"), ["user_id"], unique=False)

    op.create_table(
        "surveys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("organisation_id", sa.Text(), nullable=False),
        sa.Column("author_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("admission", sa.Text(), nullable=False),
        sa.Column("results_are_public", sa.Boolean(), nullable=False),
        sa.Column("least", sa.BigInteger(), nullable=False),
        sa.Column("code_hash", sa.Text(), nullable=False),
        sa.Column("wrapped_key", sa.LargeBinary(), nullable=True),
        sa.Column("signing_key", sa.LargeBinary(), nullable=True),
        sa.Column("public_key", sa.Text(), nullable=True),
        sa.Column("submissions", sa.BigInteger(), nullable=True),
        sa.Column("estimates", sa.Text(), nullable=True),
        sa.Column("estimated", sa.BigInteger(), nullable=False),
        sa.Column("created", Moment(), nullable=False),
        sa.Column("opened", Moment(), nullable=True),
        sa.Column("closed", Moment(), nullable=True),
        sa.ForeignKeyConstraint(["author_id"], ["users.id"], name=op.f("fk_surveys_author_id")),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], name=op.f("fk_surveys_organisation_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_surveys")),
        sa.UniqueConstraint("slug", name=op.f("uq_surveys_slug")),
    )
    with op.batch_alter_table("surveys", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_surveys_organisation_id"), ["organisation_id"], unique=False)

    op.create_table(
        "access_requests",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("requester_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("document", JSON_COLUMN, nullable=False),
        sa.Column("history", JSON_COLUMN, nullable=False),
        sa.Column("expires", Moment(), nullable=True),
        sa.Column("created", Moment(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name=op.f("fk_access_requests_dataset_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["requester_id"], ["users.id"], name=op.f("fk_access_requests_requester_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_access_requests")),
    )
    with op.batch_alter_table("access_requests", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_access_requests_dataset_id"), ["dataset_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_access_requests_requester_id"), ["requester_id"], unique=False)

    op.create_table(
        "algorithm_versions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("algorithm_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("manifest", JSON_COLUMN, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("blob_id", sa.Text(), nullable=False),
        sa.Column("wrapped_key", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sealed_digest", sa.Text(), nullable=False),
        sa.Column("report", JSON_COLUMN, nullable=True),
        sa.Column("created", Moment(), nullable=False),
        sa.Column("published", Moment(), nullable=True),
        sa.ForeignKeyConstraint(["algorithm_id"], ["algorithms.id"], name=op.f("fk_algorithm_versions_algorithm_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_algorithm_versions")),
        sa.UniqueConstraint("algorithm_id", "version", name=op.f("uq_algorithm_versions_algorithm_id_version")),
    )
    with op.batch_alter_table("algorithm_versions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_algorithm_versions_algorithm_id"), ["algorithm_id"], unique=False)

    op.create_table(
        "answer_histories",
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("asker", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=True),
        sa.Column("wrapped_key", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name=op.f("fk_answer_histories_dataset_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("dataset_id", "asker", name=op.f("pk_answer_histories")),
    )
    op.create_table(
        "dataset_versions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("blob_id", sa.Text(), nullable=True),
        sa.Column("wrapped_key", sa.LargeBinary(), nullable=True),
        sa.Column("size", sa.BigInteger(), nullable=True),
        sa.Column("source_digest", sa.Text(), nullable=True),
        sa.Column("columns", JSON_COLUMN, nullable=False),
        sa.Column("schema_text", sa.Text(), nullable=False),
        sa.Column("created", Moment(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name=op.f("fk_dataset_versions_dataset_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset_versions")),
        sa.UniqueConstraint("dataset_id", "number", name=op.f("uq_dataset_versions_dataset_id_number")),
    )
    with op.batch_alter_table("dataset_versions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_dataset_versions_dataset_id"), ["dataset_id"], unique=False)

    op.create_table(
        "jobs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("service_version", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=True),
        sa.Column("version_id", sa.Text(), nullable=True),
        sa.Column("requester_id", sa.Text(), nullable=False),
        sa.Column("organisation_id", sa.Text(), nullable=True),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("parameters", JSON_COLUMN, nullable=False),
        sa.Column("plan", JSON_COLUMN, nullable=False),
        sa.Column("receipt", JSON_COLUMN, nullable=True),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("losses", sa.BigInteger(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("lease_until", Moment(), nullable=True),
        sa.Column("progress", sa.Double(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("is_cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("error", JSON_COLUMN, nullable=True),
        sa.Column("decision", JSON_COLUMN, nullable=True),
        sa.Column("created", Moment(), nullable=False),
        sa.Column("finished", Moment(), nullable=True),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_jobs_dataset_id")),
        sa.ForeignKeyConstraint(["requester_id"], ["users.id"], name=op.f("fk_jobs_requester_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("requester_id", "idempotency_key", name=op.f("uq_jobs_requester_id_idempotency_key")),
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index("ix_jobs_claim", ["state", "created", "lease_until"], unique=False)
        batch_op.create_index(batch_op.f("ix_jobs_dataset_id"), ["dataset_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_jobs_requester_id"), ["requester_id"], unique=False)

    op.create_table(
        "spending",
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("amount", sa.Text(), nullable=False),
        sa.Column("delta", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name=op.f("fk_spending_dataset_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("dataset_id", "scope", "name", name=op.f("pk_spending")),
    )
    op.create_table(
        "survey_invitations",
        sa.Column("survey_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("is_used", sa.Boolean(), nullable=False),
        sa.Column("asked", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["survey_id"], ["surveys.id"], name=op.f("fk_survey_invitations_survey_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("survey_id", "digest", name=op.f("pk_survey_invitations")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "survey_reports",
        sa.Column("survey_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("level", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["survey_id"], ["surveys.id"], name=op.f("fk_survey_reports_survey_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("survey_id", "key", name=op.f("pk_survey_reports")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "survey_signatures",
        sa.Column("survey_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["survey_id"], ["surveys.id"], name=op.f("fk_survey_signatures_survey_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("survey_id", "digest", name=op.f("pk_survey_signatures")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "survey_used_ids",
        sa.Column("survey_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["survey_id"], ["surveys.id"], name=op.f("fk_survey_used_ids_survey_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("survey_id", "digest", name=op.f("pk_survey_used_ids")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "algorithm_allowances",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("version_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("until", Moment(), nullable=True),
        sa.Column("created", Moment(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name=op.f("fk_algorithm_allowances_dataset_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_algorithm_allowances_owner_id")),
        sa.ForeignKeyConstraint(
            ["version_id"], ["algorithm_versions.id"], name=op.f("fk_algorithm_allowances_version_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_algorithm_allowances")),
        sa.UniqueConstraint("dataset_id", "version_id", name=op.f("uq_algorithm_allowances_dataset_id_version_id")),
    )
    with op.batch_alter_table("algorithm_allowances", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_algorithm_allowances_dataset_id"), ["dataset_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_algorithm_allowances_version_id"), ["version_id"], unique=False)

    op.create_table(
        "results",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("wrapped_key", sa.LargeBinary(), nullable=False),
        sa.Column("guarantee", JSON_COLUMN, nullable=False),
        sa.Column("provenance", JSON_COLUMN, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("created", Moment(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_results_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_results")),
        sa.UniqueConstraint("digest", name=op.f("uq_results_digest")),
        sa.UniqueConstraint("job_id", name=op.f("uq_results_job_id")),
    )
