"""Running algorithms of outside providers: confined processes, and private aggregation of what they return.

The parts, from the outside in: `checking` (is a submitted artifact usable), `planning` (what a run costs, from public
facts alone), `running` (blocks, clipping, private aggregation), `runner` (confined processes) and `confined` (what
happens inside of them).
"""
