"""What can be seen of a release without an attack: columns that should not be there, and what the promise is worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cloister.accounting.conversions import zero_concentrated_to_epsilon
from cloister.anonymize import AnatomyRelease, Release
from cloister.anonymize.algorithms.anatomy import COUNT, GROUP
from cloister.attacks.gating.findings import Finding, Stand
from cloister.attacks.gating.policy import GatePolicy
from cloister.attacks.gating.subjects import ANONYMIZED, MODEL, SYNTHETIC, TWO_TABLES, Subject
from cloister.core.guarantees import ApproxDP, Guarantee, PureDP, ZeroConcentratedDP
from cloister.data.columns import Role
from cloister.data.table import Table

__all__ = ["screened"]

_NEARLY_UNIQUE = 0.9
_MISSING, _BETWEEN = "\x00", "\x1f"


def screened(subject: Subject, policy: GatePolicy) -> Iterator[Finding]:
    """Return what speaks for or against a release before anything is tried."""
    if subject.kind != MODEL:
        yield from _columns(subject)
        yield from _persons(subject)
        yield from _groups(subject)
    if subject.kind in (SYNTHETIC, MODEL):
        yield _promise(subject, policy)
    if subject.kind == SYNTHETIC:
        yield _copies(subject)
    if subject.kind == ANONYMIZED and not subject.sensitive:
        yield Finding(
            attack="sensitive columns",
            stand=Stand.TOLD,
            reason="No column is marked as sensitive, so nothing was tried on what classes give away.",
            is_needed=False,
        )


def _columns(subject: Subject) -> Iterator[Finding]:
    """Find columns that name people, or that nothing describes."""
    schema = subject.schema
    if isinstance(subject.release, Release | AnatomyRelease) or schema is None:
        return
    parts = subject.release if subject.kind == TWO_TABLES else (subject.release,)
    added = {GROUP, COUNT} if subject.kind == TWO_TABLES else set()
    released = [name for part in parts for name in part.columns if name not in added]
    names = {*schema.with_roles(Role.IDENTIFIER), *([schema.subject] if schema.subject else [])}
    naming = [name for name in released if name in names]
    unknown = [name for name in released if name not in schema]
    wrong = []
    if naming:
        wrong.append(f"The release shows {_listed(naming)}, which the schema says names people.")
    if unknown:
        wrong.append(f"The release shows {_listed(unknown)}, which the schema does not describe.")
    told = "No released column names people by the schema, and the schema describes all of them."
    yield Finding(attack="columns", stand=Stand.BROKEN if wrong else Stand.HELD, reason=" ".join(wrong) or told)


def _persons(subject: Subject) -> Iterator[Finding]:
    """Say that rows were taken for people where the schema says that a person may have several."""
    schema = subject.schema
    if schema is None or isinstance(subject.release, Release | AnatomyRelease):
        return
    named = [schema.subject] if schema.subject else _repeated(subject, schema.with_roles(Role.IDENTIFIER))
    if not named:
        return
    yield Finding(
        attack="rows of one person",
        stand=Stand.NOT_RUN,
        reason=f"By {_listed(named)} a person may have several rows, but these attacks take every row for a person: "
        "give the release itself (cl.attacks.gate(release)), or a table with one row per person.",
    )


def _repeated(subject: Subject, names: Sequence[str]) -> list[str]:
    """Return the columns that name people and name somebody twice."""
    found = [name for name in names if name in subject.original.columns]
    rows = subject.original.count()
    return [name for name in found if len(np.unique(_keys(subject.original, [name]))) < rows]


def _groups(subject: Subject) -> Iterator[Finding]:
    """Find groups of two tables that have one sensitive value."""
    if subject.kind != TWO_TABLES or isinstance(subject.release, AnatomyRelease):
        return
    second = subject.release[1].to_arrow()
    if GROUP not in second.column_names:
        return
    groups, counts = np.unique(second[GROUP].to_numpy(zero_copy_only=False), return_counts=True)
    alone = int((counts == 1).sum())
    told = f"{alone:,} of {len(groups):,} groups have one sensitive value only."
    yield Finding(attack="homogeneous groups", stand=Stand.BROKEN if alone else Stand.HELD, reason=told)


def _promise(subject: Subject, policy: GatePolicy) -> Finding:
    """Say what the promise is worth, and whether the decision rests on it alone."""
    said = subject.guarantee.brief()
    if not subject.is_private:
        return _unpromised(subject)
    if not _counts(subject.guarantee, policy) or not _is_for_people(subject):
        told = f"{said} is promised. What counts is epsilon up to {policy.max_epsilon:g} and delta up to "
        told += f"{policy.max_delta:g} for a row or a person: this does not."
        is_needed = subject.kind == SYNTHETIC
        return Finding(
            attack="promise", stand=Stand.BROKEN if is_needed else Stand.TOLD, reason=told, is_needed=is_needed
        )
    alone = subject.control is None
    rests = " Without rows that were held back the decision rests on this promise alone." if alone else ""
    return Finding(attack="promise", stand=Stand.HELD, reason=f"{said} is promised.{rests}")


def _unpromised(subject: Subject) -> Finding:
    if subject.control is not None:
        told = "No differential privacy is promised that holds; only attacks were tried."
        return Finding(attack="promise", stand=Stand.TOLD, reason=told, is_needed=False)
    missing = (
        "No differential privacy is promised that holds, and without rows that had no part in it (a control) nobody "
        "can tell what this table copies from what is common."
    )
    return Finding(attack="promise", stand=Stand.BROKEN, reason=missing)


def _counts(guarantee: Guarantee, policy: GatePolicy) -> bool:
    """Return whether a promise is one of epsilon and delta within the limits."""
    match guarantee:
        case PureDP():
            return guarantee.epsilon <= policy.max_epsilon
        case ApproxDP():
            return guarantee.epsilon <= policy.max_epsilon and guarantee.delta <= policy.max_delta
        case ZeroConcentratedDP():
            return zero_concentrated_to_epsilon(guarantee.rho, delta=Fraction(policy.max_delta)) <= policy.max_epsilon
        case _:
            return False


def _is_for_people(subject: Subject) -> bool:
    """Return whether the protected unit is a row, or what a column of the original names."""
    unit = getattr(subject.guarantee, "unit", "row")
    return unit == "row" or subject.kind == MODEL or unit in subject.original.columns


def _copies(subject: Subject) -> Finding:
    """Count the people whose row is like nobody else's and is in the synthetic table letter by letter.

    Where most rows are unique, no method whose promise is worth anything shows most of them as they are.
    """
    names = [name for name in subject.release.columns if name in subject.original.columns]
    keys, counts = np.unique(_keys(subject.original, names), return_counts=True)
    once = keys[counts == 1]
    shown = int(np.isin(once, _keys(subject.release, names)).sum())
    people = int(counts.sum())
    told = f"{len(once):,} of {people:,} people have a row of their own; {shown:,} of these rows are in the release."
    is_copied = len(once) > people / 2 and shown > len(once) / 2
    columns = [name for name in names if _is_copied(subject, name)]
    if columns:
        told += f" Most of the nearly unique values of {_listed(columns)} are in the release."
    return Finding(attack="copies", stand=Stand.BROKEN if is_copied or columns else Stand.HELD, reason=told)


def _is_copied(subject: Subject, name: str) -> bool:
    """Return whether nearly everybody has a value of their own in a column, and most of these are in the release."""
    keys, counts = np.unique(_keys(subject.original, [name]), return_counts=True)
    once = keys[counts == 1]
    if len(once) < _NEARLY_UNIQUE * counts.sum():
        return False
    return bool(np.isin(once, _keys(subject.release, [name])).mean() > 0.5)


def _keys(table: Table, names: list[str]) -> NDArray[np.object_]:
    """Return each row of some columns as one text."""
    rows = table.to_arrow().select(names)
    texts = [pc.fill_null(_text(rows[name]), _MISSING) for name in names]
    return np.asarray(pc.binary_join_element_wise(*texts, _BETWEEN).to_pylist(), dtype=object)


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    texts = column.cast(pa.string())
    return pc.replace_substring_regex(texts, r"\.0$", "") if pa.types.is_floating(column.type) else texts


def _listed(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
