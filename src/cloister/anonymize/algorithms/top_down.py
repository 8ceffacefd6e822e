"""Top-down specialization: from one class of everything down the hierarchies, class by class (Fung, Wang and Yu 2005).

The recoding is local: levels differ between classes. Rows that would be left in a class too small stay together under
the node above, so nothing is suppressed. See `specialization` for a step.
"""

from __future__ import annotations

import numpy as np

from cloister.anonymize.algorithms.base import Outcome, Task
from cloister.anonymize.algorithms.lattice.judging import ClassChecker
from cloister.anonymize.algorithms.lattice.losses import LOSSES, leaf_costs
from cloister.anonymize.algorithms.outliers import suppresses_outliers
from cloister.anonymize.algorithms.specialization import SCORES, Specializer
from cloister.anonymize.models import overall_counts
from cloister.anonymize.partition import whole
from cloister.core.validation import check_choice


@suppresses_outliers
def top_down(task: Task) -> Outcome:
    """Return classes that cannot be specialized further.

    Options of the task: ``score`` chooses the next step: "branching" (saved loss per bit that tells the new classes
    apart, the default), "anonymity" (saved loss per lost row of the smallest class) or "children" (fewest first);
    ``keep_rest=False`` takes only steps in which every child holds by itself.
    """
    score = check_choice(task.options.get("score", "branching"), name="score", allowed=tuple(SCORES))
    check_choice(task.loss, name="loss", allowed=tuple(LOSSES))
    cells = task.cells
    specializer = Specializer(
        cells,
        ClassChecker(cells, task.checks, k=task.k, overall=overall_counts(cells)),
        costs=leaf_costs(task.loss, cells),
        score=SCORES[score],
        keeps_rest=bool(task.options.get("keep_rest", True)),
        report=lambda share: task.progress(share, "specializing classes"),
    )
    groups = specializer.run(np.zeros(len(cells), dtype=np.int64))
    return Outcome(partition=whole(cells, groups), facts={"score": score})
