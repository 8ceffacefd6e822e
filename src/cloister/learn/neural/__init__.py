"""Neural networks whose training is private."""
