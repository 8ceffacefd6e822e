from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from cloister.attacks import jaro_winkler

TEXTS = st.text(alphabet="abcdé", max_size=12)


def _slow(first: str, second: str) -> float:
    """Return Jaro-Winkler as it is defined, character by character."""
    if not first and not second:
        return 1.0
    reach = max(max(len(first), len(second)) // 2 - 1, 0)
    used = [False] * len(second)
    matched = []
    for place, letter in enumerate(first):
        for other in range(max(place - reach, 0), min(place + reach + 1, len(second))):
            if not used[other] and second[other] == letter:
                used[other] = True
                matched.append(letter)
                break
    if not matched:
        return 0.0
    others = [letter for letter, taken in zip(second, used, strict=True) if taken]
    moved = sum(left != right for left, right in zip(matched, others, strict=True)) / 2
    count = len(matched)
    jaro = (count / len(first) + count / len(second) + (count - moved) / count) / 3
    prefix = 0
    while prefix < min(4, len(first), len(second)) and first[prefix] == second[prefix]:
        prefix += 1
    return jaro + prefix * 0.1 * (1 - jaro)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=20))
def test_many_pairs_at_once_are_as_alike_as_one_by_one(pairs: list[tuple[str, str]]) -> None:
    found = jaro_winkler([first for first, _ in pairs], [second for _, second in pairs])
    assert found.tolist() == pytest.approx([_slow(first, second) for first, second in pairs])


@given(TEXTS)
def test_a_text_is_like_itself(text: str) -> None:
    assert jaro_winkler([text], [text]).tolist() == [1.0]


def test_no_pairs() -> None:
    assert jaro_winkler([], []).tolist() == []
