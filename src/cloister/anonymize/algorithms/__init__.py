"""The anonymization algorithms: each takes cells and checks, and returns a partition into equivalence classes."""
