"""How Alembic runs the migrations: on the connection that it is handed."""

from typing import Any, Literal

from alembic import context
from sqlalchemy import JSON

from cloister.hub.store.models import Base
from cloister.hub.store.models.base import Moment


def _is_ours(name: str | None, kind: str, _parents: object) -> bool:
    return kind != "table" or not (name or "").startswith("cloister_ledger")


def _render_item(kind: str, item: Any, _context: Any) -> str | Literal[False]:  # anything that Alembic writes down
    if kind == "type" and isinstance(item, JSON):
        return "JSON_COLUMN"
    return "Moment()" if kind == "type" and isinstance(item, Moment) else False


context.configure(
    render_item=_render_item,
    include_name=_is_ours,
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
