"""What the tests share: outside tools, servers and data sets."""
