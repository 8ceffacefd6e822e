"""Markers of JSON documents that more than one package writes or reads.

Every document starts with its marker under ``"schema"``: what it is, and in which version. A marker
means one thing and its text is in one file: beside the class that writes it, or here where several need it.
Readers go on accepting old markers; a document of another shape gets another one. What a digest begins with is such
a text as well: no document has it, and it never changes.
"""

from __future__ import annotations

from typing import Final

__all__ = ["DATASET", "RELEASE", "SYNTHETIC_TABLE"]

RELEASE: Final = "cloister.release/1"
"""An anonymized table: what was done and what it promises, without its rows."""

SYNTHETIC_TABLE: Final = "cloister.synthetic_table/1"
"""A synthetic table of the hub: how it was made and what it promises, without its rows."""

DATASET: Final = "cloister.dataset/1"
"""A dataset of the hub, as its catalogue describes it."""
