"""Anatomy: two tables instead of one, exact quasi-identifiers with a group number, and sensitive values by group.

Anatomy (Xiao and Tao 2006): while l sensitive values have rows left, the l most frequent of them give one random row
each to a new group; each of the fewer than l rows that remain joins a random group without its value. Every group then
has at least l rows, all with different values, so each row's value is one of l or more that look equally likely. The
release is checked group by group, and its report says in which two ways the promise is less than it seems.

What it does not promise. Quasi-identifiers are exact, so whoever knows a person's sees that the person is in the table.
One in l is a bound for an adversary who looks at one group by itself; learning how quasi-identifiers and values go
together over all groups (an EM or deFinetti attack, Kifer 2009) does better.

Rows are chosen, groups numbered and rows ordered at random, from the operating system by default, so that no position
tells which value a row had. Values that are equally frequent take turns at random as well, so that their names decide
nothing. In a fixed order the same values would meet in most groups; on Adult the EM attack then loses 1 to 5 points and
is still far above one in l.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cloister.anonymize._roles import Roles
from cloister.anonymize.models import ModelCheck, settings_of
from cloister.core.guarantees import Caveat, LDiversity
from cloister.core.provenance import TWO_TABLES
from cloister.core.random import RandomSource, RandomState, caveats_of, integers_below, permutation, random_source
from cloister.core.result import Result
from cloister.core.validation import check_count
from cloister.crypto.certificates import certify
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import DataError, InternalError, ParameterError, UnknownColumnError, UnsatisfiableError
from cloister.report import (
    Bullets,
    Facts,
    KeyFigure,
    Notice,
    NoticeKind,
    Report,
    Section,
    Status,
    Text,
    Verdict,
    escape_text,
)

if TYPE_CHECKING:
    from cloister.crypto.signatures import SigningKey

__all__ = [
    "ANATOMY",
    "COUNT",
    "GROUP",
    "AnatomyRelease",
    "AnatomyTables",
    "anatomize",
    "encode_values",
    "report_of_anatomy",
]


Counts: TypeAlias = NDArray[np.int64]
GROUP, COUNT = "GroupID", "Count"
ANATOMY = Caveat(
    "anatomy",
    "exact quasi-identifiers show who is in the table, and learning over all groups (EM and deFinetti attacks) finds "
    "sensitive values more often than one time in l",
    breaks=False,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class AnatomyTables:
    """The two tables that are released in place of one.

    Attributes:
        quasi: the quasi-identifiers and the group of each row, in random order.
        sensitive: how often each sensitive value occurs in each group, by group and value.
        attribute: the sensitive column.
        groups: the number of groups.
        positions: where each row of ``quasi`` was in the custodian's table; never released.
    """

    quasi: pa.Table
    sensitive: pa.Table
    attribute: str
    groups: int
    positions: Counts | None = None

    def __repr__(self) -> str:
        return f"AnatomyTables({self.quasi.column_names}, sensitive={self.attribute!r})"

    @cached_property
    def sizes(self) -> Counts:
        """Return the rows of each group."""
        return np.bincount(self._group_of_row, minlength=self.groups)

    @cached_property
    def _group_of_row(self) -> Counts:
        return self.quasi[GROUP].to_numpy()  # type: ignore[no-any-return]  # pyarrow is untyped

    def estimate_count(self, condition: pc.Expression | NDArray[np.bool_], value: Any) -> float:
        """Return about how many rows satisfy a condition on quasi-identifiers and have a sensitive value.

        In each group the matching rows count as much as the value's share of the group.

        Args:
            condition: an Arrow expression such as ``pc.field("age") > 50``, or a truth for each row of ``quasi``.
            value: the sensitive value; None for a missing one.
        """
        rows = self.quasi.append_column("", pa.array(np.arange(len(self.quasi))))
        mask = condition if isinstance(condition, pc.Expression) else pa.array(np.asarray(condition, dtype=bool))
        chosen = self._group_of_row[rows.filter(mask)[""].to_numpy()]
        column = self.sensitive[self.attribute]
        same = pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, value), fill_value=False)
        found = self.sensitive.filter(same)
        share = np.zeros(self.groups)
        share[found[GROUP].to_numpy()] = found[COUNT].to_numpy()
        return float((share / self.sizes)[chosen].sum())


def anatomize(
    table: pa.Table,
    *,
    quasi: Sequence[str],
    sensitive: str,
    l: int,  # noqa: E741  # the literature's name
    random_state: RandomState = None,
) -> AnatomyTables:
    """Return a table taken apart into groups of at least l rows with different sensitive values.

    Args:
        table: the rows.
        quasi: the columns that are released as they are.
        sensitive: the column whose link to them is broken.
        l: how many different values each group has at least.
        random_state: None for the operating system; an integer is for tests only.

    Raises:
        DataError: if there are no rows.
        UnsatisfiableError: if one value has more than one in l of the rows.
    """
    wanted = check_count(l, name="l", at_least=1)
    for name in (*quasi, sensitive):
        if name not in table.column_names:
            raise UnknownColumnError(name, table.column_names)
    for name in (GROUP, COUNT):
        if name in (*quasi, sensitive):
            raise ParameterError(f'A column is named "{name}", as one that is added.', fix="rename the column.")
    source = random_source(random_state)
    codes, values = encode_values(table[sensitive])
    counts = np.bincount(codes, minlength=len(values))
    _check_eligible(counts, wanted, sensitive)
    groups = _assign_groups(codes, counts, wanted, source)
    number = int(groups.max()) + 1
    # The order in which groups were made tells which values are frequent.
    groups = permutation(source, number)[groups]
    order = permutation(source, len(groups))
    return AnatomyTables(
        quasi=table.select(list(quasi)).append_column(GROUP, pa.array(groups)).take(pa.array(order)),
        sensitive=_sensitive(codes, values, groups, sensitive),
        attribute=sensitive,
        groups=number,
        positions=order,
    )


def encode_values(column: pa.ChunkedArray) -> tuple[Counts, pa.Array]:
    """Return the code of each row, and the values in order; a missing value is one of them, the last."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[encoded.indices.to_numpy()], encoded.dictionary.take(pa.array(order))


def _check_eligible(counts: Counts, wanted: int, sensitive: str) -> None:
    total, most = int(counts.sum()), int(counts.max(initial=0))
    if not total:
        raise DataError("The table has no rows.", fix="open a table with data.")
    if most * wanted <= total:
        return
    raise UnsatisfiableError(
        f'A value of "{sensitive}" is too frequent for groups of {wanted} different values.',
        fix=f"use l <= {total // most}, or group rare values and leave out the frequent one.",
    )


def _assign_groups(codes: Counts, counts: Counts, wanted: int, source: RandomSource) -> Counts:
    """Return the group of each row."""
    runs, left = _runs(counts, wanted, source)
    # Which rows of a value go to which group must not depend on their places in the table.
    shuffled = permutation(source, len(codes))
    rows = shuffled[np.argsort(codes[shuffled], kind="stable")]
    buckets = np.repeat(np.array([chosen for chosen, _ in runs]), [length for _, length in runs], axis=0)
    number = np.repeat(np.arange(len(buckets)), wanted)
    # Places sorted by value meet rows sorted by value: one assignment fills all groups.
    order = np.argsort(buckets.ravel(), kind="stable")
    taken = counts - left
    groups = np.full(len(codes), -1)
    used = _within(counts) < np.repeat(taken, counts)
    groups[rows[used]] = number[order]
    _place_rest(groups, codes, rows[~used], len(buckets), source)
    return groups


def _runs(counts: Counts, wanted: int, source: RandomSource) -> tuple[list[tuple[tuple[int, ...], int]], Counts]:
    """Return which values the groups take, as runs of equal groups, and how many rows of each value are left over.

    Values that are equally frequent take turns at random, so that no spelling decides which ones go together.
    """
    turn = _turns(source)
    heap = [(-int(count), next(turn), code) for code, count in enumerate(counts) if count]
    heapq.heapify(heap)
    runs = []
    while len(heap) >= wanted:
        chosen = [heapq.heappop(heap) for _ in range(wanted)]
        # The same values stay the most frequent until the least of them falls below the next: so many groups are
        # alike.
        below = -heap[0][0] if heap else 0
        length = max(-chosen[-1][0] - below, 1)
        runs.append((tuple(code for _, _, code in chosen), length))
        for count, _, code in chosen:
            if count + length:
                heapq.heappush(heap, (count + length, next(turn), code))
    left = np.zeros(len(counts), np.int64)
    for count, _, code in heap:
        left[code] = -count
    return runs, left


def _turns(source: RandomSource) -> Iterator[int]:
    while True:
        yield from source.words(1024).tolist()


def _within(counts: Counts) -> Counts:
    """Return the place of each row in its bucket."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _place_rest(groups: Counts, codes: Counts, rest: Counts, size: int, source: RandomSource) -> None:
    """Put each remaining row into a random one of the smallest groups without its value."""
    for row in rest:
        placed = groups >= 0
        has_value = np.bincount(groups[placed & (codes == codes[row])], minlength=size) > 0
        # A group that has the value already looks larger than the table, and is never the smallest.
        sizes = np.where(has_value, len(groups), np.bincount(groups[placed], minlength=size))
        fitting = np.flatnonzero(sizes == sizes.min())
        groups[row] = fitting[integers_below(source, len(fitting), 1)[0]]


def _sensitive(codes: Counts, values: pa.Array, groups: Counts, name: str) -> pa.Table:
    keys, counts = np.unique(groups * len(values) + codes, return_counts=True)
    return pa.table(
        {
            GROUP: pa.array(keys // len(values)),
            name: values.take(pa.array(keys % len(values))),
            COUNT: pa.array(counts),
        }
    )


_KINDS = ("distinct", "frequency")


@dataclass(frozen=True, eq=False, kw_only=True)
class AnatomyRelease(Result):
    """Two tables in place of one. It shows numbers about itself, never rows.

    Attributes:
        tables: both tables, as Arrow.
        original: the table that was taken apart.
        roles: which columns were taken for what.
        l: how many different sensitive values each group has at least.
    """

    schema: ClassVar[str] = "cloister.anatomy/1"

    tables: AnatomyTables = field(repr=False)
    original: Table = field(repr=False)
    roles: Roles = field(repr=False)
    l: int  # noqa: E741  # the literature's name

    @property
    def quasi(self) -> Table:
        """Return the quasi-identifiers of every row with the number of its group."""
        return open_table(self.tables.quasi)

    @property
    def sensitive(self) -> Table:
        """Return how often each sensitive value occurs in each group."""
        return open_table(self.tables.sensitive)

    def __str__(self) -> str:
        return f"{self.tables.groups:,} groups of at least {self.l} rows in two tables; {self.guarantee.brief()}"

    def _fields(self) -> dict[str, Any]:
        return {
            "algorithm": "anatomy",
            "groups": self.tables.groups,
            "rows": int(self.tables.sizes.sum()),
            "l": self.l,
            "attribute": self.tables.attribute,
        }

    def write(
        self, path: str | Path, *, overwrite: bool = False, signing_key: SigningKey | None = None
    ) -> tuple[Path, Path]:
        """Write both tables beside each other, as ``NAME.quasi.csv`` and ``NAME.sensitive.csv``; return where.

        With a signing key a certificate of both is written beside the first.
        """
        target = Path(path)
        places = tuple(target.with_suffix(f".{part}{target.suffix}") for part in ("quasi", "sensitive"))
        self.quasi.write(places[0], overwrite=overwrite)
        self.sensitive.write(places[1], overwrite=overwrite)
        if signing_key is not None:
            recipe = {
                "algorithm": "anatomy",
                "models": [settings_of(self.guarantee)],
                "quasi_identifiers": list(self.roles.quasi),
                "sensitive": [self.tables.attribute],
            }
            certify(
                places, kind=TWO_TABLES, guarantee=self.guarantee, recipe=recipe, key=signing_key, overwrite=overwrite
            )
        return places[0], places[1]

    def report(self, path: str | Path | None = None, *, title: str = "Release in two tables") -> Report:
        """Return the report; with a path that ends in .html, .md or .json it is written there as well."""
        report = report_of_anatomy(self, title=title)
        if path is not None:
            report.write(path)
        return report


def release_anatomy(
    table: Table, roles: Roles, checks: Sequence[ModelCheck], random_state: RandomState
) -> AnatomyRelease:
    """Return a table taken apart, checked group by group.

    Raises:
        ParameterError: if the models are not the one that anatomy can promise.
    """
    model = _only_model(checks)
    source = random_source(random_state)
    # Whole rows: an l between two numbers needs the larger one.
    wanted = -(-model.l.numerator // model.l.denominator)
    tables = anatomize(
        table.to_arrow(),
        quasi=[name for name in table.columns if name in (*roles.quasi, *roles.insensitive)],
        sensitive=model.attribute,
        l=wanted,
        random_state=source,
    )
    _verify(tables, model.l)
    known = f"others know at most these columns: {', '.join(roles.quasi)}, and look at one group by itself"
    promise = model.with_assumption(known).with_caveat(ANATOMY, *caveats_of(source))
    return AnatomyRelease(guarantee=promise, tables=tables, original=table, roles=roles, l=wanted)


def _only_model(checks: Sequence[ModelCheck]) -> LDiversity:
    models = [check.model for check in checks]
    if len(models) == 1 and isinstance(models[0], LDiversity) and models[0].variant in _KINDS:
        return models[0]
    raise ParameterError(
        "Anatomy promises distinct or frequency l-diversity of one column, and nothing else.",
        fix='give models=[cl.LDiversity("disease", l=3, kind="frequency")].',
    )


def _verify(tables: AnatomyTables, l: Fraction) -> None:  # noqa: E741
    """Check that in no group a value has more than one in l of the rows, and that both tables count the same."""
    groups, counts = tables.sensitive[GROUP].to_numpy(), tables.sensitive[COUNT].to_numpy()
    totals = np.bincount(groups, weights=counts, minlength=tables.groups)
    largest = np.zeros(tables.groups)
    np.maximum.at(largest, groups, counts)
    # The last word is a check of the tables themselves, as they would be released.
    if not np.array_equal(totals, tables.sizes) or (largest * float(l) > totals).any():
        raise InternalError("a group of the anatomized table does not satisfy its model.")


def report_of_anatomy(release: AnatomyRelease, *, title: str) -> Report:
    """Return the report: what is promised, and the two ways in which it is less than it seems."""
    sizes = release.tables.sizes
    return Report(
        title,
        subtitle=release.guarantee.brief(),
        verdict=Verdict(
            f"The model holds in every one of {release.tables.groups:,} groups, but shows who is in the table",
            Status.ATTENTION,
        ),
        figures=[
            KeyFigure("Groups", f"{release.tables.groups:,}", f"of {int(np.min(sizes))} rows or more"),
            KeyFigure("Guess within a group", f"1 in {release.l}", "for who looks at one group by itself"),
        ],
        sections=[
            Section("What is promised", [Notice(NoticeKind.PROMISE, escape_text(release.guarantee.explain()))]),
            Section("What is not protected", [Bullets(_DANGERS), _columns(release)]),
            Section("How it was made", [_how(release)]),
        ],
    )


_DANGERS = (
    "**Membership.** Quasi-identifiers are exact: who knows a person's sees that the person is in the table.",
    (
        "**Learning.** EM and deFinetti attacks learn over all groups, and are right more often than one time in l: "
        "`cl.attacks.anatomy_em(release)` says how often."
    ),
    "**Background knowledge.** Each value that an attacker can rule out for a group leaves fewer to guess from.",
)


def _columns(release: AnatomyRelease) -> Text:
    exact = ", ".join(escape_text(name) for name in (*release.roles.quasi, *release.roles.insensitive))
    apart = release.tables.attribute
    left_out = [escape_text(name) for name in (*release.roles.identifiers, *release.roles.sensitive) if name != apart]
    ending = f" **Left out:** {', '.join(left_out)}." if left_out else ""
    return Text(f"**Released exactly:** {exact}. **In the second table only:** {escape_text(apart)}.{ending}")


def _how(release: AnatomyRelease) -> Facts:
    return Facts(
        [
            ("Algorithm", "anatomy (Xiao and Tao 2006)"),
            ("Rows", f"{int(release.tables.sizes.sum()):,}"),
            ("Choice of rows", "at random from the operating system, so that a second run differs"),
        ]
    )
