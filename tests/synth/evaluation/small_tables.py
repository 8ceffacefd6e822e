"""Small tables with public facts, and a synthesizer that repeats the rows it has seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import cloister as cl
from cloister.core.guarantees import Guarantee, NoGuarantee
from cloister.core.random import RandomSource, SeededRandomSource, integers_below
from cloister.data.table import Table
from cloister.synth.base import SynthesisFacts, Synthesizer
from cloister.synth.evaluation._coded_tables import Tables, read_tables
from cloister.synth.inference._marginal_model import uniforms

LETTERS = cl.Schema(
    [
        cl.Column(name="letter", categories=["x", "y", "z"]),
        cl.Column(name="color", categories=["red", "blue"], role="sensitive"),
        cl.Column(name="size", kind="numeric", bounds=(0, 3)),
    ]
)


def letters(rows: list[tuple[Any, ...]], *, schema: Any = LETTERS) -> Table:
    """Return a table of letters, colors and sizes."""
    listed = list(zip(*rows, strict=True)) if rows else [[], [], []]
    kinds = (pa.string(), pa.string(), pa.int64())
    named = zip(("letter", "color", "size"), listed, kinds, strict=True)
    return cl.open_table(pa.table({name: pa.array(values, kind) for name, values, kind in named}), schema=schema)


def compared(
    real: list[tuple[Any, ...]], synthetic: list[tuple[Any, ...]], holdout: Any = None, **given: Any
) -> Tables:
    """Return two tables of letters, ready to be compared."""
    control = None if holdout is None else letters(holdout)
    return read_tables(letters(real), letters(synthetic), holdout=control, **given)


PEOPLE = cl.Schema(
    [
        cl.Column(name="age", kind="numeric", bounds=(0, 100)),
        cl.Column(name="pay", kind="numeric", bounds=(0.0, 10.0)),
        cl.Column(name="job", categories=["clerk", "nurse", "pilot", "smith"]),
        cl.Column(name="ill", categories=["no", "yes"], role="sensitive"),
    ]
)


def people(count: int, *, seed: int, schema: Any = PEOPLE) -> Table:
    """Return made-up people whose illness follows from age and job, and whose pay follows from job; opened once."""
    return _opened_people(count, seed).with_schema(schema)


@cache
def _opened_people(count: int, seed: int) -> Table:
    source = SeededRandomSource(seed)
    ages = integers_below(source, 100, count)
    jobs = integers_below(source, 4, count)
    noise, other = uniforms(source, count), uniforms(source, count)
    ill = noise < np.where(ages > 50, 0.85, 0.1)
    return cl.open_table(
        pa.table(
            {
                "age": ages,
                "pay": 1.0 + 2 * jobs + other,
                "job": pa.array(["clerk", "nurse", "pilot", "smith"]).take(pa.array(jobs)),
                "ill": pa.array(["no", "yes"]).take(pa.array(ill.astype(int))),
            }
        )
    )


@dataclass(kw_only=True, eq=False, repr=False)
class Memorizer(Synthesizer):
    """Repeats rows that it has seen: what no synthesizer must do."""

    rows_seen_: pa.Table = field(init=False)

    def _promise(self, facts: SynthesisFacts) -> tuple[Guarantee, None]:
        del facts
        return NoGuarantee(reason="it repeats the rows that it has seen"), None

    def _expectations(self, facts: SynthesisFacts) -> tuple[Any, ...]:
        del facts
        return ()

    def _learn(self, facts: SynthesisFacts, rows: Table, source: RandomSource) -> None:
        del source
        self.rows_seen_ = rows.to_arrow().select(list(facts.order))
        self.rows_, self.steps_ = float(len(self.rows_seen_)), ()

    def _draw(self, count: int, conditions: dict[str, Any], source: RandomSource) -> dict[str, Any]:
        del conditions, source
        drawn = self.rows_seen_.take(pa.array(np.arange(count) % len(self.rows_seen_)))
        return {name: drawn.column(name) for name in drawn.column_names}

    def _learned_state(self) -> dict[str, Any]:
        return {}

    def _restore(self, state: dict[str, Any]) -> None:
        del state
