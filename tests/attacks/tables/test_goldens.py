from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cloister import attacks
from cloister.testing import check_golden, load_goldens

FOLDER = Path(__file__).parents[2] / "golden" / "attacks"


def _released(classes: list[list[Any]]) -> pa.Table:
    """Return a table of classes, each with its members' values."""
    return pa.table(
        {
            "class": [f"c{number}" for number, values in enumerate(classes) for _ in values],
            "value": [value for values in classes for value in values],
        }
    )


OPTIONS: dict[str, Any] = {"quasi_identifiers": ["class"], "sensitive": "value"}


def _linked(*, rows: list[list[str]], diseases: list[str], person: list[str]) -> dict[str, Any]:
    names = ["gender", "age", "zip"]
    released = pa.table(
        {name: [row[place] for row in rows] for place, name in enumerate(names)} | {"disease": diseases}
    )
    wanted = pa.table({name: [value] for name, value in zip(names, person, strict=True)})
    found = attacks.linkage(released, wanted, quasi_identifiers=names, truth=[rows.index(person)])
    learned = attacks.homogeneity(released, quasi_identifiers=names, sensitive="disease")
    return {
        "candidates": round(1 / found.largest_risk) if found.unique_matches else 0,
        "disease": [diseases[position] for position, _ in found.worst],
        "unique": round(attacks.uniqueness(released, columns=names).success * len(rows)),
    } | ({} if learned.success else {"disease": []})


def _homogeneous(*, classes: list[list[str]]) -> dict[str, Any]:
    released = _released(classes)
    found = attacks.homogeneity(released, **OPTIONS)
    values = released["value"].to_pylist()
    return {"share": found.success, "values": sorted({values[position] for position, _ in found.worst})}


def _excluded(*, classes: list[list[str]], excluded: Any) -> dict[str, float]:
    found = attacks.background_knowledge(_released(classes), excluded=excluded, **OPTIONS)
    return {
        "posterior": found.largest_posterior,
        "share": found.success,
        "fewest": dict(found.facts)["fewest exclusions to certainty"],
    }


def _probable(*, classes: list[list[str]]) -> dict[str, float]:
    found = attacks.probabilistic_inference(_released(classes), **OPTIONS)
    return {"largest": found.largest_posterior, "prior": found.baseline}


def _lifted(*, positive: int, negative: int, others: int) -> dict[str, float]:
    classes = [["positive"] * positive + ["negative"] * negative, ["negative"] * others]
    found = attacks.skewness(_released(classes), value="positive", **OPTIONS)
    facts = dict(found.facts)
    return {
        "lift": facts["largest lift"],
        "prior": found.prior,
        "posterior": found.largest_posterior,
        "distance": facts["largest distance from the table"],
    }


def _similar(*, classes: list[list[Any]], categories: Any) -> float:
    return attacks.similarity(_released(classes), categories=categories, **OPTIONS).success


def _hospitals(*, first: list[str], second: list[str]) -> list[str]:
    releases = [pa.table({name: [1] * 3, "illness": values}) for name, values in (("a", first), ("b", second))]
    person = pa.table({"a": [1], "b": [1]})
    everything = sorted({*first, *second})
    return [
        value
        for value in everything
        if attacks.intersection(
            releases, person, quasi_identifiers=["a", "b"], sensitive="illness", truth=[value]
        ).success
    ]


def _classes(*, rows: list[list[Any]]) -> dict[str, Any]:
    zips, ages, values = (list(column) for column in zip(*rows, strict=True))
    names = {"row": list(range(len(rows))), "value": values}
    first = pa.table({"zip": [f"{code}**" for code in zips]} | names)
    second = pa.table({"age": [f"{age // 10 * 10}-{age // 10 * 10 + 9}" for age in ages]} | names)
    people = pa.table({"zip": [f"{code}21" for code in zips], "age": ages})
    found = attacks.intersection(
        [first, second], people, quasi_identifiers=["zip", "age"], sensitive="value", record="row"
    )
    alone = attacks.intersection(
        [second, second], people, quasi_identifiers=["zip", "age"], sensitive="value", record="row"
    )
    return {
        "first": found.candidates[0][1],
        "second": alone.candidates[0][1],
        "both": found.candidates[1][1],
        "resolved": found.success,
    }


def _joined(*, prescriptions: list[list[str]], visits: list[list[str]]) -> dict[str, Any]:
    first = pa.table({"user": [row[0] for row in prescriptions], "drug": [row[1] for row in prescriptions]})
    second = pa.table({"user": [row[0] for row in visits], "pharmacy": [row[1] for row in visits]})
    found = attacks.correlation(first, second, on="user")
    return {"gained": found.gained, "before": found.baseline, "after": found.success}


def _minimal(*, sizes: list[int], hits: int, l: int) -> list[float]:  # noqa: E741
    return list(attacks.posterior_of_groups(sizes, hits, l=l))


def _alike(*, first: str, second: str) -> float:
    return float(attacks.jaro_winkler([first], [second])[0])


def _randomized(*, matrix: Any, columns: Any) -> dict[str, Any]:
    found = attacks.pram_intersection(columns, categories=["no", "yes"], matrices=[matrix] * len(columns))
    return {"resolved": list(found.resolved)}


FUNCTIONS: dict[str, Any] = {
    "linkage_of_one_man": _linked,
    "homogeneous_classes": _homogeneous,
    "excluded_values": _excluded,
    "probable_values": _probable,
    "lifted_values": _lifted,
    "similar_values": _similar,
    "intersected_hospitals": _hospitals,
    "intersected_classes": _classes,
    "joined_sources": _joined,
    "minimality_of_seven": _minimal,
    "similar_texts": _alike,
    "randomized_twice": _randomized,
}
GOLDENS = [golden for golden in load_goldens(FOLDER) if golden.name in FUNCTIONS]


@pytest.mark.parametrize("golden", GOLDENS, ids=str)
def test_worked_examples(golden: Any) -> None:
    check_golden(golden, FUNCTIONS[golden.name])


def test_every_worked_example_of_tables_is_checked() -> None:
    assert {golden.name for golden in GOLDENS} == set(FUNCTIONS)
