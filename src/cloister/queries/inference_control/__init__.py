"""Inference control: exact answers about groups, refused where they would give single persons away.

`ControlledTable` is the way in. `Controls` says which controls are on: query-set size, overlap, the audit of sums, and
how numbers are shown. A `History` remembers what an organization was answered. None of this is differential privacy,
which `PrivateTable` is for. A noisy copy of the data (data perturbation) is not offered: it biases answers and promises
nothing.
"""

from cloister.queries.inference_control.controlled_table import (
    ControlledAnswer,
    ControlledFrame,
    ControlledTable,
    check_question,
)
from cloister.queries.inference_control.controls import Controls, Ranges, Rounded
from cloister.queries.inference_control.history import Answered, History, MemoryHistory

__all__ = [
    "Answered",
    "ControlledAnswer",
    "ControlledFrame",
    "ControlledTable",
    "Controls",
    "History",
    "MemoryHistory",
    "Ranges",
    "Rounded",
    "check_question",
]
