from __future__ import annotations

import json
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import cloister
from cloister.core.wordings import (
    Rounding,
    a_or_an,
    format_count,
    format_estimate,
    format_factor,
    format_number,
    format_parameter,
    format_points,
    format_price,
    format_with_margin,
    join_words,
    percent,
)

CHANCES = Path(cloister.__file__).parent / "hub" / "web" / "static" / "survey" / "chances.js"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0%"),
        (2.359e-9, "below 0.01%"),
        (0.0000999, "below 0.01%"),
        (0.0001, "0.01%"),
        (0.0005176, "0.0518%"),
        (0.054721, "5.47%"),
        (0.07, "7%"),
        (0.5, "50%"),
        (Fraction(1, 3), "33.3%"),
        (0.9895, "99%"),
        (0.9949, "99.49%"),
        (0.9998, "99.98%"),
        (0.99999, "above 99.99%"),
        (1, "100%"),
        (1.0001, "above 100%"),
        (1.234, "123%"),
        (12.345, "1,230%"),
        (-0.25, "-25%"),
        (-0.00001, "above -0.01%"),
        (float("nan"), "nan%"),
    ],
)
def test_shares_are_numbers_that_people_read(share: float, text: str) -> None:
    assert percent(share) == text


@given(st.floats(0, 1), st.integers(2, 4), st.sampled_from(["nearest", "up", "down"]))
def test_a_share_reads_as_nothing_or_everything_only_if_it_is(share: float, digits: int, rounding: Rounding) -> None:
    shown = percent(share, digits=digits, rounding=rounding)
    assert (shown == "0%") == (share == 0)
    assert (shown == "100%") == (share == 1)


@given(st.fractions(Fraction(1, 10_000), Fraction(9_999, 10_000)), st.integers(2, 4))
def test_a_bound_is_rounded_to_the_side_where_it_stays_true(share: Fraction, digits: int) -> None:
    low, high = (Fraction(percent(share, digits=digits, rounding=side).rstrip("%")) for side in ("down", "up"))  # type: ignore[arg-type]  # mypy takes the names for any texts
    assert low <= 100 * share <= high
    near = Fraction(percent(share, digits=digits).rstrip("%"))
    assert near in (low, high)


def test_a_round_share_stays_round_whichever_way() -> None:
    for share in range(1, 100):
        assert {percent(share / 100, digits=2, rounding=way) for way in ("up", "down", "nearest")} == {f"{share}%"}  # type: ignore[arg-type]  # mypy takes the names for any texts


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.0, "0"),
        (-3, "-3"),
        (1_234_567, "1,234,567"),
        (np.int64(1_234_567), "1,234,567"),
        (np.float32(0.5), "0.5"),
        (123.456, "123.5"),
        (29831.4, "29,831"),
        (99999.5, "100,000"),
        (0.1 + 0.2, "0.3"),
        (0.0123449, "0.01234"),
        (0.00001234, "1.234e-05"),
        (1e20, "1e+20"),
        (float("inf"), "inf"),
    ],
)
def test_numbers_have_a_few_digits(value: float, text: str) -> None:
    assert format_number(value) == text


@pytest.mark.parametrize(
    ("value", "margin", "text"),
    [
        (47.31, 1.92, "47.3 ± 1.9"),
        (1234567, 120, "1,234,567 ± 120"),
        (29831.4, 2211.9, "29,831 ± 2,212"),
        (1234.5678, 2.0, "1,235 ± 2"),
        (-7.0113, 0.2312, "-7.01 ± 0.23"),
        (2e-9, 1e-9, "2e-09 ± 1e-09"),
        (3.2e17, 1e15, "3.2e+17 ± 1e+15"),
    ],
)
def test_numbers_have_the_decimals_that_their_margin_deserves(value: float, margin: float, text: str) -> None:
    assert format_with_margin(value, margin) == text


def test_a_number_without_a_margin_has_six_digits() -> None:
    margins = (None, 0.0, float("nan"), float("inf"))
    assert {format_estimate(1234.56789, margin) for margin in margins} == {"1,234.57"}


def test_prices_and_parameters() -> None:
    assert format_price("epsilon", Fraction(1, 2)) == "epsilon 0.5"
    assert format_price("rho", Fraction(1, 3), Fraction(1, 10**6)) == "rho 0.333333, delta 1e-06"
    assert format_parameter(Fraction(1, 10**400)) == "1e-400"
    assert format_parameter(12_345_678) == "12345678"


@given(st.fractions(1, 10**9))
def test_a_factor_is_never_understated(factor: Fraction) -> None:
    shown = Fraction(format_factor(factor).replace(",", ""))
    assert factor * (1 - Fraction(1, 10**12)) <= shown <= factor * Fraction(1011, 1000)


def test_words() -> None:
    assert [format_count(number, "person", "people") for number in (0, 1, 2000)] == [
        "0 people",
        "1 person",
        "2,000 people",
    ]
    assert [join_words(names) for names in ((), "a", "ab", "abc")] == ["", "a", "a and b", "a, b and c"]
    assert [a_or_an(noun) for noun in ("epsilon", "hour", "user")] == ["an epsilon", "an hour", "a user"]


@pytest.mark.node
def test_the_pages_of_a_survey_word_chances_alike() -> None:
    shares = [place / 1000 for place in range(1001)] + [1e-7, 0.00012, 0.98201, 0.99951, 1 - 1e-7]
    script = (
        f'import {{ plainly }} from "{CHANCES.as_uri()}";'
        'const told = (truth) => plainly({ name: "direct_encoding", params: { truth } });'
        f"console.log(JSON.stringify({json.dumps([str(int(share * 2**64)) for share in shares])}.map(told)));"
    )
    done = subprocess.run(["node", "--input-type=module", "-e", script], capture_output=True, text=True, check=True)
    for share, told in zip(shares, json.loads(done.stdout), strict=True):
        assert f"with probability {percent(share, rounding='up')};" in told


def test_points_are_rounded_as_the_shares_whose_difference_they_are() -> None:
    assert format_points(0.5 - 0.1234) == "37.7"
    assert format_points(0.09) == "9"
    assert format_points(0.00885) == "0.885"
    assert format_points(Fraction(1, 3), digits=2, rounding="up") == "34"
    assert [format_points(part, signed=True) for part in (0.7, 0, -0.02)] == ["+70", "0", "-2"]
    assert format_points(1e-6, signed=True) == "below +0.01"
    assert format_points(12.34, digits=2) == "1,200"
