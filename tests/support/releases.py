"""Composed guarantees of rows that are added or removed."""

from __future__ import annotations

from functools import partial

from cloister.accounting import compose

composed = partial(compose, adjacency="add_remove", unit="row")
"""Compose plain events of rows that are added or removed."""
