"""How a synthetic table compares with the rows that it was made from, for whoever holds them.

The comparison looks at protected rows without noise. It is for the custodian's eyes: passing it on is a release of its
own that promises nothing.
"""

from __future__ import annotations

from cloister.data.table import Table
from cloister.errors import MissingExtraError
from cloister.synth.base import Synthesizer
from cloister.synth.evaluation import Evaluation, evaluate

__all__ = ["compare_with_rows"]


def compare_with_rows(synthesizer: Synthesizer, real: Table, made: Table) -> Evaluation | None:
    """Return the evaluation of made-up rows against the real ones; None where this installation cannot make it.

    Args:
        synthesizer: what made them.
        real: the rows that it was fitted to.
        made: rows that it drew.
    """
    facts = synthesizer.fitted_facts
    edges = {item.name: list(item.edges) for item in facts.domain.attributes if len(item.edges) > 2}
    known = real.with_schema(facts.schema)
    try:
        return evaluate(known, made, columns=facts.domain.names, bins=edges, promise=synthesizer)
    except MissingExtraError:
        return None
