"""Adult as anonymization is measured on it: 30,162 complete rows, eight quasi-identifiers, and larger bootstraps.

Hierarchies are those of the shared data, trimmed to the values of the data: ages 17 to 90, seven work classes. Losses
then have the domains that published figures have. The folder is CLOISTER_DATA, by default ``../shared/data``.
"""

from __future__ import annotations

import csv
import os
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

import cloister as cl
from cloister.core.random import SeededRandomSource, integers_below
from cloister.errors import DataWarning

DATA = Path(os.environ.get("CLOISTER_DATA", Path(__file__).parents[2] / "shared" / "data"))
QUASI = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")
SENSITIVE = "salary-class"
K = 5
_BLOCK = 1_000_000


def adult_file() -> Path:
    """Return the file with the 30,162 complete rows and nine columns."""
    return DATA / "adult" / "adult_complete_9.csv"


def rows() -> pa.Table:
    """Return the complete rows of Adult."""
    return pyarrow.csv.read_csv(adult_file())


def domain(name: str) -> list[str]:
    """Return the values of a quasi-identifier: all ages from the lowest to the highest, else the values that occur."""
    found = sorted(set(rows()[name].to_pylist()))
    return [str(value) for value in range(found[0], found[-1] + 1)] if name == "age" else found


def paths_to_root(name: str) -> list[list[str]]:
    """Return the trimmed hierarchy of a column: for each value its names from the finest to ``*``."""
    wanted = set(domain(name))
    path = DATA / "adult" / "hierarchies" / f"adult_hierarchy_{name}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.reader(file, delimiter=";") if row and row[0] in wanted]


def schema() -> cl.Schema:
    """Return the schema with trimmed hierarchies."""
    columns = [
        cl.Column(
            name=name,
            role="quasi",
            kind="numeric" if name == "age" else "nominal",
            hierarchy=_hierarchy(name),
        )
        for name in QUASI
    ]
    return cl.Schema([*columns, cl.Column(name=SENSITIVE, role="sensitive")])


def _hierarchy(name: str) -> cl.Hierarchy:
    """Return a trimmed hierarchy; the published one puts some ages beside their intervals, which it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return cl.Hierarchy.parse("\n".join(map(";".join, paths_to_root(name))))


def write_bootstrap(path: Path, *, size: int, redrawn: bool = False) -> None:
    """Write so many rows of Adult, drawn with replacement: the same ones every time.

    Combinations that are rare in Adult are frequent in a large bootstrap, so that there is little to protect. With
    ``redrawn``, one quasi-identifier of each row is drawn anew from its column: most combinations are rare again.
    """
    original, source = rows(), SeededRandomSource(30_162)
    with pq.ParquetWriter(path, original.schema) as writer:
        for start in range(0, size, _BLOCK):
            count = min(_BLOCK, size - start)
            drawn = original.take(pa.array(integers_below(source, original.num_rows, count)))
            writer.write_table(_redrawn(drawn, original, source) if redrawn else drawn)


def _redrawn(drawn: pa.Table, original: pa.Table, source: SeededRandomSource) -> pa.Table:
    chosen = integers_below(source, len(QUASI), drawn.num_rows)
    for place, name in enumerate(QUASI):
        other = original[name].take(pa.array(integers_below(source, original.num_rows, drawn.num_rows)))
        column = pc.if_else(pa.array(chosen == place), other, drawn[name])
        drawn = drawn.set_column(drawn.schema.get_field_index(name), name, column)
    return drawn


def write_sample(path: Path, *, size: int | None = None) -> None:
    """Write Adult as it is, or its first rows, as Parquet."""
    pq.write_table(rows().slice(0, size), path)
