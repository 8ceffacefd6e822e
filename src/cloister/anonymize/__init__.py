"""Release tables that can be defended: models, algorithms, risk, loss and reports."""
