"""What attacks on synthetic tables share: the tables, checked and coded alike, and what is reported of them.

Giomi, Boenisch, Wehmeyer and Tasnadi (2022) compare an attack on rows that the synthetic table was made from with the
same attack on control rows that had no part in it. What succeeds on both is knowledge about everybody, for which a
good synthetic table exists; what succeeds on the former only is about the people in the data.

A control that holds rows of the original makes every attack look harmless, and is refused. Rows of independent people
can be equal too, so equal rows alone say nothing. But if original and control are of one population, a row that occurs
exactly twice in both together is as likely twice in one of them as chance has it: with ``n`` and ``m`` rows it is once
in each with probability ``2nm / ((n + m)(n + m - 1))``, one half for tables of the same size. The control is refused if
at least 20 such rows, and more than a fifth of it, are once in each, and if so many of those that occur twice would be
so by chance less than once in a million times. It is refused as well if every row occurs as often in it as in the
original, where there are at least ten different ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloister.attacks.details import AttackDetails, Row, fact
from cloister.attacks.result import AttackResult
from cloister.core import validation
from cloister.core.confidence import binomial_interval
from cloister.core.exact import Number
from cloister.core.random import RandomSource, permutation
from cloister.core.wordings import percent
from cloister.data.columns import Role
from cloister.data.mixed_rows import MixedRows, number_rows, read_mixed_rows
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import DataError, ParameterError, ParameterTypeError, UnknownColumnError

__all__ = [
    "AttackedTables",
    "SyntheticDetails",
    "choose_rows",
    "find_interval",
    "is_surely_better",
    "most_exposed",
    "read_attacked",
    "score_attack",
]


Places = NDArray[np.int64]

_FEWEST_PAIRS = 20
_LARGEST_SHARE = 0.2
_CHANCE = 1e-6
_FEWEST_KINDS = 10


@dataclass(frozen=True, eq=False, repr=False)
class AttackedTables:
    """What an attacker holds, and the rows that the attack is tried on.

    Attributes:
        original: the rows that the synthetic ones were made from. Protected.
        synthetic: the synthetic rows.
        control: rows of the same kind that had no part in the synthetic ones. Protected.
        places: where each row of ``original`` is in the custodian's table.
        left_out: columns of the original, no identifiers, that are not compared because another table lacks them.
    """

    original: MixedRows
    synthetic: MixedRows
    control: MixedRows | None
    places: Places
    left_out: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Attacked({', '.join(self.names)})"

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns."""
        return self.original.columns

    def per_synthetic_row(self, people: int, control: tuple[float, int] | None) -> tuple[float, float]:
        """Return how many people come to one synthetic row, in the attack and in the control (hits and trials)."""
        others = 0 if control is None else control[1]
        return people / len(self.synthetic), others / len(self.synthetic)

    def balance(self, source: RandomSource) -> AttackedTables:
        """Return as many original rows as control rows, chosen at random: what depends on size can be compared then."""
        if self.control is None:
            return self
        count = min(len(self.original), len(self.control))
        kept = choose_rows(len(self.original), count, source)
        control = self.control.take(choose_rows(len(self.control), count, source))
        return replace(self, original=self.original.take(kept), control=control, places=self.places[kept])


def read_attacked(
    original: Any,
    synthetic: Any,
    *,
    control: Any = None,
    columns: Sequence[str] | None = None,
    bounds: Mapping[str, Any] | None = None,
) -> AttackedTables:
    """Open the tables and code them alike, or refuse what cannot be compared.

    Raises:
        UnknownColumnError: if a table lacks a column.
        DataError: if a table is empty, or the control holds rows of the original.
        ParameterError: if the tables have no column in common, or one of different kinds.
    """
    given = {"original": original, "synthetic": synthetic, "control": control}
    opened = {
        name: _open_attacked(value, name) for name, value in given.items() if value is not None or name != "control"
    }
    for name, table in opened.items():
        if not table.count():
            raise DataError(f"The {name} table has no rows.", fix="give a table with rows.")
    names = _names(opened, columns)
    rows = read_mixed_rows(list(opened.values()), names, bounds=_ranges(bounds))
    if control is not None and _overlap(*_all_columns(opened["original"], opened["control"], names)):
        raise DataError(
            "The control holds rows of the original, so that every attack would look harmless.",
            fix="give control rows that had no part in the synthetic table: set them aside before it is made.",
        )
    asked = _columns_but_identifiers(opened["original"]) if columns is None else ()
    return AttackedTables(
        original=rows[0],
        synthetic=rows[1],
        control=rows[2] if len(rows) > 2 else None,
        places=np.arange(len(rows[0])),
        left_out=tuple(name for name in asked if name not in names),
    )


def choose_rows(count: int, most: int, source: RandomSource) -> Places:
    """Return places of rows without repetition, at most so many; in order where all are taken."""
    return np.arange(count) if count <= most else permutation(source, count)[:most]


def _open_attacked(value: Any, name: str) -> Table:
    if value is None:
        raise ParameterTypeError(f"There is no {name} table.", fix=f"give the {name} rows as a table or a data frame.")
    held = getattr(value, "table", None)
    if isinstance(held, Table):
        return held
    return value if isinstance(value, Table) else open_table(value)


def _names(opened: Mapping[str, Table], columns: Sequence[str] | None) -> list[str]:
    if isinstance(columns, str):
        raise ParameterTypeError("columns is one text, not a list of names.", fix=f'write columns=["{columns}"].')
    first = opened["original"]
    if columns is None:
        names = [
            name for name in _columns_but_identifiers(first) if all(name in table.columns for table in opened.values())
        ]
    else:
        names = list(dict.fromkeys(columns))
    if not names:
        raise ParameterError("The tables have no column in common.", fix="give tables with the same columns.")
    for name in names:
        for table in opened.values():
            if name not in table.columns:
                raise UnknownColumnError(str(name), table.columns)
    return names


def _columns_but_identifiers(table: Table) -> list[str]:
    """Return the columns but identifiers."""
    known = {} if table.schema is None else table.schema.columns
    return [name for name in table.columns if name not in known or known[name].role is not Role.IDENTIFIER]


def _all_columns(original: Table, control: Table, names: Sequence[str]) -> list[MixedRows]:
    """Return the rows of both with all columns that both have alike: a few may not tell who is who."""
    further = [
        name
        for name in _columns_but_identifiers(original)
        if name not in names and name in control.columns and control.types[name] == original.types[name]
    ]
    return read_mixed_rows([original, control], [*names, *further])


def _overlap(original: MixedRows, control: MixedRows) -> bool:
    """Return whether rows of the original are among those of the control, beyond what chance would do."""
    kinds = number_rows([original, control])
    size = max(int(part.max()) for part in kinds) + 1
    ours, others = (np.bincount(part, minlength=size) for part in kinds)
    if size >= _FEWEST_KINDS and np.array_equal(ours, others):
        return True
    pairs, twice = int(((ours == 1) & (others == 1)).sum()), int((ours + others == 2).sum())
    if pairs < max(_FEWEST_PAIRS, _LARGEST_SHARE * len(control)):
        return False
    total = len(original) + len(control)
    split = 2 * len(original) * len(control) / (total * (total - 1))
    return float(special.bdtrc(pairs - 1, twice, split)) < _CHANCE


def _ranges(bounds: Mapping[str, Any] | None) -> dict[str, tuple[float, float]]:
    if bounds is not None and not isinstance(bounds, Mapping):
        raise ParameterTypeError("bounds is not a mapping.", fix='write for example bounds={"age": (0, 110)}.')
    checked = {name: validation.check_bounds(pair) for name, pair in (bounds or {}).items()}
    return {name: (float(low), float(high)) for name, (low, high) in checked.items()}


_NAMES = 8
_WORST = 100
LEAST_RULED_OUT = 0.25
_UNCONTROLLED = " There were no control rows, so this may be knowledge about everybody rather than about these people."
_UNTOLD = "There are too few rows to tell whether this attack works"
ADVICE = (
    "make the synthetic table with a differential privacy guarantee, or a smaller epsilon",
    "look for rows that were copied, and for columns with nearly unique values",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticDetails(AttackDetails):
    """What an attack on a synthetic table knows; the control is the same attack on rows that had no part in it.

    Attributes:
        kind: which kind of the attack.
        residual_risk: of the cases in which the attack fails on control rows, the share in which it succeeds on rows
            of the original: ``(success - control) / (1 - control)``; None without a control.
        residual_interval: a confidence interval of it.
        control_trials: how many trials the control had.
        is_telling: whether the outcome says something: the attack succeeded, or a residual risk of 25 % is ruled out.
            Without a control it is the risk beyond guessing. It is not ruled out where there are too few rows, or
            where the attack is right about nearly everybody. A control that may be off by 25 points tells nothing
            either.
        left_out: columns of the original that were not compared because the synthetic or the control table lacks them.
    """

    schema: ClassVar[str] = "cloister.synthetic_attack/1"

    kind: str = field(metadata=fact("kind"))
    residual_risk: float | None = None
    residual_interval: tuple[float, float] | None = None
    control_trials: int = 0
    is_telling: bool
    left_out: tuple[str, ...] = ()

    def judge(self, result: AttackResult, /) -> bool:
        """Return whether the attack is, at the stated confidence, better on these people than on others.

        Without a control, whether it is better than guessing. An attack that is worse than guessing but better on
        people in the data than on others does tell them apart.
        """
        return is_surely_better(result.interval, result.baseline, result.control_interval)

    def conclude(self, result: AttackResult, /) -> str:
        """Return how often the attack is right about the people in the data, about others, and by guessing."""
        return self._compare_rates(result) + self._name_left_out()

    def _name_left_out(self) -> str:
        return f" Not compared, because not in every table: {_join_names(self.left_out)}." if self.left_out else ""

    def _compare_rates(self, result: AttackResult) -> str:
        rates = f"right in {percent(result.success)} of cases, guessing in {percent(result.baseline)}"
        if result.control is None:
            found = "The attack found no more than guessing" if self.is_telling else _UNTOLD
            return f"{'The attack finds more than guessing' if result.succeeded else found}: {rates}.{_UNCONTROLLED}"
        rates += f", the same attack on people who had no part in the table in {percent(result.control)}."
        risk = self._describe_risk()
        rates += f" Residual risk {risk}." if risk else ""
        if result.succeeded:
            return f"The synthetic table gives its people away: {rates}"
        found = "This attack found nothing about the people in the table" if self.is_telling else _UNTOLD
        return f"{found}: {rates} Others may find more."

    def _describe_risk(self) -> str:
        """Return the residual risk in words: below 0 it is none."""
        if self.residual_risk is None or self.residual_interval is None:
            return ""
        low, high = map(percent, self.residual_interval)
        return f"{percent(max(0.0, self.residual_risk))}, between {low} and {high}"

    def tell(self, _: AttackResult, /) -> Iterator[Row]:
        """Return the residual risk, and what was not compared."""
        if risk := self._describe_risk():
            yield "residual risk", risk
        if self.left_out:
            yield "columns left out", _join_names(self.left_out)


def score_attack(
    hits: float,
    trials: int,
    *,
    baseline: float,
    kind: str,
    left_out: tuple[str, ...] = (),
    control: tuple[float, int] | None,
    confidence: Number,
    alike: tuple[float, float] = (1.0, 1.0),
) -> dict[str, Any]:
    """Return what every attack on a synthetic table reports: the fields of its result, and its details among them.

    Intervals are exact (Clopper-Pearson).

    Args:
        hits: how many trials succeeded, ties counting half.
        trials: how many there were.
        baseline: the success of guessing.
        kind: which kind of the attack.
        left_out: the columns that were not compared.
        control: hits and trials of the control.
        confidence: of the intervals.
        alike: how many trials stand or fall together on average, in the attack and in the control: so many count as
            one in the intervals.
    """
    level = float(validation.check_confidence(confidence))
    interval = find_interval(hits, trials, level, alike[0])
    fields: dict[str, Any] = {
        "success": hits / trials,
        "baseline": baseline,
        "interval": interval,
        "confidence": level,
        "trials": trials,
    }
    if control is None:
        is_telling = is_surely_better(interval, baseline) or _residual(interval[1], baseline) < LEAST_RULED_OUT
        return fields | {"details": SyntheticDetails(kind=kind, left_out=left_out, is_telling=is_telling)}
    found, others = control
    # Both ends hold at once if each interval is wrong half as often.
    (low, high), (least, most) = (
        find_interval(count, size, (1 + level) / 2, many)
        for count, size, many in ((hits, trials, alike[0]), (found, others, alike[1]))
    )
    compared = find_interval(found, others, level, alike[1])
    residual = (max(0.0, _residual(low, most)), max(0.0, _residual(high, least)))
    largest_risk = max(residual[1], compared[1] - found / others)
    details = SyntheticDetails(
        kind=kind,
        residual_risk=_residual(hits / trials, found / others),
        residual_interval=residual,
        control_trials=others,
        is_telling=is_surely_better(interval, baseline, compared) or largest_risk < LEAST_RULED_OUT,
        left_out=left_out,
    )
    return fields | {"control": found / others, "control_interval": compared, "details": details}


def is_surely_better(
    interval: tuple[float, float], baseline: float, control: tuple[float, float] | None = None
) -> bool:
    """Return whether an attack is, at the confidence of its interval, better than on control rows, or than guessing."""
    return interval[0] > (baseline if control is None else control[1])


def most_exposed(places: NDArray[np.int64], scores: NDArray[np.float64]) -> tuple[tuple[int, float], ...]:
    """Return the positions of the most exposed people with their scores, none of those with a score of 0."""
    order = np.argsort(-scores, kind="stable")[:_WORST]
    return tuple((int(places[place]), float(scores[place])) for place in order if scores[place] > 0)


def _join_names(names: Sequence[str]) -> str:
    """Return names of columns in words, the first ones if there are many."""
    shown = ", ".join(f'"{name}"' for name in names[:_NAMES])
    return shown if len(names) <= _NAMES else f"{shown} and {len(names) - _NAMES} more"


def find_interval(hits: float, trials: int, confidence: float, alike: float) -> tuple[float, float]:
    """Return a Clopper-Pearson interval, of fewer trials where some stand or fall together."""
    effective = max(1, int(trials / max(alike, 1.0)))
    scaled = hits * effective / trials
    # Rounding errors of the scaling go first; halves from ties then widen the interval on both sides.
    whole = round(scaled, 9)
    low = binomial_interval(int(whole // 1), effective, confidence=confidence)[0]
    high = binomial_interval(int(-(-whole // 1)), effective, confidence=confidence)[1]
    return low, high


def _residual(success: float, control: float) -> float:
    return (success - control) / (1 - control) if control < 1 else 0.0
