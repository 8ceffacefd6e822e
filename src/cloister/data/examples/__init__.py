"""Example data: a generated hospital, and the small tables of textbooks. None of it is about real people."""

from __future__ import annotations

from cloister.data.examples.example_tables import HOSPITAL_SCHEMA, TEXTBOOK, hospital, hospital_table, textbook

__all__ = ["HOSPITAL_SCHEMA", "TEXTBOOK", "hospital", "hospital_table", "textbook"]
