"""Measuring a table: `cloister.assess` says what it gives away and, beside its original, what it is still good for.

One count of the quasi-identifiers and sensitive columns, made in the engine, is all that the risk needs. Nothing here
protects anything, and nothing here is private: results are for the custodian.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cloister.anonymize._report_words import model_name
from cloister.anonymize.cells import CodedCells, read_cells
from cloister.anonymize.comparison import compare_release, compare_tables
from cloister.anonymize.regions import Regions
from cloister.anonymize.release import Release
from cloister.anonymize.risk import table_classes
from cloister.anonymize.risk.attained_models import AskedModel, AttainedValues, measure_models
from cloister.anonymize.risk.disclosure_risk import Disclosure, Risk, measure_risk
from cloister.anonymize.risk.population import PopulationRisk
from cloister.anonymize.utility.measures import ReleaseUtility, measure_utility
from cloister.core.guarantees import Guarantee, NoGuarantee
from cloister.core.result import Result
from cloister.core.validation import check_count, check_probability
from cloister.core.wordings import format_count, percent
from cloister.data.columns import Role
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.errors import ParameterError, ParameterTypeError, SchemaError

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = ["Assessment", "assess"]


NOT_PROTECTED = NoGuarantee(reason="this table was measured, not protected")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment(Result):
    """What was measured about a table.

    Attributes:
        risk: what it gives away.
        utility: what it is still good for, if it was compared with its original.
        guarantee: the promise of the release that was measured, or that there is none.
        asked: the models that were asked about, and how well all classes satisfy them.
    """

    schema: ClassVar[str] = "cloister.assessment/1"

    risk: Risk
    utility: ReleaseUtility | None = None
    guarantee: Guarantee = NOT_PROTECTED
    asked: tuple[AskedModel, ...] = ()

    def __repr__(self) -> str:
        return f"Assessment({self})"

    def __str__(self) -> str:
        found = self.risk.reidentification
        text = (
            f"k = {self.risk.models.k}, {percent(found.unique_share)} of {found.rows:,} {self.risk.units} unique, "
            f"risk at most {percent(found.prosecutor_max)} and {percent(found.prosecutor_average)} on average"
        )
        return text if self.utility is None else f"{text}; {self.utility}"

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        found, models, units = self.risk.reidentification, self.risk.models, self.risk.units
        rows = [
            ("attacker knows", ", ".join(self.risk.quasi_identifiers)),
            (
                f"{units} and classes",
                f"{found.rows:,} {units} in {found.classes:,} classes, {self.risk.suppressed:,} suppressed",
            ),
            ("k-anonymity", _k_text(self.risk)),
            (f"unique {units}", f"{found.unique:,} ({percent(found.unique_share)})"),
            (f"{units} at risk", f"{percent(found.at_risk)} above a risk of {percent(found.threshold)}"),
            ("prosecutor", f"{percent(found.prosecutor_max)} at most, {percent(found.prosecutor_average)} on average"),
            ("journalist", _journalist_text(self.risk)),
            ("marketer", f"{percent(found.marketer)} of all {units} matched rightly"),
        ]
        if self.risk.population is not None:
            rows.append(("population", _population_text(self.risk.population)))
        for told, attained in zip(self.risk.disclosure, models.sensitive, strict=True):
            rows += _sensitive_rows(told, attained)
        rows += [(f"{model_name(item.model)}, {item.model.brief()}", str(item)) for item in self.asked]
        rows += [] if self.utility is None else list(self.utility.summary())
        return (*rows, ("promise", self.guarantee.explain()))

    def plot(self) -> Figure:
        """Return a chart of the risks."""
        from cloister.plotting import bars_with_errors

        found = self.risk.reidentification
        bars = {
            "highest risk": found.prosecutor_max,
            "average risk": found.prosecutor_average,
            f"rows above {percent(found.threshold)}": found.at_risk,
            "unique rows": found.unique_share,
            **{f"{told.attribute}: certain": told.homogeneous for told in self.risk.disclosure},
        }
        return bars_with_errors(
            list(bars),
            [100 * share for share in bars.values()],
            [None] * len(bars),
            title="What the table gives away",
            x="measure",
            y="%",
            subtitle=f"An attacker knows {', '.join(self.risk.quasi_identifiers)}",
        )

    def _fields(self) -> dict[str, Any]:
        return {
            "risk": self.risk.to_dict(),
            "utility": None if self.utility is None else self.utility.to_dict(),
            **({"asked": [item.to_dict() for item in self.asked]} if self.asked else {}),
        }


def _sensitive_rows(told: Disclosure, attained: AttainedValues) -> list[tuple[str, str]]:
    guess = f"right in {percent(told.posterior_average)} of rows (before: {percent(told.prior)})"
    models = (
        f"l = {attained.distinct} distinct, {attained.frequency:.3g} frequency, {attained.entropy:.3g} entropy; "
        f"t = {attained.equal:.3g}"
    )
    return [
        (told.attribute, f"certain for {percent(told.homogeneous)} of rows; the best guess is {guess}"),
        (
            f"{told.attribute}: models",
            models,
        ),
    ]


def _k_text(risk: Risk) -> str:
    models = risk.models
    text = format_count(models.k, "row")
    if models.k_persons is not None:
        text += f", {format_count(models.k_persons, 'person')}"
    if models.k_all_columns not in (None, models.k):
        text += f"; {models.k_all_columns:,} if all columns that are not sensitive are known"
    return text if models.k_map is None else f"{text}; {models.k_map:,} people of the population"


def _journalist_text(risk: Risk) -> str:
    found = risk.reidentification
    if found.journalist_average is None:
        return found.journalist_basis
    most = "" if found.journalist_max is None else f"{percent(found.journalist_max)} at most, "
    return f"{most}{percent(found.journalist_average)} on average ({found.journalist_basis})"


def _population_text(found: PopulationRisk) -> str:
    low, high = map(percent, found.interval)
    return (
        f"about {percent(found.uniqueness)} of {found.population:,} people unique "
        f"({percent(found.confidence)} interval {low} to {high}, {found.model})"
    )


_LARGEST_COMPARISON = 5 * 10**8
"""How many pairs of a label and a raw value of one column are held in memory."""

_USUAL_SIZE = 5
"""The class size that is asked about where nobody says one."""


def assess(
    table: Any,  # a Table, or a release, which knows its tables
    *,
    original: Table | None = None,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] | None = None,
    population: int | Table | None = None,
    target: str | None = None,
    threshold: float = 0.2,
    k: int | None = None,
    confidence: float = 0.95,
    models: Sequence[Any] = (),  # models, or their settings
) -> Assessment:
    """Measure what a table, or a release, gives away and what it is still good for.

    Args:
        table: an open table, raw or protected by any tool, or a release of `cloister.anonymize`.
        original: the table before it was protected; its schema says how labels are read.
        quasi_identifiers: what an attacker may know, where the schema does not say it.
        sensitive: what an attacker must not learn, where the schema does not say it.
        population: how many people the table was drawn from, or a table of them all.
        target: a column to be predicted from the quasi-identifiers, after training on the release and on the original;
            needs the original and the extra ``learn``.
        threshold: the risk above which a row counts as at risk.
        k: the class size to ask about; by default that which a release was asked for, else 5.
        confidence: the confidence of the interval of the estimate for the population.
        models: models, as `cloister.anonymize` takes them, of which to say whether every class satisfies them.

    Raises:
        SchemaError: if nothing says which columns are quasi-identifiers.
        DataError: if the table has no rows.
    """
    opened, release = _unpack_release(table)
    size = _find_asked_size(release) if k is None else check_count(k, name="k", at_least=1)
    if not isinstance(original, Table | None):
        raise ParameterTypeError(
            f"The original is not an open table but of type {type(original).__name__}.",
            fix="open it first: original=cloister.open_table(..., schema=...).",
        )
    before = release.original if release is not None and original is None else original
    schema = _describe_schema(opened, release, before, quasi_identifiers, sensitive)
    cells = table_classes.read_released(opened, schema)
    kept = table_classes.find_kept_cells(cells) if release is None else np.ones(len(cells), dtype=bool)
    classes = table_classes.classes_per_cell(cells, kept)
    asked = measure_models(classes, models, subject=None if cells.record_subjects is None else schema.subject)
    fitting = None
    if isinstance(population, Table):
        fitting = table_classes.fitting_people(population, schema, cells, kept)
    risk = measure_risk(
        classes,
        codes=cells.codes[kept],
        unit="row" if cells.record_subjects is None else str(schema.subject),
        suppressed=int(cells.weights[~kept].sum()) if release is None else release.suppressed,
        population_size=None if population is None or fitting is not None else _size(population),
        fitting=fitting,
        k_all_columns=table_classes.k_of_all_columns(opened, schema, k=int(classes.rows.min())),
        threshold=float(check_probability(threshold, name="threshold")),
        k=size,
        confidence=confidence,
    )
    # A release may have dropped the column that names persons; its classes still know them.
    if release is not None and release.partition.cells.record_subjects is not None:
        persons = int(release.classes.persons.min())
        risk = replace(risk, models=replace(risk.models, k_persons=persons))
    utility = None
    if release is not None and original is None and not _is_comparable(release.regions):
        before = None
    if before is not None:
        if release is not None and original is None:
            comparison = compare_release(release.regions, cells, kept)
        else:
            comparison = compare_tables(opened, cells, kept, original=before, schema=schema)
        targets = None if target is None else _count_targets(before, schema, target)
        utility = measure_utility(comparison, k=risk.models.k, targets=targets)
    elif target is not None:
        raise ParameterError("A target is learned from the original too.", fix="give original=..., or drop the target.")
    return Assessment(
        risk=risk,
        utility=utility,
        guarantee=NOT_PROTECTED if release is None else release.guarantee,
        asked=asked,
    )


def _is_comparable(regions: Regions) -> bool:
    """Return whether labels and raw values are few enough to be held against each other."""
    sizes = [len(attribute.leaves) for attribute in regions.partition.cells.attributes]
    return max(sizes) * min(max(sizes), regions.partition.size) <= _LARGEST_COMPARISON


def _count_targets(original: Table, schema: Schema, target: str) -> CodedCells:
    quasi = schema.with_roles(Role.QUASI)
    if target in quasi:
        raise ParameterError(
            f'"{target}" is a quasi-identifier, from which the target is predicted.',
            fix="choose a column that is not a quasi-identifier.",
        )
    return read_cells(original, schema, quasi=quasi, sensitive=[target])


def _find_asked_size(release: Release | None) -> int:
    """Return the largest k that a release was asked for, or what is usual."""
    models = () if release is None else [check.model for check in release.checks if not check.needs_population]
    return max((model.k for model in models if hasattr(model, "k")), default=_USUAL_SIZE)


def _unpack_release(table: Any) -> tuple[Table, Release | None]:
    if isinstance(table, Release):
        return table.table, table
    if isinstance(table, Table):
        return table, None
    raise ParameterTypeError(
        f"This is neither an open table nor a release but of type {type(table).__name__}.",
        fix="open it first: assess(cloister.open_table(...)).",
    )


def _describe_schema(
    table: Table,
    release: Release | None,
    original: Table | None,
    quasi: Sequence[str] | None,
    sensitive: Sequence[str] | None,
) -> Schema:
    stated = table.schema
    if original is not None and original.schema is not None:
        stated = original.schema
    if release is not None:
        stated = release.roles.schema
    schema = table_classes.apply_roles(table, stated, quasi=quasi, sensitive=sensitive)
    if not schema.with_roles(Role.QUASI):
        raise SchemaError(
            "No column is a quasi-identifier, so nothing is known that could be linked.",
            fix='name what an attacker may know: assess(table, quasi_identifiers=["age", "zip"]).',
        )
    return schema


def _size(population: Any) -> int:
    return check_count(population, name="population", at_least=1)
