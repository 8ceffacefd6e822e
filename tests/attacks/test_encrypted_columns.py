from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from cloister.attacks import cumulative_attack, frequency_analysis, sorting_attack, volume_attack
from cloister.core.random import SeededRandomSource, SystemRandomSource, integers_below, permutation
from cloister.errors import ParameterError, ParameterTypeError
from cloister.testing import check_golden, load_golden

FOLDER = Path(__file__).parents[1] / "golden" / "attacks"


def deterministic(values: Any) -> list[bytes]:
    """Encrypt as far as an attacker can tell: equal values, and only those, have equal ciphertexts."""
    key = SystemRandomSource().random_bytes(32)
    return [hashlib.blake2b(str(value).encode(), key=key, digest_size=16).digest() for value in values]


def order_preserving(values: Any) -> list[int]:
    """Encrypt as far as an attacker can tell: by a random increasing function."""
    domain = sorted(set(values))
    steps = np.cumsum(1 + integers_below(SystemRandomSource(), 2**40, len(domain)))
    return [int(steps[domain.index(value)]) for value in values]


def column_of(shares: dict[str, float], rows: int) -> list[str]:
    values = [value for value, share in shares.items() for _ in range(round(share * rows))]
    return [values[place] for place in permutation(SeededRandomSource(1), len(values))]


def _diseases(*, shares: dict[str, float], rows: int, method: str) -> float:
    plain = column_of(shares, rows)
    return frequency_analysis(deterministic(plain), auxiliary=shares, truth=plain, method=method).success


def _ages(*, ages: int, rows: int) -> float:
    plain = [*range(ages), *integers_below(SystemRandomSource(), ages, rows - ages).tolist()]
    return sorting_attack(order_preserving(plain), domain=range(ages), truth=plain).success


def test_the_worked_examples() -> None:
    check_golden(load_golden(FOLDER / "frequencies_of_three_diseases.toml"), _diseases)
    check_golden(load_golden(FOLDER / "sorted_ages.toml"), _ages)


def test_randomized_encryption_gives_nothing_away() -> None:
    shares = {"flu": 0.6, "asthma": 0.3, "cancer": 0.1}
    plain = column_of(shares, 1000)
    result = frequency_analysis(list(range(1000)), auxiliary=shares, truth=plain)
    assert not result.succeeded
    assert result.success == pytest.approx(result.baseline, abs=0.01)
    assert result.distinct == 1000


def test_wrong_knowledge_reads_less() -> None:
    shares = {"flu": 0.6, "asthma": 0.3, "cancer": 0.1}
    plain = column_of(shares, 1000)
    wrong = frequency_analysis(deterministic(plain), auxiliary={"flu": 1, "asthma": 2, "cancer": 7}, truth=plain)
    assert wrong.success == pytest.approx(0.3)
    assert wrong.values_read == pytest.approx(1 / 3)


def test_a_column_beside_tells_equally_frequent_values_apart() -> None:
    plain = ["prostate"] * 50 + ["ovarian"] * 50
    sex = ["M"] * 49 + ["F"] + ["F"] * 49 + ["M"]
    sample, sample_sex = ["ovarian"] * 10 + ["prostate"] * 10, ["F"] * 10 + ["M"] * 10
    beside = frequency_analysis(
        deterministic(plain),
        auxiliary=sample,
        truth=plain,
        method="assignment",
        beside=sex,
        auxiliary_beside=sample_sex,
    )
    assert beside.success == 1
    alone = frequency_analysis(deterministic(plain), auxiliary=sample, truth=plain)
    assert alone.success in {0, 1}
    assert "a column beside" in beside.assumption


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=8, unique=True))
def test_distinct_frequencies_are_always_matched(counts: list[int]) -> None:
    plain = [place for place, count in enumerate(counts) for _ in range(count)]
    auxiliary = dict(enumerate(counts))
    for method in ("rank", "assignment"):
        assert frequency_analysis(deterministic(plain), auxiliary=auxiliary, truth=plain, method=method).success == 1


def test_the_cumulative_attack_reads_what_ranks_cannot() -> None:
    source = SeededRandomSource(3)
    # Salaries in steps with many gaps: two samples of one skewed distribution.
    domain = np.arange(0, 400)
    weights = np.exp(-((np.log1p(domain) - 4) ** 2))
    cumulative = np.cumsum(weights / weights.sum())
    draws = [np.searchsorted(cumulative, source.words(many) / 2**64) for many in (3000, 3000)]
    plain, sample = ([int(value) * 100 for value in drawn] for drawn in draws)
    ciphertexts = order_preserving(plain)
    cumulated = cumulative_attack(ciphertexts, auxiliary=sample, truth=plain)
    sorted_only = sorting_attack(ciphertexts, domain=(domain * 100).tolist(), truth=plain)
    assert cumulated.success > sorted_only.success
    assert cumulated.succeeded


def test_the_cumulative_attack_reads_a_dense_column_as_well() -> None:
    plain = [age for age in range(30) for _ in range(1 + age % 4)]
    auxiliary = {age: 1 + age % 4 for age in range(30)}
    assert cumulative_attack(order_preserving(plain), auxiliary=auxiliary, truth=plain).success == 1


def test_sorting_says_little_about_shuffled_ciphertexts() -> None:
    plain = list(range(100))
    shuffled = permutation(SeededRandomSource(4), 100).tolist()
    result = sorting_attack(shuffled, domain=plain, truth=plain)
    assert result.success < 0.1
    assert not result.succeeded


@pytest.mark.parametrize("wrap", [list, np.array, pd.Series, pa.array], ids=["list", "array", "series", "arrow"])
def test_columns_of_every_kind_are_read(wrap: Any) -> None:
    plain = ["a", "a", "b"]
    result = frequency_analysis(wrap([7, 7, 9]), auxiliary=wrap(["a", "a", "b"]), truth=wrap(plain))
    assert result.success == 1


def test_the_report_shows_no_value() -> None:
    plain = ["flu"] * 30 + ["cold"] * 29 + ["cancer"]
    result = frequency_analysis(deterministic(plain), auxiliary={"flu": 3, "cold": 2, "cancer": 1}, truth=plain)
    text = json.dumps(result.to_dict()) + repr(result) + result.verdict + str(result.summary())
    assert "cancer" not in text
    assert result.worst[0] == (59, 1.0)
    assert "3 different ciphertexts, 100% were read" in result.verdict
    assert "frequency analysis" in result.report().to_markdown()


@pytest.mark.parametrize(
    ("parameters", "error", "fix"),
    [
        ({"ciphertexts": []}, ParameterError, "leave missing values out"),
        ({"ciphertexts": [None, 1]}, ParameterError, "leave missing values out"),
        ({"ciphertexts": [math.nan, 1]}, ParameterError, "leave missing values out"),
        ({"ciphertexts": "ab"}, ParameterTypeError, "as a list"),
        ({"ciphertexts": [[1], [2]]}, ParameterTypeError, "one value for each row"),
        ({"auxiliary": {}}, ParameterError, "auxiliary="),
        ({"auxiliary": {"a": -1}}, ParameterError, "auxiliary="),
        ({"auxiliary": {"a": 0}}, ParameterError, "auxiliary="),
        ({"truth": ["a"]}, ParameterError, "one true value for every row"),
        ({"method": "ranks"}, ParameterError, "rank, assignment"),
        ({"beside": [1, 2]}, ParameterError, "both beside="),
        ({"beside": [1, 2], "auxiliary_beside": [1]}, ParameterError, "method="),
        ({"beside": [1, 2], "auxiliary_beside": [1], "method": "assignment"}, ParameterError, "as a sample"),
    ],
    ids=[
        "empty",
        "missing",
        "nan",
        "text",
        "lists",
        "no-values",
        "negative",
        "zero",
        "lengths",
        "method",
        "half-beside",
        "rank-beside",
        "beside-lengths",
    ],
)
def test_bad_input_is_refused_with_a_fix(parameters: dict[str, Any], error: type[Exception], fix: str) -> None:
    given_by = {"ciphertexts": [1, 2], "auxiliary": {"a": 1, "b": 2}, "truth": ["a", "b"], **parameters}
    with pytest.raises(error, match=fix):
        frequency_analysis(given_by.pop("ciphertexts"), **given_by)


def test_what_has_no_order_is_refused() -> None:
    with pytest.raises(ParameterTypeError, match="bytes of one length"):
        sorting_attack([1, "a"], domain=[1, 2], truth=[1, 2])
    with pytest.raises(ParameterTypeError, match="not a mixture"):
        sorting_attack([1, 2], domain=[1, "a"], truth=[1, 2])


def test_different_volumes_give_searches_away_and_padded_ones_do_not() -> None:
    rows = {"flu": 600, "asthma": 300, "cancer": 100}
    searches = ["flu", "cancer", "asthma", "cancer"] * 20
    sizes = [rows[disease] for disease in searches]
    exposed = volume_attack(sizes, auxiliary={name: size + 15 for name, size in rows.items()}, truth=searches)
    assert exposed.success == 1
    assert exposed.succeeded
    padded = volume_attack([1024] * len(sizes), auxiliary=rows, truth=searches)
    assert not padded.succeeded
    assert padded.distinct == 1


@pytest.mark.parametrize(
    ("parameters", "error", "fix"),
    [
        ({"volumes": []}, ParameterError, "leave missing values out"),
        ({"volumes": [-1]}, ParameterError, "from 0"),
        ({"volumes": ["many"]}, ParameterError, "finite number"),
        ({"auxiliary": {}}, ParameterTypeError, "auxiliary="),
        ({"auxiliary": ["a"]}, ParameterTypeError, "auxiliary="),
        ({"truth": ["a", "b"]}, ParameterError, "one true value for every row"),
    ],
    ids=["empty", "negative", "words", "no-values", "list", "lengths"],
)
def test_bad_volumes_are_refused_with_a_fix(parameters: dict[str, Any], error: type[Exception], fix: str) -> None:
    given_by = {"volumes": [5], "auxiliary": {"a": 5}, "truth": ["a"], **parameters}
    with pytest.raises(error, match=fix):
        volume_attack(given_by.pop("volumes"), **given_by)
