"""Exact, vectorised samplers. Floating point never decides an outcome."""
