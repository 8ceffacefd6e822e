from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from cloister.data.interval_labels import IntervalIndex, first_overlap, interval_in, number_in


@pytest.mark.parametrize(
    ("label", "inside", "outside"),
    [
        ("[30, 35)", ["30", "34.9"], ["35", "29"]),
        ("[30,35[", ["30"], ["35"]),
        ("(30, 35]", ["31", "35"], ["30"]),
        ("]30;35]", ["35"], ["30"]),
        ("30-34", ["30", "34"], ["35", "29.9"]),
        ("30\u201334", ["34"], ["35"]),
        ("30..34", ["34"], ["35"]),
        ("30 to 34", ["34"], ["35"]),
        ("-5--1", ["-5", "-1"], ["0", "-6"]),
        ("<30", ["29.9", "-100"], ["30"]),
        ("<=30", ["30"], ["30.1"]),
        ("\u226430", ["30"], ["30.1"]),
        (">40", ["40.1", "1000"], ["40"]),
        (">=40", ["40"], ["39"]),
        ("\u226540", ["40"], ["39"]),
        ("90+", ["90", "120"], ["89"]),
    ],
)
def test_names_of_intervals_are_understood(label: str, inside: list[str], outside: list[str]) -> None:
    interval = interval_in(label)
    assert interval is not None
    assert all(interval.contains(Fraction(value)) for value in inside)
    assert not any(interval.contains(Fraction(value)) for value in outside)


@pytest.mark.parametrize(
    "label", ["2024-01", "34-30", "A-B", "*", "", "1234*", "30-", "[30, 35", "Government", "1-" + "9" * 5000]
)
def test_other_names_are_no_intervals(label: str) -> None:
    assert interval_in(label) is None


def test_numbers() -> None:
    labels = ("39", "-1.5", "x", "\u0663", "9" * 5000)
    assert [number_in(label) for label in labels] == [39, Fraction(-3, 2), None, None, None]


@pytest.mark.parametrize(
    ("labels", "pair"),
    [
        (["31-40", "21-40"], ("21-40", "31-40")),
        (["36", "21-40"], ("21-40", "36")),
        (["<30", "20-40"], ("<30", "20-40")),
        ([">40", "<50"], ("<50", ">40")),
        (["0-100", "1-2", "50-60"], ("0-100", "1-2")),
        (["30-40", "30"], ("30", "30-40")),
        ([">=10", "20-30"], (">=10", "20-30")),
        (["(10, 20)", "10", "10-12"], ("(10, 20)", "10-12")),
        (["40", "40.0"], ("40", "40.0")),
        (["30-35", "35-40"], None),
        (["[30, 35)", "[35, 40)"], None),
        (["<30", "30-40", ">40", "others"], None),
        ([">40", "40"], None),
        ([], None),
    ],
)
def test_overlaps_are_found(labels: list[str], pair: tuple[str, str] | None) -> None:
    assert first_overlap(labels) == pair


def test_many_numbers_are_located_at_once() -> None:
    labels = ["<0", "(0, 10]", "(10, 20)", ">=20"]
    index = IntervalIndex([(code, part) for code, label in enumerate(labels) if (part := interval_in(label))])
    values = np.array([-5.0, 0.0, 10.0, 10.5, 20.0, np.inf, np.nan])
    assert index.locate(values, otherwise=-9).tolist() == [0, -9, 1, 2, 3, -9, -9]
