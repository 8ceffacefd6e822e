"""Who may do what: pure values without storage or network."""
