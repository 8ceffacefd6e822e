"""Small tables, schemas, models and ways to anonymize, drawn for tests of whole releases.

Cells carry marks (text begins with ``§``, numbers with 9000, dates with 1987), so that a message that quotes one is
easily found.
"""

from __future__ import annotations

import datetime as dt
import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from cloister.anonymize.algorithms._base import ALGORITHMS
from cloister.core.guarantees import (
    AlphaKAnonymity,
    BetaLikeness,
    DeltaPresence,
    Guarantee,
    KAnonymity,
    KMap,
    LDiversity,
    PSensitivity,
    TCloseness,
)
from cloister.data.columns import Column
from cloister.data.hierarchy import Hierarchy
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table

NAMES = ('a"ge', "select", "c0", "zip; code", "number", "key0", "class", "label0", "größe", "[x]", "a b", "'q'", "*")
CELL = re.compile(r"§|9000\d|1987-")
FIRST = 90000
DAYS = [dt.date(1987, 11, 28) + dt.timedelta(days=day) for day in range(8)]
TREE = {"west": {"coast": ["§a", "§b"], "hill": ["§c"]}, "east": ["§d", "§e, §f"]}
LEAVES = ["§a", "§b", "§c", "§d", "§e, §f"]
DISEASES = {"lungs": ["§flu", "§cold"], "heart": ["§attack", "§angina"], "§none": None}


@dataclass(frozen=True)
class Kept:
    """A kind of column: its Arrow type, its possible cells, and what the schema says about it."""

    type: pa.DataType
    cells: Sequence[Any]
    facts: Mapping[str, Any] = field(default_factory=dict)


def _numbers(step: Any, count: int = 10) -> list[Any]:
    return [FIRST + step * number for number in range(count)]


QUASI: dict[str, Kept] = {
    "whole numbers": Kept(pa.int64(), _numbers(1), {"kind": "numeric"}),
    "whole numbers in intervals": Kept(
        pa.int64(),
        _numbers(1),
        {"kind": "numeric", "hierarchy": Hierarchy.intervals((FIRST, FIRST + 9), widths=[2, 4])},
    ),
    "codes": Kept(pa.int64(), _numbers(1, 4)),
    "real numbers": Kept(pa.float64(), _numbers(0.375), {"kind": "numeric"}),
    "real numbers in intervals": Kept(
        pa.float64(),
        _numbers(0.375),
        {"kind": "numeric", "hierarchy": Hierarchy.intervals((FIRST, FIRST + 9), widths=[1, 2], step=None)},
    ),
    "days": Kept(pa.date32(), DAYS, {"kind": "datetime"}),
    "days in months": Kept(pa.date32(), DAYS, {"kind": "datetime", "hierarchy": Hierarchy.dates(DAYS[0], DAYS[-1])}),
    "times in months": Kept(
        pa.timestamp("us"),
        [dt.datetime(day.year, day.month, day.day, hour) for day in DAYS for hour in (3, 15)],
        {"kind": "datetime", "hierarchy": Hierarchy.dates(DAYS[0], DAYS[-1])},
    ),
    "names": Kept(pa.string(), [*LEAVES, "", "*", "{§a, §b}", "missing", "[§a, §b]"]),
    "names in a tree": Kept(pa.string(), LEAVES, {"hierarchy": Hierarchy.taxonomy(TREE)}),
    "grades": Kept(
        pa.string(), ["§low", "§middle", "§high"], {"kind": "ordinal", "categories": ("§low", "§middle", "§high")}
    ),
    "masked codes": Kept(pa.string(), ["§11", "§12", "§22"], {"hierarchy": Hierarchy.masking(["§11", "§12", "§22"])}),
    "truths": Kept(pa.bool_(), [True, False]),
}
SENSITIVE: dict[str, Kept] = {
    "diseases": Kept(
        pa.string(), ["§flu", "§cold", "§attack", "§angina", "§none"], {"hierarchy": Hierarchy.taxonomy(DISEASES)}
    ),
    "salaries": Kept(pa.int64(), _numbers(2, 5), {"kind": "numeric"}),
    "truths": QUASI["truths"],
}
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "optimal": [{}, {"search": "heuristic"}, {"recoding": "local"}, {"loss": "discernibility"}],
    "mondrian": [{}, {"mode": "relaxed"}, {"split": "balanced"}, {"mode": "relaxed", "split": "balanced"}],
}


def ways() -> list[tuple[str, str, dict[str, Any]]]:
    """Return every algorithm with each way to show classes and each of its options that is drawn."""
    return [
        (name, str(values), options)
        for name, entry in ALGORITHMS.items()
        if importlib.util.find_spec(entry.module) is not None
        for values in entry.values
        for options in OPTIONS.get(name, [{}])
    ]


@dataclass(frozen=True)
class Case:
    """A table with its schema, and what is asked of its release."""

    rows: Sequence[Mapping[str, Any]]
    arrow: pa.Schema
    schema: Schema
    models: tuple[Guarantee, ...]
    algorithm: str
    values: str
    options: Mapping[str, Any]
    suppression_limit: Fraction
    population: Sequence[Mapping[str, Any]] = ()
    person: str | None = None

    def __repr__(self) -> str:
        lines = "\n".join(f"  {dict(row)!r}" for row in self.rows)
        asked = f"{self.models} {self.algorithm} {self.values} {self.options} {self.suppression_limit}"
        return f"Case({asked}\n{self.schema!r}\n{lines}\npopulation {self.population!r})"

    @property
    def quasi(self) -> tuple[str, ...]:
        return self.schema.with_roles("quasi")

    def table(self, order: Sequence[int] | None = None) -> Table:
        rows = self.rows if order is None else [self.rows[place] for place in order]
        return open_table(pa.Table.from_pylist(list(rows), schema=self.arrow), schema=self.schema)

    def population_table(self) -> Table | None:
        if not self.population:
            return None
        names = self.quasi
        types = pa.schema([self.arrow.field(name) for name in names])
        return open_table(pa.Table.from_pylist(list(self.population), schema=types))


@st.composite
def cases(draw: DrawFn, way: tuple[str, str, dict[str, Any]], *, largest: int = 20) -> Case:
    """Return tables of up to some rows with everything that a release needs, for one algorithm."""
    kinds = draw(st.lists(st.sampled_from(sorted(QUASI)), min_size=1, max_size=3))
    names = draw(st.permutations(NAMES))[: len(kinds)]
    kept = {name: ("quasi", QUASI[kind]) for name, kind in zip(names, kinds, strict=True)}
    for name in draw(st.lists(st.sampled_from(["disease", "pay"]), unique=True, max_size=2)):
        kept[name] = ("sensitive", SENSITIVE[draw(st.sampled_from(sorted(SENSITIVE)))])
    extra = draw(st.sets(st.sampled_from(["name", "note", "person"])))
    columns = {name: _column(name, role, kind) for name, (role, kind) in kept.items()}
    cells = {name: draw(_cells(kind)) for name, (_, kind) in kept.items()}
    types = {name: kind.type for name, (_, kind) in kept.items()}
    if "name" in extra:
        columns["name"] = Column(name="name", role="identifier")
        cells["name"], types["name"] = st.text("§xyz", min_size=1, max_size=3), pa.string()
    if "note" in extra:
        columns["note"] = Column(name="note", role="insensitive")
        cells["note"], types["note"] = st.sampled_from(["§u", "§v|", "", None]), pa.string()
    if "person" in extra:
        columns["person"] = Column(name="person", role="identifier", subject=True)
        columns["same person"] = Column(name="same person", role="insensitive")
        cells["person"] = st.sampled_from([f"§p{number}" for number in range(6)])
        types["person"] = types["same person"] = pa.string()
    drawn = draw(st.lists(st.fixed_dictionaries(cells), min_size=1, max_size=largest))
    rows = [row | ({"same person": row["person"]} if "person" in row else {}) for row in drawn]
    population = draw(_populations(rows, list(names), kept)) if draw(st.booleans()) else []
    algorithm, values, options = way
    return Case(
        rows=rows,
        arrow=pa.schema(types),
        schema=Schema(columns.values()),
        models=tuple(draw(st.lists(_models(kept, has_population=bool(population)), min_size=1, max_size=3))),
        algorithm=algorithm,
        values=values,
        options=options,
        suppression_limit=draw(
            st.sampled_from([Fraction(0), Fraction(0), Fraction(1, 5), Fraction(1, 2), Fraction(1)])
        ),
        population=population,
        person="same person" if "person" in extra else None,
    )


def _column(name: str, role: str, kind: Kept) -> Column:
    return Column(name=name, role=role, **kind.facts)  # type: ignore[arg-type]


@st.composite
def _cells(draw: DrawFn, kind: Kept) -> SearchStrategy[Any]:
    """Return cells of a kind: few or many different ones, with or without missing ones."""
    chosen = draw(st.lists(st.sampled_from(kind.cells), min_size=1, max_size=5, unique=True))
    return st.sampled_from([*chosen, None] if draw(st.booleans()) else chosen)


@st.composite
def _populations(draw: DrawFn, rows: Sequence[Any], quasi: Sequence[str], kept: Mapping[str, Any]) -> list[Any]:
    """Return the rows themselves and others made of values that the table has."""
    domain = {name: sorted({row[name] for row in rows}, key=repr) for name in quasi}
    others = draw(
        st.lists(st.fixed_dictionaries({name: st.sampled_from(cells) for name, cells in domain.items()}), max_size=25)
    )
    return [*({name: row[name] for name in quasi} for row in rows), *others]


def _models(kept: Mapping[str, tuple[str, Kept]], *, has_population: bool) -> SearchStrategy[Guarantee]:
    return st.one_of(list(_possible_models(kept, has_population=has_population)))


def _possible_models(
    kept: Mapping[str, tuple[str, Kept]], *, has_population: bool
) -> Iterator[SearchStrategy[Guarantee]]:
    sizes = st.integers(1, 6)
    yield sizes.map(lambda k: KAnonymity(k=k))
    if has_population:
        yield sizes.map(lambda k: KMap(k=k))
        least = st.sampled_from([0, 0, Fraction(1, 4)])
        most = st.sampled_from([Fraction(1, 2), Fraction(3, 4), 1])
        yield st.builds(lambda low, high: DeltaPresence(delta_min=low, delta_max=high), least, most)
    for name, (role, kind) in kept.items():
        if role == "sensitive":
            yield from _models_of(name, kind)


def _models_of(name: str, kind: Kept) -> Iterator[SearchStrategy[Guarantee]]:
    some = st.sampled_from([1, Fraction(3, 2), 2, Fraction(13, 5), 3])
    whole = st.integers(1, 3)
    share = st.sampled_from([0, Fraction(1, 10), Fraction(1, 4), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10)])
    yield whole.map(lambda size: LDiversity(name, l=size))
    for variant in ("frequency", "entropy"):
        yield some.map(lambda size, variant=variant: LDiversity(name, l=size, kind=variant))
    yield st.builds(lambda size, c: LDiversity(name, l=size, c=c, kind="recursive"), whole, some)
    distances = ["equal", "variational", "kl"]
    distances += ["ordered"] if kind.facts.get("kind") == "numeric" else []
    distances += ["hierarchical"] if "hierarchy" in kind.facts else []
    yield st.builds(lambda t, variant: TCloseness(name, t=t, kind=variant), share, st.sampled_from(distances))
    yield st.builds(lambda alpha, k: AlphaKAnonymity(name, alpha=alpha, k=k), share, st.integers(1, 4))
    yield st.builds(lambda p, more: PSensitivity(name, p=p, k=p + more), whole, whole)
    yield st.builds(
        lambda beta, variant: BetaLikeness(name, beta=beta, kind=variant), some, st.sampled_from(["basic", "enhanced"])
    )
