"""The risk-utility frontier: what each further bit of protection costs, for several algorithms at once.

Every point is a release that satisfies its models; nothing is recoded until the custodian picks one. Choosing a point
by looking at these numbers uses the protected data: keep the chart with the custodian, publish the release.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from cloister.anonymize.algorithms._base import Progress, no_progress
from cloister.anonymize.anonymization import anonymize
from cloister.anonymize.release import Release
from cloister.core.exact import Number
from cloister.core.guarantees import Guarantee, KAnonymity, LDiversity, TCloseness
from cloister.core.validation import check_probability
from cloister.core.wordings import percent
from cloister.data.table import Table
from cloister.errors import ParameterError, UnsatisfiableError
from cloister.plotting import Figure, lines

__all__ = ["Frontier", "Point", "frontier"]

DEFAULT_ALGORITHMS = ("optimal", "mondrian", "clustering")


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """One choice: an algorithm and its models, with what remains at risk and what is lost."""

    algorithm: str
    models: tuple[Guarantee, ...]
    release: Release = field(repr=False)

    @property
    def risk(self) -> float:
        """Return the highest probability with which anybody could be picked out: one over the smallest class."""
        return float(1 / self.release.classes.persons.min())

    @property
    def loss(self) -> float:
        """Return the mean loss of precision (NCP), suppressed rows counting 1."""
        return self.release.regions.loss()

    @property
    def suppressed(self) -> float:
        """Return the share of rows that are left out."""
        return self.release.suppressed / self.release.partition.cells.total

    @property
    def label(self) -> str:
        """Return the models in short."""
        return ", ".join(model.brief().removesuffix(f" per {model.unit}") for model in self.models)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "algorithm": self.algorithm,
            "models": [model.to_dict() for model in self.models],
            "risk": self.risk,
            "loss": self.loss,
            "suppressed": self.suppressed,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Frontier:
    """The points of a sweep, those that no release can satisfy aside.

    Attributes:
        points: every release that was found.
        impossible: what could not be satisfied, in words.
    """

    points: tuple[Point, ...]
    impossible: tuple[str, ...] = ()

    @property
    def best(self) -> tuple[Point, ...]:
        """Return the points that no other beats in both risk and loss, from most to least protected."""
        ordered = sorted(self.points, key=lambda point: (point.risk, point.loss))
        kept: list[Point] = []
        for point in ordered:
            # By ascending risk, a point is beaten unless it loses less than all before it.
            if not kept or point.loss < kept[-1].loss:
                kept.append(point)
        return tuple(kept)

    def pick(self, *, risk: float) -> Release:
        """Return the release with the least loss among those whose highest risk is at most a number.

        Raises:
            ParameterError: if no point is that safe.
        """
        check_probability(risk, name="risk")
        safe = [point for point in self.points if point.risk <= risk]
        if not safe:
            raise ParameterError(
                f"No point of the sweep has a risk of at most {risk:g}.",
                fix="sweep larger k, or allow more suppression.",
            )
        return min(safe, key=lambda point: point.loss).release

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return one row per point: what it is, and its risk and loss."""
        best = set(map(id, self.best))
        return tuple(
            (
                f"{point.algorithm}, {point.label}",
                f"highest risk {point.risk:.3f}, loss {point.loss:.4f}, suppressed {percent(point.suppressed)}"
                + (" (on the frontier)" if id(point) in best else ""),
            )
            for point in self.points
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "schema": "cloister.frontier/1",
            "points": [point.to_dict() for point in self.points],
            "impossible": list(self.impossible),
        }

    def plot(self) -> Figure:
        """Return the curve of each algorithm: less risk to the left, less loss at the bottom."""
        series: dict[str, list[tuple[float, float]]] = {}
        for point in sorted(self.points, key=lambda point: (point.risk, point.loss)):
            series.setdefault(point.algorithm, []).append((point.risk, point.loss))
        return lines(
            series,
            title="What protection costs",
            subtitle="every point is a release; lower left is better",
            x="highest risk of being picked out",
            y="loss of precision (NCP)",
            legend="algorithm",
            log_x=True,
        )

    def __str__(self) -> str:
        return f"{len(self.points)} releases, {len(self.best)} of them on the frontier"


def frontier(
    table: Table,
    *,
    k: int | Iterable[int] = (2, 3, 5, 11, 25, 50),
    l: Number | Sequence[Number] = (),  # noqa: E741  # the literature's name
    t: Number | Sequence[Number] = (),
    attribute: str | Sequence[str] | None = None,
    l_kind: str = "entropy",
    t_kind: str = "equal",
    c: Number | None = None,
    algorithms: str | Sequence[str] = DEFAULT_ALGORITHMS,
    progress: Progress | None = None,
    **options: Any,
) -> Frontier:
    """Return releases for all combinations of k, l, t and algorithms, with their risk and loss.

    Args:
        table: the table with its schema.
        k: the class sizes to try.
        l: the l of l-diversity to try, if any.
        t: the t of t-closeness to try, if any.
        attribute: the sensitive column, or columns, that l and t are about.
        l_kind: the kind of l-diversity, as in `LDiversity`.
        t_kind: the kind of t-closeness, as in `TCloseness`.
        c: the factor of recursive l-diversity.
        algorithms: the algorithms to compare.
        progress: called with the share that is done and what is being done.
        options: what `anonymize` understands, such as ``suppression_limit``.
    """
    sizes, diversities, closenesses, names = _several(k), _several(l), _several(t), _several(algorithms)
    if (diversities or closenesses) and attribute is None:
        raise ParameterError("l and t are about a sensitive column.", fix='name it: attribute="disease".')
    if "anatomy" in names:
        raise ParameterError(
            "Anatomy gives two tables, whose risk and loss are of another kind.", fix="leave anatomy out of the sweep."
        )
    tell, columns = progress or no_progress, () if attribute is None else _several(attribute)
    kinds: dict[str, dict[str, Any]] = {"l": {"kind": l_kind, "c": c}, "t": {"kind": t_kind}}
    choices = list(itertools.product(names, sizes, diversities or (None,), closenesses or (None,)))
    if not choices:
        raise ParameterError("There is nothing to sweep.", fix="give at least one k and one algorithm.")
    points, impossible = [], []
    for number, (algorithm, size, diversity, closeness) in enumerate(choices):
        models = (KAnonymity(k=size), *_about(columns, diversity, closeness, kinds))
        tell(number / len(choices), f"{algorithm}, k = {size}")
        try:
            release = cast("Release", anonymize(table, models=models, algorithm=algorithm, **options))
        except UnsatisfiableError as error:
            impossible.append(f"{algorithm}, {', '.join(model.brief() for model in models)}: {error.problem}")
        else:
            points.append(Point(algorithm, models, release))
    tell(1.0, "done")
    if not points:
        raise UnsatisfiableError(impossible[0], fix="sweep weaker models, or allow suppression.")
    return Frontier(tuple(points), tuple(impossible))


def _several(given: Any) -> tuple[Any, ...]:
    """Return what was given as a tuple, also if it is one number or one name."""
    return tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)


def _about(
    columns: Sequence[str], diversity: Number | None, closeness: Number | None, kinds: Mapping[str, Mapping[str, Any]]
) -> Iterator[Guarantee]:
    """Return the models of each sensitive column."""
    for name in columns:
        if diversity is not None:
            yield LDiversity(name, l=diversity, **kinds["l"])
        if closeness is not None:
            yield TCloseness(name, t=closeness, **kinds["t"])
