"""Principal components with noise."""
