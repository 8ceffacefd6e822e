"""Principal components of rows that stay with several owners."""
