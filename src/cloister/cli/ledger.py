"""``cloister ledger``: see and check what was spent."""

from __future__ import annotations

from cloister.cli.commands import HelpfulGroup

ledger = HelpfulGroup(name="ledger", help="See what privacy budget was spent, and check that nobody changed it.")
