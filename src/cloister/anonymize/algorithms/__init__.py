"""The ways to find classes: each takes cells and checks, and returns a partition."""
