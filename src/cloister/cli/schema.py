"""``cloister schema``: describe the columns of a table."""

from __future__ import annotations

from cloister.cli.commands import HelpfulGroup

schema = HelpfulGroup(name="schema", help="Describe the columns of a table: what they are and who they expose.")
