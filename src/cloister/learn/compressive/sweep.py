"""Settings of a projection compared: utility against the best attacker, on rows that were not used for choosing.

A part of the rows is held out first. On the others, every setting is fitted, used and attacked by cross-validation,
which gives means and deviations; a setting may be chosen by these. What it achieves is then read off the held-out part,
on which nothing was chosen. Nothing of this is a guarantee, and all figures come from the rows.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.core import validation
from cloister.core.guarantees import NoGuarantee
from cloister.core.random import RandomSource, RandomState, random_source
from cloister.core.result import Result
from cloister.core.whole_rows import Floats
from cloister.errors import ParameterError, PrivacyParameterWarning, UnsatisfiableError
from cloister.learn.compressive._attackers import RECONSTRUCTIONS
from cloister.learn.compressive._base import EMPIRICAL
from cloister.learn.compressive._labeled_rows import as_numbers, read_codes, stratified_folds
from cloister.learn.compressive.projection_audit import MEASURED, CompressiveAudit, compressive_audit, verdict_of

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = ["CompressiveSweep", "SweepPoint", "compressive_sweep"]

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """What one setting achieves.

    Attributes:
        settings: the parameters of the projection.
        utility: the accuracy of the utility task, averaged over folds.
        utility_deviation: how far folds differ from one another.
        minimum: the smallest normalized error of an attacker, averaged over folds.
        minimum_deviation: how far folds differ from one another.
        held_out_utility: the accuracy on the held-out rows.
        held_out_minimum: the smallest normalized error on the held-out rows.
    """

    settings: dict[str, Any]
    utility: float
    utility_deviation: float
    minimum: float
    minimum_deviation: float
    held_out_utility: float
    held_out_minimum: float

    @property
    def label(self) -> str:
        """Return the settings as text."""
        return ", ".join(f"{name}={value}" for name, value in self.settings.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressiveSweep(Result):
    """Settings with their utility and their best attacker. Not differential privacy, and no promise of any kind.

    Attributes:
        method: the class of the projection.
        points: one per setting, in the order of the grid.
    """

    schema: ClassVar[str] = "cloister.compressive_sweep/1"

    method: str
    points: tuple[SweepPoint, ...]

    @property
    def pareto(self) -> tuple[SweepPoint, ...]:
        """Return the points that no other beats in both respects, by increasing utility."""
        best = [point for point in self.points if not any(_beats(other, point) for other in self.points)]
        return tuple(sorted(best, key=lambda point: point.utility))

    @property
    def knee(self) -> SweepPoint:
        """Return the point of the front that is farthest above the line between its ends."""
        front = self.pareto
        ends = front[0], front[-1]
        across, down = ends[1].utility - ends[0].utility, ends[0].minimum - ends[1].minimum
        return max(
            front,
            key=lambda point: (
                down * (point.utility - ends[0].utility) + across * (point.minimum - ends[0].minimum),
                point.minimum,
            ),
        )

    def choose(self, *, utility: float | None = None, minimum: float | None = None) -> SweepPoint:
        """Return the first point, in the order of the grid, that satisfies both limits; the knee if there are none.

        Args:
            utility: the lowest accuracy of the utility task that will do.
            minimum: the smallest normalized error of the best attacker that will do.

        Raises:
            UnsatisfiableError: if no setting satisfies both.
        """
        if utility is None and minimum is None:
            return self.knee
        for point in self.points:
            if point.utility >= (utility or 0.0) and point.minimum >= (minimum or 0.0):
                return point
        raise UnsatisfiableError(
            "No setting of the sweep is useful enough and hides enough.",
            fix="ask for less utility or protection, or sweep over more settings.",
        )

    def __str__(self) -> str:
        knee = self.knee
        return (
            f"{len(self.points)} settings; knee {knee.label}: utility {knee.utility:.3f} ± {knee.utility_deviation:.3f}"
            f", smallest normalized error {knee.minimum:.2f} ± {knee.minimum_deviation:.2f}; no guarantee"
        )

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        rows = [(point.label, self._told(point)) for point in self.points]
        return (*rows, ("note", MEASURED), ("promise", self.guarantee.explain()))

    def _told(self, point: SweepPoint) -> str:
        use = f"utility {point.utility:.3f} ± {point.utility_deviation:.3f}"
        left = f"smallest normalized error {point.minimum:.2f} ± {point.minimum_deviation:.2f}"
        front = ", not beaten by another" if point in self.pareto else ""
        return f"{use}, {left} ({verdict_of(point.minimum)}){front}"

    def plot(self) -> Figure:
        """Return a chart of utility against what the best attacker still gets wrong, with the front as a line."""
        from cloister.plotting import lines

        beaten = [point for point in self.points if point not in self.pareto]
        series = {"not beaten by another": [(point.minimum, point.utility) for point in self.pareto]}
        for point in beaten[:7]:
            series[point.label] = [(point.minimum, point.utility)]
        return lines(
            series,
            title=f"Utility against the best attacker: {self.method}",
            x="smallest normalized error of an attacker (1: nothing is found)",
            y="accuracy of the utility task",
            legend="settings",
            subtitle="measured, not guaranteed",
        )

    def _fields(self) -> dict[str, Any]:
        front = self.pareto
        return {
            "method": self.method,
            "points": [{**asdict(point), "on_front": point in front} for point in self.points],
            "knee": self.knee.settings,
        }


def compressive_sweep(
    model: Any,
    grid: Mapping[str, Sequence[Any]],
    X: Any,
    y: Any,
    *,
    privacy: Any = None,
    folds: int = 3,
    attacks: Sequence[str] = RECONSTRUCTIONS,
    random_state: RandomState = None,
) -> CompressiveSweep:
    """Return what each setting of a projection achieves. It costs no budget and gives no guarantee.

    Args:
        model: a projection; copies of it are fitted.
        grid: the parameters to vary with their values, such as {"n_components": [2, 5, 9]}.
        X: rows.
        y: their utility labels.
        privacy: their privacy labels; an attacker guesses them.
        folds: into how many parts the rows are split, after as large a part was held out.
        attacks: which reconstructions to try.
        random_state: None; an integer is for tests.
    """
    rows = as_numbers(X, what="rows")
    codes, _ = read_codes(y, rows=len(rows), what="utility")
    hidden = None if privacy is None else read_codes(privacy, rows=len(rows), what="privacy")[0]
    if not grid or not all(len(values) for values in grid.values()):
        raise ParameterError("There is no setting to try.", fix='write for example grid={"n_components": [2, 5]}.')
    source = random_source(random_state)
    parts = validation.check_count(folds, name="folds", at_least=2)
    outer = stratified_folds(codes, parts + 1, source)[0]
    inner = [(outer[0][one], outer[0][other]) for one, other in stratified_folds(codes[outer[0]], parts, source)]
    data = _Data(rows, codes, hidden, tuple(attacks), source)
    settings = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    points = tuple(_point(model, setting, data, inner, outer) for setting in settings)
    return CompressiveSweep(guarantee=NoGuarantee(reason=EMPIRICAL), method=type(model).__name__, points=points)


@dataclass(frozen=True, slots=True, eq=False)
class _Data:
    rows: Floats
    codes: Codes
    hidden: Codes | None
    attacks: tuple[str, ...]
    source: RandomSource


def _point(
    model: Any, settings: dict[str, Any], data: _Data, inner: list[tuple[Codes, Codes]], outer: tuple[Codes, Codes]
) -> SweepPoint:
    found = [_audit_setting(model, settings, data, *split) for split in inner]
    utilities, minima = (np.array(column) for column in zip(*map(_figures, found), strict=True))
    held_out = _figures(_audit_setting(model, settings, data, *outer))
    return SweepPoint(
        settings=settings,
        utility=float(utilities.mean()),
        utility_deviation=float(utilities.std()),
        minimum=float(minima.mean()),
        minimum_deviation=float(minima.std()),
        held_out_utility=held_out[0],
        held_out_minimum=held_out[1],
    )


def _audit_setting(model: Any, settings: dict[str, Any], data: _Data, train: Codes, test: Codes) -> CompressiveAudit:
    from sklearn.base import clone

    labels = {} if data.hidden is None else {"privacy": data.hidden[train]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyParameterWarning)
        fitted = clone(model).set_params(**settings).fit(data.rows[train], data.codes[train], **labels)
    return compressive_audit(
        fitted,
        private=data.rows[test],
        public=data.rows[train],
        utility=(data.codes[test], data.codes[train]),
        privacy=None if data.hidden is None else (data.hidden[test], data.hidden[train]),
        attacks=data.attacks,
        random_state=data.source,
    )


def _figures(audit: CompressiveAudit) -> tuple[float, float]:
    return (audit.utility.accuracy if audit.utility is not None else 0.0), audit.minimum


def _beats(one: SweepPoint, other: SweepPoint) -> bool:
    at_least = one.utility >= other.utility and one.minimum >= other.minimum
    return at_least and (one.utility, one.minimum) != (other.utility, other.minimum)
