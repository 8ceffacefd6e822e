"""Rows drawn from groups of at least k similar rows: no differential privacy.

The quasi-identifiers are aggregated together by MDAV (Domingo-Ferrer and Mateo-Sanz 2002; see
`cloister.anonymize.algorithms.mdav`): every group of k or more rows is known by its center alone. A synthetic row has
the center of a group, and for each other column a value of some row of the group, each column by itself, in the
declared cells of the column: no real combination of these is copied on purpose. A sample has k or more rows of every
group that is in it.

What is promised: k-anonymity of the model and of every sample, on the quasi-identifiers. What is not: that somebody's
sensitive value stays unknown (all rows of a group may share it); anything against who knows more than the
quasi-identifiers; anything together with other releases about the same people. One row can move every group, so that
no noise that were added here would make it differentially private. Nothing is charged to a budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cloister.accounting.events import Event
from cloister.core.guarantees import Caveat, Guarantee, KAnonymity
from cloister.core.random import RandomSource, permutation
from cloister.core.validation import check_count
from cloister.core.whole_rows import Floats
from cloister.data.columns import Role
from cloister.data.engines.aggregation import as_stored
from cloister.data.engines.base import ARROW_TYPES
from cloister.data.table import Table
from cloister.data.values import StorageType
from cloister.errors import InternalError, ModelError, ParameterError, UnknownColumnError
from cloister.synth._domain import DomainAttribute, TableDomain
from cloister.synth._numeric import choose_by_weight
from cloister.synth.base import SynthesisFacts, Synthesizer, synthesizers
from cloister.synth.conditions import allowed_cells
from cloister.synth.constraints import Determines, SumOf
from cloister.synth.expectation import Expectation
from cloister.synth.inference._marginal_model import uniforms

__all__ = ["KAnonymousSynthesizer", "allot"]

LIMITS = (
    Caveat(
        "no_differential_privacy",
        "this is not differential privacy: nothing was charged to a budget, and the promise does not add up with other "
        "releases about the same people",
        breaks=False,
    ),
    Caveat(
        "homogeneity",
        "where all rows of a group share a value of another column, that value is told of everybody in the group",
        breaks=False,
    ),
)
"""What k-anonymity does not promise."""


@synthesizers.register("k_anonymous")
@dataclass(kw_only=True, eq=False, repr=False)
class KAnonymousSynthesizer(Synthesizer):
    """Rows from groups of k similar ones. k-anonymity, NOT differential privacy; costs no budget and takes no ledger.

    Args:
        k: the smallest number of rows of a group.
        quasi_identifiers: the columns that others may know; without it, those that the schema says.

    >>> KAnonymousSynthesizer(k=10)
    KAnonymousSynthesizer(k=10)
    """

    always_shown: ClassVar[tuple[str, ...]] = ("k",)

    epsilon: Any = None
    delta: Any = None
    k: int = 5
    quasi_identifiers: Sequence[str] | None = None

    centers_: tuple[tuple[Any, ...], ...] = field(init=False)
    sizes_: NDArray[np.int64] = field(init=False)
    codes_: NDArray[np.int64] = field(init=False)
    quasi_identifiers_: tuple[str, ...] = field(init=False)

    # What is promised ------------------------------------------------------------------------------------------------

    def declared(self, table: Table) -> SynthesisFacts:
        """Return what is public about a table, or refuse what k-anonymity cannot promise."""
        if self.epsilon is not None or self.delta is not None or self.ledger is not None:
            raise ParameterError(
                "k-anonymity is not differential privacy: it has no epsilon, and nothing is charged to a ledger.",
                fix="leave epsilon, delta and ledger out, or use AdaptiveMarginals, which has them.",
            )
        if self.unit != "row" and self.max_rows_per_unit != 1:
            raise ParameterError(
                "k rows would not be rows of k persons.", fix="use max_rows_per_unit=1, one row of each person."
            )
        check_count(self.k, name="k", at_least=2)
        facts = super().declared(table)
        for item in facts.constraints:
            if not isinstance(item, SumOf | Determines):
                raise ParameterError(
                    "KAnonymousSynthesizer draws columns by themselves, and cannot keep every constraint.",
                    fix="drop those that are not about sums or what follows from a column, or use AdaptiveMarginals.",
                )
        self._quasi(facts)
        cells = tuple(replace(item, complete=False) for item in facts.domain.attributes)
        return replace(facts, domain=TableDomain(cells))

    def _quasi(self, facts: SynthesisFacts) -> tuple[str, ...]:
        names = facts.domain.names
        if self.quasi_identifiers is None:
            found = tuple(name for name in names if facts.schema[name].role is Role.QUASI)
        else:
            found = tuple(self.quasi_identifiers)
        unknown = next((name for name in found if name not in names), None)
        if unknown is not None:
            raise UnknownColumnError(str(unknown), names)
        if not found:
            raise ParameterError(
                "No column is a quasi-identifier, so that there is nothing to be k-anonymous about.",
                fix='say which columns others may know: quasi_identifiers=["age", "zip_code"].',
            )
        return found

    def _promise(self, facts: SynthesisFacts) -> tuple[Guarantee, Event | None]:
        quasi = ", ".join(self._quasi(facts))
        about = f"nobody knows more about a person than the quasi-identifiers ({quasi})"
        return KAnonymity(k=self.k, assumptions=(about,), caveats=LIMITS), None

    def _expectations(self, facts: SynthesisFacts) -> tuple[Expectation, ...]:
        del facts
        return ()

    # Fitting ---------------------------------------------------------------------------------------------------------

    def _learn(self, facts: SynthesisFacts, rows: Table, source: RandomSource) -> None:
        from cloister.anonymize import anonymize  # takes a second to import

        quasi = self._quasi(facts)
        others = tuple(name for name in facts.domain.names if name not in quasi)
        release = anonymize(
            rows.with_schema(facts.schema.without(*facts.derived)),
            models=[KAnonymity(k=self.k)],
            algorithm="mdav",
            quasi_identifiers=quasi,
            sensitive=others,
            progress=self.progress,
        )
        released = release.table.to_arrow()
        columns = [_central(released[name], facts.domain[name]) for name in quasi]
        # Groups with the same center cannot be told apart, and are one group from here on.
        _, groups = np.unique(np.column_stack([codes for codes, _ in columns]), axis=0, return_inverse=True)
        order = np.argsort(groups.ravel(), kind="stable")
        self.sizes_ = np.bincount(groups.ravel())
        if self.sizes_.min(initial=self.k) < self.k:
            raise InternalError("a group has fewer than k rows.")
        first = order[np.cumsum(self.sizes_) - self.sizes_]
        self.centers_ = tuple(tuple(values[place] for place in codes[first]) for codes, values in columns)
        self.quasi_identifiers_ = quasi
        coded = [_code_values(released[name], facts.domain[name])[order] for name in others]
        self.codes_ = np.column_stack([self._mixed(codes, source) for codes in coded]) if coded else _none(len(order))
        self.rows_ = float(len(order))
        self.steps_ = ()

    def _mixed(self, codes: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
        """Return the cells of a column in random order inside of each group."""
        groups = np.repeat(np.arange(len(self.sizes_)), self.sizes_)
        shuffled = permutation(source, len(codes))
        # A stable sort by group keeps the random order inside of each group.
        return np.asarray(codes[shuffled[np.argsort(groups[shuffled], kind="stable")]])

    # Drawing ---------------------------------------------------------------------------------------------------------

    @property
    def fewest_rows(self) -> int:
        """Return the smallest sample that there is: k rows."""
        return self.k

    def _draw(self, count: int, conditions: dict[str, Any], source: RandomSource) -> dict[str, Any]:
        domain = self.fitted_facts.domain
        others = [name for name in domain.names if name not in self.quasi_identifiers_]
        wanted = {name: allowed_cells(domain[name], given) for name, given in conditions.items()}
        weights = self.sizes_.astype(np.float64)
        for name, values in zip(self.quasi_identifiers_, self.centers_, strict=True):
            if name in wanted:
                weights *= _meets(values, domain[name], wanted[name])
        pools = []
        for place, name in enumerate(others):
            fits = wanted[name][0][self.codes_[:, place]] if name in wanted else np.ones(len(self.codes_), np.bool_)
            pools.append(_Pool.of(fits, self.sizes_))
            # Columns are drawn independently of each other, so that the shares of rows that meet their
            # conditions are multiplied.
            weights *= pools[-1].counts / np.maximum(self.sizes_, 1)
        if count and not weights.any():
            raise ParameterError("No group has rows that meet the conditions.", fix="ask for wider conditions.")
        groups = np.repeat(np.arange(len(weights)), allot(count, weights, k=self.k, source=source))
        # Rows in the order of their groups would show who was put together.
        groups = groups[permutation(source, len(groups))]
        columns: dict[str, Any] = {}
        for name, values in zip(self.quasi_identifiers_, self.centers_, strict=True):
            listed = pa.array(_to_storage(values, domain[name]), ARROW_TYPES[domain[name].storage])
            columns[name] = listed.take(pa.array(groups, pa.int64()))
        for place, (name, pool) in enumerate(zip(others, pools, strict=True)):
            codes = self.codes_[pool.draw(groups, source), place]
            limits = wanted[name][1] if name in wanted else None
            columns[name] = domain[name].decode(codes, source, between=limits)
        return columns

    def _learned_state(self) -> dict[str, Any]:
        return {
            "k": self.k,
            "quasi_identifiers": list(self.quasi_identifiers_),
            "centers": [[_plain(value) for value in values] for values in self.centers_],
            "sizes": self.sizes_,
            "codes": self.codes_,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.k = check_count(state["k"], name="k", at_least=2)
        self.quasi_identifiers_ = tuple(map(str, state["quasi_identifiers"]))
        self.centers_ = tuple(map(tuple, state["centers"]))
        self.sizes_, self.codes_ = (np.asarray(state[name], dtype=np.int64) for name in ("sizes", "codes"))
        if len(self.codes_) != self.sizes_.sum() or self.sizes_.min(initial=self.k) < self.k:
            raise ModelError("The saved synthesizer is damaged.", fix="use the file as save wrote it.")
        self.rows_ = float(self.sizes_.sum())


@dataclass(frozen=True, eq=False)
class _Pool:
    """The rows of each group that one column may be drawn from."""

    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, fits: NDArray[np.bool_], sizes: NDArray[np.int64]) -> _Pool:
        groups = np.repeat(np.arange(len(sizes)), sizes)
        counts = np.bincount(groups[fits], minlength=len(sizes))
        return cls(np.flatnonzero(fits), np.cumsum(counts) - counts, counts)

    def draw(self, groups: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
        """Return a row of each group."""
        offsets = np.floor(uniforms(source, len(groups)) * self.counts[groups]).astype(np.int64)
        return np.asarray(self.rows[self.starts[groups] + offsets])


def allot(count: int, weights: Floats, *, k: int, source: RandomSource) -> NDArray[np.int64]:
    """Return how many rows each group gets, none or at least k, as nearly by weight as that allows.

    Raises:
        ParameterError: if there are fewer than k rows to give.
    """
    rows = np.zeros(len(weights), dtype=np.int64)
    if count == 0:
        return rows
    if count < k:
        raise ParameterError(
            f"A sample of fewer than {k} rows would not be k-anonymous.", fix=f"ask for at least {k} rows."
        )
    possible = np.flatnonzero(weights > 0)
    many = min(len(possible), count // k)
    # Of exponential waiting times with these rates, the first ones are a weighted draw without replacement.
    waiting = -np.log1p(-uniforms(source, len(possible))) / weights[possible]
    chosen = possible[np.argsort(waiting, kind="stable")[:many]]
    rows[chosen] = k
    left = count - k * many
    wanted = np.maximum(0.0, count * weights[chosen] / weights[chosen].sum() - k)
    # Evenly spaced points give each group its share but for rounding.
    points = (np.arange(left) + uniforms(source, 1)) / max(1, left)
    further = choose_by_weight(wanted if wanted.any() else weights[chosen], points)
    rows[chosen] += np.bincount(further, minlength=many)
    return rows


def _central(column: Any, attribute: DomainAttribute) -> tuple[NDArray[np.int64], list[Any]]:
    """Return released centers as codes and the values they stand for, as the column stores them; None for no value."""
    coded = column.combine_chunks().dictionary_encode()
    texts = coded.dictionary.to_pylist()
    stored = [_as_stored(item, attribute) for item in texts]
    values = [*dict.fromkeys(item for item in stored if item is not None), None]
    place = {value: position for position, value in enumerate(values)}
    codes = np.array([place[item] for item in stored] + [place[None]], dtype=np.int64)
    positions = coded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
    return codes[positions], values


def _as_stored(item: Any, attribute: DomainAttribute) -> Any:
    """Return a center as a value that the column can have."""
    if item is None:
        return None
    if attribute.storage is StorageType.INTEGER:
        return round(float(item))
    value = as_stored(item, attribute.storage)
    is_known = attribute.is_binned or value in attribute.values
    return value if is_known else None


def _code_values(column: Any, attribute: DomainAttribute) -> NDArray[np.int64]:
    """Return the cells of released values."""
    coded = column.combine_chunks().dictionary_encode()
    codes = np.append(attribute.codes(coded.dictionary.to_pylist()), attribute.present)
    return np.asarray(codes[coded.indices.fill_null(len(codes) - 1).to_numpy(zero_copy_only=False)])


def _meets(values: tuple[Any, ...], attribute: DomainAttribute, wanted: tuple[Any, Any]) -> NDArray[np.bool_]:
    """Return which centers a condition allows."""
    (cells, between), stored = wanted, _to_storage(values, attribute)
    if between is None:
        return np.asarray(cells[attribute.codes(stored)])
    return np.array([value is not None and between[0] <= value <= between[1] for value in stored], dtype=np.bool_)


def _to_storage(values: tuple[Any, ...], attribute: DomainAttribute) -> list[Any]:
    """Return centers as the column stores them, also dates that come from a file."""
    return [None if value is None else as_stored(value, attribute.storage) for value in values]


def _none(rows: int) -> NDArray[np.int64]:
    return np.zeros((rows, 0), dtype=np.int64)


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
