"""Shadow fits: a synthesizer fitted again and again, with some rows in and some rows out.

Each target row is in each fit with chance one half, independently of everything else. What an attacker would compute
from the synthetic table is kept per fit and target, with whether the target was in.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cloister.core.guarantees import Adjacency, Guarantee
from cloister.core.random import RandomSource, bits, permutation
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import DataError
from cloister.synth.base import Synthesizer
from cloister.synth.evaluation.encoding import Features, row_codes
from cloister.synth.evaluation.nearest import nearest
from cloister.synth.evaluation.tables import CodedRows, Codes, Floats, Tables, read_tables

__all__ = ["Shadows", "run_shadows"]

STATISTICS = ("copies", "nearness", "density")


@dataclass(frozen=True, eq=False)
class Shadows:
    """What an attacker saw of each target in each fit, larger meaning nearer.

    Attributes:
        inside: whether each target (column) was in each fit (row).
        seen: one number per fit, target and statistic.
        guarantee: what a fit promises.
    """

    inside: NDArray[np.bool_]
    seen: Floats
    guarantee: Guarantee


def run_shadows(
    synthesizer: Synthesizer,
    table: Table,
    source: RandomSource,
    *,
    records: int,
    fits: int,
    tell: Callable[[float, str], None],
) -> Shadows:
    """Fit and look, so many times. The rows are taken out of their engine; no ledger is charged."""
    shadow = replace(synthesizer, ledger=None, dataset=None, analyst=None, progress=None, random_state=None)
    shadow.schema = table.schema if synthesizer.schema is None else synthesizer.schema
    rows = table.to_arrow()
    # Where promises are about replaced rows, a target that is out leaves its place to another row.
    is_replaced = Adjacency(synthesizer.adjacency) is Adjacency.REPLACE
    targets, fillers, others = _dealt(shadow, table, rows, records, source, is_replaced=is_replaced)
    inside = np.array([bits(source, len(targets)) for _ in range(fits)])
    seen = np.zeros((fits, len(targets), len(STATISTICS)))
    for place in range(fits):
        tell(place / fits, f"shadow fit {place + 1} of {fits}")
        left_in = inside[place]
        chosen = np.concatenate([others, targets[left_in], fillers[~left_in] if is_replaced else others[:0]])
        part = open_table(rows.take(pa.array(chosen[permutation(source, len(chosen))])))
        shadow.fit(part.with_schema(shadow.schema))
        made = shadow.sample(len(chosen))
        seen[place] = _looked_at(shadow, rows.take(pa.array(targets)), made)
    tell(1.0, "done")
    return Shadows(inside, seen, shadow.guarantee_)


def _dealt(
    shadow: Synthesizer, table: Table, rows: pa.Table, records: int, source: RandomSource, *, is_replaced: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return where targets are, half of them the least usual rows, rows to take their place, and all others."""
    apart = 2 * records if is_replaced else records
    if len(rows) < 2 * apart:
        raise DataError(
            f"There are too few rows for {records} targets.",
            fix=f"ask for at most {max(1, len(rows) * records // (2 * apart))} records.",
        )
    facts = shadow.declared(table.with_schema(shadow.schema))
    unusual = np.zeros(len(rows))
    for attribute in facts.domain.attributes:
        codes = row_codes(attribute, rows.column(attribute.name))
        unusual -= np.log(np.bincount(codes)[codes] / len(rows))
    order = permutation(source, len(rows))
    rare = order[np.argsort(-unusual[order], kind="stable")[: records // 2]]
    rest = order[~np.isin(order, rare)]
    targets = np.concatenate([rare, rest[: records - len(rare)]])
    left = rest[records - len(rare) :]
    fillers = left[:records] if is_replaced else left[:0]
    return targets, fillers, left[len(fillers) :]


def _looked_at(shadow: Synthesizer, targets: pa.Table, made: Table) -> Floats:
    """Return how often, how near and how densely the synthetic rows meet each target."""
    names = shadow.fitted_facts.domain.names
    tables = read_tables(
        open_table(targets).with_schema(shadow.schema),
        made,
        schema=shadow.schema,
        columns=list(names),
        bins=shadow.bins,
    )
    wanted = _in_order(tables, targets)
    synthetic = tables.synthetic
    features = Features(tables, tuple(range(len(names))))
    shown = features.mixed(synthetic.codes)
    distances, places = nearest(features.mixed(wanted), shown)
    copies = np.where(distances == 0, synthetic.weights[places], 0)
    return np.column_stack([np.log1p(copies), -distances, _density(synthetic, wanted)])


def _in_order(tables: Tables, targets: pa.Table) -> Codes:
    return np.column_stack([row_codes(item, targets.column(item.name)) for item in tables.domain.attributes])


def _density(synthetic: CodedRows, wanted: Codes) -> Floats:
    """Return the mean over pairs of columns of the logarithm of the share of rows that are like the target."""
    count = wanted.shape[1]
    pairs = list(itertools.combinations(range(count), min(2, count)))
    found = np.zeros(len(wanted))
    for pair in pairs:
        shares = synthetic.shares(pair)
        found += np.log(shares[tuple(wanted[:, column] for column in pair)] + 1 / (2 * synthetic.total))
    return found / len(pairs)
