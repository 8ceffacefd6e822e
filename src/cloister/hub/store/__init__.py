"""What the hub keeps: the database, its migrations, and sealed files."""

from cloister.hub.store.database import Store

__all__ = ["Store"]
