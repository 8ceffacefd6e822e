"""The gate: every attack that fits a release, run by its custodian, and a decision with reasons."""
