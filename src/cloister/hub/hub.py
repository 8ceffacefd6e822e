"""One running hub: its settings, its database, its keys and its sealed files, handed to whatever needs them."""

from __future__ import annotations

from dataclasses import dataclass

from cloister.crypto.keys import MasterKey
from cloister.hub.settings import Settings
from cloister.hub.store.blobs import BlobStore
from cloister.hub.store.database import Store
from cloister.hub.store.folder_identity import bind_folder
from cloister.hub.store.sealed_schemas import seal_guesses
from cloister.hub.store.table_upgrade import current_revision, upgrade


@dataclass(frozen=True, slots=True)
class Hub:
    """What services work with."""

    settings: Settings
    store: Store
    key: MasterKey
    blobs: BlobStore

    def close(self) -> None:
        """Close the database."""
        self.store.close()


def open_hub(settings: Settings) -> Hub:
    """Open a hub, making its folder and tables where they are missing, and a key for a database that is new.

    Raises:
        CryptoError: if the key of a hub that was used before is missing; a new one could open nothing.
        ConflictError: if the database belongs to another folder, whose files are not here.
    """
    settings.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    store = Store(settings.database_url)
    with store.engine.begin() as connection:
        is_new = current_revision(connection) is None
    key = MasterKey.from_file(settings.key_path, create=is_new)
    upgrade(store)
    bind_folder(store, settings.folder)
    hub = Hub(settings, store, key, BlobStore(settings.folder / "blobs", key))
    seal_guesses(store, hub.blobs)
    return hub
