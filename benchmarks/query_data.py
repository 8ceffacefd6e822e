"""The table that private queries are measured on, its exact answers, and how far answers are off.

Rows per person are log-normal (median 5, sigma 0.78, at least 1), so that a limit of 10 rows per person gives up about
18 % of the rows, while hardly any person has more than 50. Every row is in a group of its own choice; values are in
[0, 100], with a mean between 40 and 60 that differs by group. The same rows come out on every machine.

Other shapes of the same size show what memory depends on: persons with four rows each on average, few persons with most
of the rows, and persons with long names.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy.special import ndtri

from cloister.core.random import RandomSource, SeededRandomSource, integers_below, permutation

ROWS = 10_000_000
GROUPS = 1000
LIMIT = 10
MEDIAN_ROWS, SPREAD = 5, 0.78
SHAPES = ("", "even", "skewed", "long names")
"""The first one is that of the other benchmarks."""
_UNIT = 2**32

Answers = dict[str, list[float]]


def write_table(path: Path, *, rows: int = ROWS, groups: int = GROUPS, shape: str = "") -> None:
    """Write a Parquet file with the columns ``grp``, ``person`` and ``value``."""
    source = SeededRandomSource(3)
    group = integers_below(source, groups, rows)
    center = 40 + 20 * _uniform(source, groups)
    value = np.clip(center[group] + 20 * ndtri(_uniform(source, rows)), 0, 100)
    person = _shaped(source, rows, shape) if shape else _persons(source, rows)
    pq.write_table(pa.table({"grp": group, "person": person, "value": value}), path)


def exact_answers(path: Path) -> Answers:
    """Return count, sum and mean of every group over all rows."""
    return _answers(f"SELECT count(*), sum(value) FROM {_file(path)} GROUP BY grp ORDER BY grp")


def bounded_answers(path: Path, *, limit: int = LIMIT) -> Answers:
    """Return what is left of every group when each person keeps ``limit`` rows.

    A row counts min(1, limit / rows of its person): the weight of our exact core, up to its lattice, and the chance
    that a tool which samples rows keeps it.
    """
    persons = f"SELECT person, least(1, {limit} / count(*)) AS w FROM {_file(path)} GROUP BY person"
    return _answers(
        f"SELECT sum(w), sum(w * value) FROM {_file(path)} JOIN ({persons}) USING (person) GROUP BY grp ORDER BY grp"
    )


def median_errors(answers: Answers, truth: Answers) -> dict[str, float]:
    """Return the median over groups of the absolute error of every measure."""
    return {
        name: float(np.median(np.abs(np.asarray(answers[name]) - np.asarray(truth[name])))) for name in ("n", "s", "m")
    }


def _answers(sql: str) -> Answers:
    counts, sums = (np.asarray(column, dtype=np.float64) for column in duckdb.sql(sql).fetchnumpy().values())
    return {"n": counts.tolist(), "s": sums.tolist(), "m": (sums / counts).tolist()}


def _persons(source: RandomSource, rows: int) -> np.ndarray:
    """Return the person of every row, in random order."""
    people = rows // 4 + 10
    wanted = np.exp(np.log(MEDIAN_ROWS) + SPREAD * ndtri(_uniform(source, people)))
    of_each = np.maximum(1, np.rint(wanted)).astype(np.int64)
    return np.repeat(np.arange(people), of_each)[:rows][permutation(source, rows)]


def _shaped(source: RandomSource, rows: int, shape: str) -> np.ndarray | pa.Array:
    """Return the person of every row: one of a quarter as many as there are rows."""
    if shape == "skewed":  # half of the rows are those of a sixteenth of the persons, and some persons have thousands
        return np.floor(rows // 4 * _uniform(source, rows) ** 4).astype(np.int64)
    person = integers_below(source, rows // 4, rows)
    if shape == "even":
        return person
    return pc.binary_join_element_wise("a hospital's long name for patient", pc.cast(person, pa.string()), " ")


def _uniform(source: RandomSource, count: int) -> np.ndarray:
    return (integers_below(source, _UNIT, count) + 0.5) / _UNIT


def _file(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
