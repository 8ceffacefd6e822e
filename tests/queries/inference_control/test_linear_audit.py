from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.queries.inference_control import _linear_audit as linear_audit
from cloister.queries.inference_control._linear_audit import Audit, Mask
from tests.queries.inference_control.controlled import pairs_given_away, singles_given_away, spans
from tests.support.thoroughness import examples


def mask(text: str) -> Mask:
    return np.array([letter == "1" for letter in text])


def asked(audit: Audit, *texts: str) -> Audit:
    for text in texts:
        after = audit.permit_set(mask(text))
        assert after is not None, text
        audit = after
    return audit


def test_the_difference_of_two_sets_is_refused_when_it_is_one_row() -> None:
    audit = asked(Audit.of(6), "111111")
    assert audit.permit_set(mask("111110")) is None
    assert audit.permit_set(mask("100000")) is None
    assert audit.permit_set(mask("111000")) is not None


def test_a_difference_of_two_rows_is_refused_for_those_who_are_one_of_them() -> None:
    assert asked(Audit.of(6), "111111").permit_set(mask("111100")) is None
    assert asked(Audit.of(6, pairs=False), "111111").permit_set(mask("111100")) is not None


def test_two_rows_can_follow_from_rows_that_are_not_short() -> None:
    """(a + c) and (b + c), each with more, differ in a and b alone."""
    audit = asked(Audit.of(7), "1011100")
    assert audit.permit_set(mask("0111100")) is None
    assert asked(Audit.of(7, pairs=False), "1011100").permit_set(mask("0111100")) is not None


def test_sums_that_follow_from_others_are_free() -> None:
    audit = asked(Audit.of(8), "11110000", "00001111")
    assert audit.permit_set(mask("11111111")) is audit
    assert asked(audit, "11111111", "11110000").rank == 2


def test_a_triangle_of_pairs_gives_each_of_three_away() -> None:
    audit = asked(Audit.of(6, pairs=False), "110000", "011000")
    assert audit.permit_set(mask("101000")) is None


def test_a_factor_of_one_half_is_found_to_be_a_dependence() -> None:
    """Half of the sum of (a+b), (b+c), (c+d), (d+a), over groups of three, is the total."""
    corners = ["111111000000", "000111111000", "000000111111", "111000000111"]
    audit = asked(Audit.of(12), *corners)
    assert audit.rank == 3
    assert audit.permit_set(mask("1" * 12)) is audit


def test_nothing_is_refused_of_an_empty_set() -> None:
    audit = Audit.of(4)
    assert audit.permit_set(mask("0000")) is audit


def test_what_was_answered_without_an_audit_stops_all_further_sums() -> None:
    audit = Audit.of(8).record_set(mask("10000000"))
    assert not audit.is_sound
    assert audit.permit_set(mask("00001111")) is None
    assert audit.permit_set(mask("10000000")) is audit


def test_a_basis_that_is_too_large_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = asked(Audit.of(12), "111111000000", "000111111000")
    monkeypatch.setattr(linear_audit, "LARGEST", 8)
    assert audit.permit_set(mask("000111111000")) is audit
    assert audit.permit_set(mask("000000000111")) is None
    unchecked = audit.record_set(mask("000000000111"))
    assert not unchecked.is_sound
    monkeypatch.undo()
    assert unchecked.permit_set(mask("111000111000")) is None


def test_a_dependence_that_cannot_be_proved_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = asked(Audit.of(8), "11110000", "00001111")
    monkeypatch.setattr(linear_audit, "as_fraction", lambda _: None)
    assert audit.permit_set(mask("11111111")) is None


def test_a_dependence_modulo_the_prime_alone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modulo 2, (a+b) and (b+c) add up to (a+c); over the rationals they do not."""
    audit = asked(Audit.of(9), "111111000", "000111111")
    finer, vector = audit.refine(mask("111000111"))
    monkeypatch.setattr(linear_audit, "as_fraction", lambda _: linear_audit.Fraction(1))
    assert not finer.depends(vector, np.array([0, 1]))


def test_large_coefficients_are_compared_in_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_audit, "_SAFE", 1)
    audit = asked(Audit.of(8), "11110000", "00001111")
    assert audit.permit_set(mask("11111111")) is audit


sets_of_rows = st.integers(3, 9).flatmap(
    lambda size: st.lists(st.lists(st.booleans(), min_size=size, max_size=size).map(np.array), min_size=1, max_size=12)
)


@pytest.mark.slow
@settings(max_examples=examples(150, usual=40), deadline=None)
@given(sets_of_rows, st.booleans())
def test_exactly_the_harmful_sets_are_refused(sets: list[Mask], pairs: bool) -> None:
    audit = Audit.of(len(sets[0]), pairs=pairs)
    answered: list[Mask] = []
    for members in sets:
        after = audit.permit_set(members)
        harmful = singles_given_away([*answered, members]) or (pairs and pairs_given_away([*answered, members]))
        assert (after is None) == bool(harmful)
        if after is not None:
            audit = after
            answered.append(members)


@settings(max_examples=60, deadline=None)
@given(sets_of_rows)
def test_the_basis_spans_what_was_recorded(sets: list[Mask]) -> None:
    audit = Audit.of(len(sets[0]))
    for place, members in enumerate(sets):
        independent = not spans(sets[:place], members.astype(int).tolist()) if place else bool(members.any())
        after = audit.record_set(members)
        assert after.rank - audit.rank == independent
        audit = after
    assert audit.is_sound == (not singles_given_away(sets) and not pairs_given_away(sets))
    assert (audit.sizes == np.bincount(audit.labels)).all()


def test_many_rows_are_as_many_classes_as_sets_make() -> None:
    rows = np.arange(100_000)
    audit = Audit.of(100_000)
    for divisor in (2, 3, 5, 7):
        after = audit.permit_set(rows % divisor == 0)
        assert after is not None
        audit = after
    assert len(audit.sizes) == 16
    assert audit.permit_set((rows % 2 == 0) & (rows != 4)) is None
    assert audit.permit_set((rows % 2 == 0) & (rows > 1000)) is not None
