"""Running algorithms of outside providers: confined processes, and private aggregation of what they return.

The parts, from the outside in: `review` (is a submitted artifact usable), `run_plan` (what a run costs, from public
facts alone), `execution` (one run), `sample_and_aggregate` (blocks, and the private aggregation of what they return),
`runner` (confined processes) and `confined` (what happens inside of them).
"""

from __future__ import annotations
