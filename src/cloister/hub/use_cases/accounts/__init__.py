"""People: institutions, accounts, passwords, second factors, tokens, and signing in."""
