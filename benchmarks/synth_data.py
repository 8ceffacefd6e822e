"""Adult as cells for the benchmark of synthetic tables, and how tables of cells are judged."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from benchmarks.learn_data import DATA
from benchmarks.usage import cpu_seconds, peak_mebibytes
from cloister.data.columns import Column
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.synth._cell_counts import count_cells

TARGET = "salary-class"
LEFT_OUT = "education-num"
BOUNDS = {
    "age": (17, 91),
    "fnlwgt": (12_000, 1_500_000),
    "capital-gain": (0, 100_000),
    "capital-loss": (0, 4_500),
    "hours-per-week": (1, 100),
}
BINS = 32

Codes = NDArray[np.int32]


@dataclass(frozen=True)
class Cells:
    """The training and the test file as cells."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    values: dict[str, list[str]]
    train: Codes
    test: Codes

    def read_rows(self, path: Path) -> Codes:
        """Return synthetic rows of cells that a run wrote."""
        return np.load(path).astype(np.int32)

    def coded(self, table: pa.Table) -> Codes:
        """Return a table as cells."""
        return np.stack([_codes(table[name], name, self.values) for name in self.names], axis=1).astype(np.int32)


def _read(name: str) -> pa.Table:
    options = pacsv.ConvertOptions(strings_can_be_null=False)
    return pacsv.read_csv(DATA / "adult" / name, convert_options=options).drop_columns([LEFT_OUT])


def _edges(name: str) -> list[float]:
    low, high = BOUNDS[name]
    return [float(edge) for edge in np.linspace(low, high, BINS + 1)]


def _codes(column: Any, name: str, values: dict[str, list[str]]) -> Any:
    if name in BOUNDS:
        return np.searchsorted(_edges(name)[1:-1], column.to_numpy(), side="right")
    place = {value: position for position, value in enumerate(values[name])}
    return np.array([place[item] for item in column.to_pylist()])


def adult_cells() -> Cells:
    """Return both files; every value of either is public."""
    train, test = _read("adult.csv"), _read("adult_test.csv")
    names = tuple(train.column_names)
    values = {name: sorted({*train[name].to_pylist(), *test[name].to_pylist()}) for name in names if name not in BOUNDS}
    sizes = tuple(BINS if name in BOUNDS else len(values[name]) for name in names)
    cells = Cells(names, sizes, values, np.empty((0, 0), np.int32), np.empty((0, 0), np.int32))
    return Cells(names, sizes, values, cells.coded(train), cells.coded(test))


def distances(cells: Cells, codes: Codes) -> dict[int, float]:
    """Return the mean total variation over all sets of one, two and three columns."""
    real, made = (
        [np.ascontiguousarray(item[:, place]) for place in range(item.shape[1])] for item in (cells.train, codes)
    )
    found = {}
    for many in (1, 2, 3):
        each = []
        for part in combinations(range(len(cells.names)), many):
            shape = tuple(cells.sizes[column] for column in part)
            shares = [count_cells([item[column] for column in part], shape) / len(item[0]) for item in (real, made)]
            each.append(0.5 * np.abs(shares[0] - shares[1]).sum())
        found[many] = float(np.mean(each))
    return found


def auc(cells: Cells, codes: Codes) -> float:
    """Return the area under the curve, on the test file, of a model that was trained on synthetic rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    label = cells.names.index(TARGET)
    features = [place for place in range(len(cells.names)) if place != label]
    nominal = [number for number, place in enumerate(features) if cells.names[place] not in BOUNDS]
    model = HistGradientBoostingClassifier(categorical_features=nominal, random_state=0)
    model.fit(codes[:, features], codes[:, label])
    return float(roc_auc_score(cells.test[:, label], model.predict_proba(cells.test[:, features])[:, 1]))


def fitted(kind: str, epsilon: float, delta: float, folder: str) -> dict[str, float]:
    """Fit a synthesizer, write as many rows as there are as cells to a folder, and return what it cost."""
    from cloister import synth

    cells = adult_cells()
    schema = Schema(
        Column(name=name, kind="numeric", bounds=BOUNDS[name])
        if name in BOUNDS
        else Column(name=name, kind="nominal", categories=tuple(cells.values[name]))
        for name in cells.names
    )
    table = open_table(_read("adult.csv"), schema=schema)
    bins = {name: _edges(name) for name in BOUNDS}
    made = getattr(synth, kind)(epsilon=epsilon, delta=delta, bins=bins, complete=True)
    start = cpu_seconds()
    made.fit(table)
    drawn = made.sample(len(cells.train)).to_arrow()
    seconds = cpu_seconds() - start
    np.save(Path(folder) / "rows.npy", cells.coded(drawn))
    _write_measured(made, cells, folder)
    return {"CPU s": seconds, "MB": peak_mebibytes(), "loss": _loss(made)}


def _write_measured(made: Any, cells: Cells, folder: str) -> None:
    facts = {
        "sizes": list(cells.sizes),
        "rows": len(cells.train),
        "measured": [[list(item.columns), item.deviation] for item in made.measurements_],
    }
    (Path(folder) / "measured.json").write_text(json.dumps(facts))
    np.savez(
        Path(folder) / "measured.npz", **{f"m{place}": item.values for place, item in enumerate(made.measurements_)}
    )


def _loss(made: Any) -> float:
    """Return the least-squares loss of the model on what was measured."""
    return sum(
        float(((made.model_.marginal(item.columns) * made.model_.total - item.values) ** 2).sum())
        / (2 * item.deviation**2)
        for item in made.measurements_
    )
