"""What was spent and what is left: events, composition, accountants, budgets and the ledger."""
