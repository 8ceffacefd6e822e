"""What a network is trained with, where nothing was chosen: rules of epsilon and the declared number of rows alone.

The rules were found on a split of the training file of Adult, 24,000 rows to learn from and the rest to compare, at
epsilon 0.1, 1 and 10. The more a budget carries (epsilon times rows), the more steps are worth their noise, and the
sooner a hidden layer is worth the noise on its weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cloister.core import validation

__all__ = ["Choices", "chosen"]

_UNDECLARED_ROWS = 30_000
_CARRIES_MANY_STEPS, _CARRIES_A_LAYER = 15_000, 100_000


@dataclass(frozen=True, slots=True)
class Choices:
    """The shape of a network and the pace of its training."""

    hidden: tuple[int, ...]
    epochs: float
    learning_rate: float


def chosen(
    *, hidden: Any, epochs: Any, learning_rate: Any, solver: str, epsilon: float, expected_rows: int | None
) -> Choices:
    """Return what was chosen, and what the rules choose for whatever is None."""
    carried = epsilon * (_UNDECLARED_ROWS if expected_rows is None else expected_rows)
    widths = _widths(((32,) if carried >= _CARRIES_A_LAYER else ()) if hidden is None else hidden)
    many = 100.0 if carried >= _CARRIES_MANY_STEPS else 20.0
    pace = 4.0 if solver == "sgd" else 0.05 if widths else 0.1
    return Choices(
        hidden=widths,
        epochs=many if epochs is None else float(validation.check_positive(epochs, name="epochs")),
        learning_rate=(
            pace
            if learning_rate is None
            else float(validation.check_between(learning_rate, name="learning_rate", lowest=1e-9, highest=1e6))
        ),
    )


def _widths(given: Any) -> tuple[int, ...]:
    listed = list(given) if isinstance(given, list | tuple) else [given]
    return tuple(validation.check_count(width, name="each of hidden_layer_sizes", at_least=1) for width in listed)
