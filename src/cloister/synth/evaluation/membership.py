"""Does a synthesizer's table tell who was in the data? Membership inference with shadow fits.

The attacker knows the method, all rows but the target's, and how the synthetic table looks with and without the
target from fits of their own: much more than anybody has outside. For each fit, the other fits are the attacker's:
per target they give the mean of what is seen with it in and with it out, and the spread; the score of the fit is the
ratio of the two normal likelihoods (after Carlini et al. 2022, who attack models so).

Where a synthesizer promises (epsilon, delta), every such attack has a true positive rate of at most exp(epsilon)
times its false positive rate plus delta (Kairouz, Oh and Viswanath 2015). An attack below that line proves nothing;
one that is clearly above it proves a broken promise.

Shadow fits are fits of a synthesizer made again and again, with some rows in and some rows out. Each target row is in
each fit with chance one half, independently of everything else. What an attacker would compute from the synthetic
table is kept per fit and target, with whether the target was in.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cloister.core.guarantees import Adjacency, ApproxDP, Guarantee, NoGuarantee, PureDP
from cloister.core.random import RandomSource, SeededRandomSource, bits, permutation
from cloister.core.result import Result
from cloister.core.validation import check_count
from cloister.core.wordings import percent
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import DataError, ParameterError, ParameterTypeError
from cloister.synth.base import Progress, Synthesizer, no_progress
from cloister.synth.evaluation._coded_tables import CodedRows, Codes, Features, Floats, Tables, read_tables, row_codes
from cloister.synth.evaluation._proximity import nearest
from cloister.synth.evaluation._utility import area

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = ["FALSE_POSITIVE_RATE", "Membership", "Shadows", "membership", "run_shadows"]


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
    targets, fillers, others = _deal_rows(shadow, table, rows, records, source, is_replaced=is_replaced)
    inside = np.array([bits(source, len(targets)) for _ in range(fits)])
    seen = np.zeros((fits, len(targets), len(STATISTICS)))
    for place in range(fits):
        tell(place / fits, f"shadow fit {place + 1} of {fits}")
        left_in = inside[place]
        chosen = np.concatenate([others, targets[left_in], fillers[~left_in] if is_replaced else others[:0]])
        part = open_table(rows.take(pa.array(chosen[permutation(source, len(chosen))])))
        shadow.fit(part.with_schema(shadow.schema))
        made = shadow.sample(len(chosen))
        seen[place] = _look_at(shadow, rows.take(pa.array(targets)), made)
    tell(1.0, "done")
    return Shadows(inside, seen, shadow.guarantee_)


def _deal_rows(
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
    # In random order first, so that chance decides between equally unusual rows.
    rare = order[np.argsort(-unusual[order], kind="stable")[: records // 2]]
    rest = order[~np.isin(order, rare)]
    targets = np.concatenate([rare, rest[: records - len(rare)]])
    left = rest[records - len(rare) :]
    fillers = left[:records] if is_replaced else left[:0]
    return targets, fillers, left[len(fillers) :]


def _look_at(shadow: Synthesizer, targets: pa.Table, made: Table) -> Floats:
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
    shown = features.mix(synthetic.codes)
    distances, places = nearest(features.mix(wanted), shown)
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
        # A cell without synthetic rows counts as half a row, since its logarithm would be infinite.
        found += np.log(shares[tuple(wanted[:, column] for column in pair)] + 1 / (2 * synthetic.total))
    return found / len(pairs)


FALSE_POSITIVE_RATE = 0.01
_FEWEST_FITS = 4
_LEAST_SPREAD = 1e-6
_REASON = "it was computed from protected rows as they are, and is for their custodian"


@dataclass(frozen=True, kw_only=True)
class Membership(Result):
    """How well an attacker tells from a synthetic table whether a row was in the data.

    Attributes:
        area: how often a row that was in scores higher than one that was not: 0.5 is guessing, 1 always.
        true_positive_rate: the share of rows that were in that the attacker finds, at the false positive rate.
        false_positive_rate: the share of rows that were not in that the attacker takes for such.
        ceiling: the true positive rate that the promise allows there; None if nothing is promised.
        records: how many rows were attacked.
        fits: how many times the synthesizer was fitted.
        trials: how many rows were in and how many were not, over all fits.
        curve: pairs of a false and a true positive rate, for a chart.
        promise: what the synthesizer promises.
    """

    schema: ClassVar[str] = "cloister.synthetic_membership/1"

    area: float
    true_positive_rate: float
    false_positive_rate: float
    ceiling: float | None
    records: int
    fits: int
    trials: tuple[int, int]
    curve: tuple[tuple[float, float], ...]
    promise: Guarantee
    guarantee: Guarantee

    @property
    def refutes(self) -> bool:
        """Return whether the attack is above the ceiling by more than chance explains.

        Both rates are allowed to be off by five standard deviations.
        """
        most = ceiling(self.promise, self.false_positive_rate + _apart(self.false_positive_rate, self.trials[1]))
        return most is not None and self.true_positive_rate > most + _apart(most, self.trials[0])

    def __str__(self) -> str:
        rate = f"{percent(self.true_positive_rate)} at {percent(self.false_positive_rate)} false positives"
        promised = "nothing is promised" if self.ceiling is None else f"the promise allows {percent(self.ceiling)}"
        return f"membership attack: area {self.area:.3f} (0.5 is guessing), finds {rate} ({promised})"

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        return (
            ("attack", str(self)),
            ("effort", f"{self.records:,} rows, half of them the least usual ones, in {self.fits:,} fits"),
            ("promise", self.promise.explain()),
            ("for whom", self.guarantee.explain()),
        )

    def plot(self) -> Figure:
        """Return the rates of the attack beside guessing and what the promise allows."""
        from cloister.synth.evaluation._quality_charts import membership_chart

        return membership_chart(self)

    def _fields(self) -> dict[str, Any]:
        return {
            "area": self.area,
            "true_positive_rate": self.true_positive_rate,
            "false_positive_rate": self.false_positive_rate,
            "ceiling": self.ceiling,
            "records": self.records,
            "fits": self.fits,
            "trials": list(self.trials),
            "promise": self.promise.to_dict(),
        }


def membership(
    synthesizer: Synthesizer,
    table: Any,
    *,
    records: int = 200,
    fits: int = 16,
    progress: Progress | None = None,
    random_state: int = 0,
) -> Membership:
    """Attack a synthesizer with shadow fits: does its table tell who was in the data?

    The synthesizer is fitted many times, each as long as one fit. No ledger is charged, so the outcome is for the
    custodian of the rows and not for publication.

    Args:
        synthesizer: fitted or not; it is not changed.
        table: the rows, as for `fit`.
        records: how many rows are attacked, half of them the least usual ones.
        fits: how many times the synthesizer is fitted.
        progress: called now and then with the share that is done and what is being done.
        random_state: of the choice of rows; the noise of the fits is the synthesizer's own.

    Raises:
        DataError: if there are too few rows.
    """
    if not isinstance(synthesizer, Synthesizer):
        raise ParameterTypeError("This is not a synthesizer.", fix="give for example cl.synth.SpanningTree(epsilon=1).")
    if synthesizer.unit != "row":
        raise ParameterError(
            "Rows are attacked, but the synthesizer protects persons with several rows.",
            fix='attack one with unit="row" on a table that has a row per person.',
        )
    opened = table if isinstance(table, Table) else open_table(table, schema=synthesizer.schema)
    shadows = run_shadows(
        synthesizer,
        opened,
        SeededRandomSource(random_state),
        records=check_count(records, name="records", at_least=2),
        fits=check_count(fits, name="fits", at_least=_FEWEST_FITS),
        tell=progress or no_progress,
    )
    return judge_shadows(shadows)


def judge_shadows(shadows: Shadows) -> Membership:
    """Return how well an attacker does who knows the other fits."""
    scores = likelihood_ratios(shadows)
    inside, outside = scores[shadows.inside], scores[~shadows.inside]
    curve = _rates(inside, outside)
    allowed = [pair for pair in curve if pair[0] <= FALSE_POSITIVE_RATE]
    reached = max(allowed, key=lambda pair: pair[1])
    return Membership(
        area=area(inside, outside),
        true_positive_rate=reached[1],
        false_positive_rate=FALSE_POSITIVE_RATE,
        ceiling=ceiling(shadows.guarantee, FALSE_POSITIVE_RATE),
        records=shadows.inside.shape[1],
        fits=len(shadows.inside),
        trials=(len(inside), len(outside)),
        curve=_thin_curve(curve),
        promise=shadows.guarantee,
        guarantee=NoGuarantee(reason=_REASON),
    )


def ceiling(guarantee: Guarantee, false_positive_rate: float) -> float | None:
    """Return the largest true positive rate that a promise allows; None if nothing is promised.

    >>> print(f"{ceiling(PureDP(epsilon=1), 0.01):.4f}")
    0.0272
    """
    if not isinstance(guarantee, PureDP | ApproxDP) or guarantee.adjacency is Adjacency.USER:
        return None
    delta = float(guarantee.delta) if isinstance(guarantee, ApproxDP) else 0.0
    rate = math.exp(min(float(guarantee.epsilon), 700.0)) * false_positive_rate + delta
    return min(1.0, rate)


def _apart(rate: float, trials: int) -> float:
    """Return five standard deviations of a rate."""
    return 5 * math.sqrt(rate * (1 - rate) / trials)


def likelihood_ratios(shadows: Shadows) -> Floats:
    """Return for each fit and target how much likelier what was seen is with the target in, by all other fits."""
    scores = np.zeros(shadows.inside.shape)
    for statistic in range(shadows.seen.shape[2]):
        seen = shadows.seen[:, :, statistic]
        for fit in range(len(seen)):
            others = np.arange(len(seen)) != fit
            scores[fit] += _ratio(seen[fit], seen[others], shadows.inside[others])
    return scores


def _ratio(seen: Floats, known: Floats, inside: NDArray[np.bool_]) -> Floats:
    """Return the logarithm of the ratio of two normal densities with a common spread, per target."""
    means, spread = [], np.zeros(len(seen))
    for part in (inside, ~inside):
        count = part.sum(axis=0)
        mean = np.where(part, known, 0).sum(axis=0) / np.maximum(count, 1)
        means.append((mean, count))
        spread += (np.where(part, known - mean, 0) ** 2).sum(axis=0)
    (first, ins), (second, outs) = means
    # Few fits say little about the spread of one target: half of it is that of all targets.
    each = spread / np.maximum(len(known) - 2, 1)
    common = np.maximum((each + each.mean()) / 2, _LEAST_SPREAD)
    ratio = ((seen - second) ** 2 - (seen - first) ** 2) / (2 * common)
    return np.where((ins > 0) & (outs > 0), ratio, 0.0)


def _rates(inside: Floats, outside: Floats) -> list[tuple[float, float]]:
    """Return the false and true positive rates of every threshold, from none to all."""
    thresholds = np.unique(np.concatenate([inside, outside]))[::-1]
    true = 1 - np.searchsorted(np.sort(inside), thresholds, side="left") / len(inside)
    false = 1 - np.searchsorted(np.sort(outside), thresholds, side="left") / len(outside)
    return [(0.0, 0.0), *zip(false.tolist(), true.tolist(), strict=True)]


def _thin_curve(curve: list[tuple[float, float]], most: int = 200) -> tuple[tuple[float, float], ...]:
    places = np.unique(np.linspace(0, len(curve) - 1, most).round().astype(int))
    return tuple(curve[place] for place in places)
