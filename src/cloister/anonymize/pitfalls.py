"""What goes wrong with releases that satisfy their models: the advice that comes with each release it applies to.

The list follows the literature on attacks against syntactic releases: background knowledge and homogeneity
(Machanavajjhala et al. 2007), similarity and skewness (Li et al. 2007), intersection of releases (Ganta et al. 2008),
minimality (Wong et al. 2007), the curse of dimensionality (Aggarwal 2005).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cloister.anonymize.attributes import CodedAttribute
from cloister.data.columns import Column, Kind, Missing

if TYPE_CHECKING:
    from cloister.anonymize.release import Release

__all__ = ["Pitfall", "find_pitfalls"]

MANY_COLUMNS = 8
USUAL_K, PUBLIC_K = 5, 11
MOSTLY = 3
"""A column has mostly different values from one for every three rows."""


@dataclass(frozen=True, slots=True)
class Pitfall:
    """One thing that a release may still give away, and what to do about it. It names columns, never values."""

    code: str
    sentence: str
    advice: str

    def __str__(self) -> str:
        return f"{self.sentence} {self.advice}"

    def to_dict(self) -> dict[str, str]:
        """Return JSON-ready values."""
        return {"code": self.code, "sentence": self.sentence, "advice": self.advice}


def find_pitfalls(release: Release) -> tuple[Pitfall, ...]:
    """Return every warning that applies to a release, the gravest kinds first."""
    return tuple(found for look in _LOOKS for found in look(release))


def silence(names: Sequence[str]) -> str:
    """Return the sentence about columns that say nothing any more; empty if there are none."""
    if not names:
        return ""
    return f"{_list(tuple(names))} {_verb(names, 'says', 'say')} nothing any more: every released row shows *."


def _silent(release: Release) -> Iterator[Pitfall]:
    names = release.silent_columns
    if names:
        yield Pitfall(
            "silent_columns",
            silence(names),
            "Leave the algorithm to the library, allow some rows to be left out, give hierarchies more levels, "
            "or release fewer columns.",
        )


def _sensitive_without_model(release: Release) -> Iterator[Pitfall]:
    covered = {check.attribute for check in release.checks}
    names = [name for name in release.roles.sensitive if name not in covered]
    if names:
        yield Pitfall(
            "attribute_disclosure",
            f"No model protects {_list(names)}: where all rows of a class share a value, it is disclosed.",
            "Add l-diversity or t-closeness for each sensitive column.",
        )


def _free_text(release: Release) -> Iterator[Pitfall]:
    names = [column.name for column in _columns_released(release) if column.kind is Kind.TEXT]
    if names:
        yield Pitfall(
            "free_text",
            f"{_list(names)} {_verb(names, 'holds', 'hold')} free text, which may name people, places and dates.",
            f"Drop {_verb(names, 'it', 'them')}, or have {_verb(names, 'it', 'them')} cleaned by a person.",
        )


def _long_lists(release: Release) -> Iterator[Pitfall]:
    """Warn of columns, such as texts and days written as text, that are mostly different values without order."""
    cells = release.partition.cells
    names = [
        attribute.name
        for attribute in cells.attributes
        if not (attribute.has_hierarchy or attribute.is_ordered) and len(attribute.leaves) * MOSTLY > cells.total
    ]
    if names:
        yield Pitfall(
            "listed_values",
            f"{_list(names)} {_verb(names, 'has', 'have')} mostly different values and no hierarchy, "
            "so that values can only be listed or not shown at all.",
            "Give each a hierarchy, or leave it out; days are written 2026-12-31 and read as dates.",
        )


def _columns_without_schema(release: Release) -> Iterator[Pitfall]:
    described = release.original.schema or {}
    names = [name for name in release.roles.identifiers if name not in described]
    if names:
        yield Pitfall(
            "undescribed_columns",
            f"{_list(names)} {_verb(names, 'was', 'were')} left out, because nobody has said what "
            f"{_verb(names, 'it gives', 'they give')} away.",
            f"Describe {_verb(names, 'it', 'them')} in a schema to release them.",
        )


def _insensitive(release: Release) -> Iterator[Pitfall]:
    names = release.roles.insensitive
    if names:
        yield Pitfall(
            "insensitive_columns",
            f"{_list(names)} {_verb(names, 'is released as it is', 'are released as they are')} "
            "and not counted in any class.",
            "A column is insensitive only if nobody can know it from elsewhere; otherwise make it a quasi-identifier.",
        )


def _rows_not_persons(release: Release) -> Iterator[Pitfall]:
    if release.roles.subject is None:
        yield Pitfall(
            "rows_not_persons",
            "Classes were counted in rows: a person with several rows makes a class look larger than it is.",
            'If a person may have several rows, mark the column that names them: "subject: true" in the file '
            'of the schema, or schema.with_subject("patient_id").',
        )


def _rows_behind_values(release: Release) -> Iterator[Pitfall]:
    names, cells = _names_with_model(release), release.partition.cells
    persons = cells.record_subjects
    has_single_rows = persons is not None and len(np.unique(persons)) == cells.total
    if release.roles.subject is not None and names and not has_single_rows:
        yield Pitfall(
            "values_of_rows",
            f"The models for {_list(names)} count rows: several rows of one person make values look more varied.",
            "Keep one row per person, or ask for a larger l or a smaller t.",
        )


def _missing_sensitive(release: Release) -> Iterator[Pitfall]:
    held = {item.name: item.values for item in release.partition.cells.sensitive}
    names = [name for name in _names_with_model(release) if None in held[name]]
    if names:
        yield Pitfall(
            "missing_sensitive",
            f"Missing cells of {_list(names)} count as a value of their own, which tells nothing about a person.",
            "Leave such rows out first, or ask for an l that is larger by one.",
        )


def _names_with_model(release: Release) -> list[str]:
    return [name for name in release.roles.sensitive if any(check.attribute == name for check in release.checks)]


def _exact_days(release: Release) -> Iterator[Pitfall]:
    exact = _exact_quasi(release)
    names = [
        column.name
        for column in _columns_released(release)
        if column.kind is Kind.DATETIME and (column.name in exact or column.name not in release.roles.quasi)
    ]
    if names:
        yield Pitfall(
            "exact_dates",
            f"{_list(names)} {_verb(names, 'holds', 'hold')} dates to the day, "
            "which single people out and link tables.",
            "Generalize the dates to months or years, or shift them per person.",
        )


def _extremes(release: Release) -> Iterator[Pitfall]:
    names = [
        column.name
        for column in _columns_released(release)
        if column.kind is Kind.NUMERIC and column.name not in release.roles.quasi
    ]
    if names:
        yield Pitfall(
            "outliers",
            f"{_list(names)} {_verb(names, 'holds', 'hold')} exact numbers, "
            "whose extremes may belong to well-known people.",
            "Top- and bottom-code or round the numbers.",
        )


def _stars(release: Release) -> Iterator[Pitfall]:
    regions = release.regions
    if release.partition.size > 1 and (regions.losses >= 1).all(axis=1).any():
        yield Pitfall(
            "star_class",
            "One class shows * in every quasi-identifier: whoever is in it differs from everybody else.",
            "Consider leaving that class out.",
        )


def _small_k(release: Release) -> Iterator[Pitfall]:
    k = max((int(getattr(check.model, "k", 1)) for check in release.checks), default=1)
    if k < USUAL_K:
        yield Pitfall("small_k", f"k = {k} is below the usual {USUAL_K}.", f"Use k = {USUAL_K} or more.")
    elif k < PUBLIC_K:
        yield Pitfall(
            "small_k",
            f"k = {k} is usual between institutions; for a release to the public {PUBLIC_K} is the usual minimum.",
            f"Use k = {PUBLIC_K} if anybody may download the table.",
        )


def _many_columns(release: Release) -> Iterator[Pitfall]:
    count = len(release.roles.quasi)
    if count > MANY_COLUMNS:
        yield Pitfall(
            "many_quasi_identifiers",
            f"With {count} quasi-identifiers nearly every row is unique, and protecting them costs much detail.",
            "Release fewer columns, or use private queries or synthetic data.",
        )


def _leaky_hierarchies(release: Release) -> Iterator[Pitfall]:
    names = [attribute.name for attribute in release.partition.cells.attributes if _has_renamed_leaf(attribute)]
    if names:
        yield Pitfall(
            "leaky_hierarchy",
            f"In the hierarchies of {_list(names)} some names above the values stand for one value only.",
            "Give such a name more values: as it is, it generalizes nothing.",
        )


def _missing(release: Release) -> Iterator[Pitfall]:
    names = [column.name for column in _quasi(release) if column.missing is Missing.MATCHES_ANY]
    if names:
        yield Pitfall(
            "missing_values",
            f"The schema lets missing values of {_list(names)} match anything; here they are a value of their own.",
            "Nothing needs to be done: this is the stronger reading.",
        )


def _guesses(release: Release) -> Iterator[Pitfall]:
    names = [column.name for column in release.roles.schema.columns.values() if "role" in column.guessed]
    if names:
        yield Pitfall(
            "guessed_roles",
            f"The roles of {_list(names)} were guessed and not confirmed by a person.",
            "Check the schema, then delete its guessed lines or call schema.confirm().",
        )


def _untruthful(release: Release) -> Iterator[Pitfall]:
    if release.regions.values == "centers":
        yield Pitfall(
            "centers",
            "Quasi-identifiers are shown as centers of their class: no single row is true.",
            "Say so wherever the table goes.",
        )


def _later_releases(release: Release) -> Iterator[Pitfall]:
    del release
    yield Pitfall(
        "later_releases",
        "Another release of the same people, now or later, can be intersected with this one.",
        "Keep a list of what was released, and release changed data only with the same classes.",
    )


def _minimality(release: Release) -> Iterator[Pitfall]:
    if any(check.attribute is not None for check in release.checks):
        yield Pitfall(
            "minimality",
            "Whoever knows that classes were merged no further than needed may infer why they were merged.",
            "Do not publish raw class statistics beside the table, and prefer frequency l-diversity with a margin.",
        )


_LOOKS: tuple[Callable[[Release], Iterator[Pitfall]], ...] = (
    _silent,
    _sensitive_without_model,
    _insensitive,
    _free_text,
    _long_lists,
    _rows_not_persons,
    _rows_behind_values,
    _missing_sensitive,
    _exact_days,
    _extremes,
    _guesses,
    _columns_without_schema,
    _stars,
    _small_k,
    _many_columns,
    _leaky_hierarchies,
    _missing,
    _untruthful,
    _minimality,
    _later_releases,
)


def _columns_released(release: Release) -> list[Column]:
    schema = release.roles.schema
    return [schema[name] for name in schema if name not in release.roles.identifiers]


def _quasi(release: Release) -> list[Column]:
    return [release.roles.schema[name] for name in release.roles.quasi]


def _exact_quasi(release: Release) -> set[str]:
    """Return the quasi-identifiers that some class shows as they are."""
    names = release.partition.cells.names
    exact = (release.regions.losses == 0).any(axis=0)
    return {name for name, is_exact in zip(names, exact, strict=True) if is_exact}


def _has_renamed_leaf(attribute: CodedAttribute) -> bool:
    """Return whether a name between leaves and root stands for one leaf that is called otherwise."""
    for level in range(1, attribute.height):
        for node in np.flatnonzero(attribute.leaf_counts[level] == 1):
            leaf = int(np.argmax(attribute.ancestors[level] == node))
            name = attribute.labels[level][node]
            if name is not None and name != attribute.labels[0][leaf]:
                return True
    return False


def _verb(names: Sequence[str], one: str, many: str) -> str:
    return one if len(names) == 1 else many


def _list(names: list[str] | tuple[str, ...]) -> str:
    shown = [f'"{name}"' for name in names[:MANY_COLUMNS]]
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest > 0 else "")
