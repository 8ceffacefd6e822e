"""One question, asked of each tool: COUNT(*), SUM(value), AVG(value) per group.

Every module has ``prepare(path, *, groups, limit)``, which returns a function from epsilon to the answers ``n``, ``s``
and ``m`` in the order of the groups. ``limit`` is the number of rows per person; ``None`` protects rows. A module
imports its tool only, so that it runs in an environment of its own; see `benchmarks.usage.report`.
"""
