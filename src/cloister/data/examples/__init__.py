"""Example data: a generated hospital, and the small tables of textbooks. None of it is about real people."""

from __future__ import annotations

from cloister.data.examples.hospital import HOSPITAL_SCHEMA, hospital, hospital_table
from cloister.data.examples.textbook import TEXTBOOK, textbook

__all__ = ["HOSPITAL_SCHEMA", "TEXTBOOK", "hospital", "hospital_table", "textbook"]
