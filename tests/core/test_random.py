from __future__ import annotations

import copy
import multiprocessing
import os
import threading
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.core import guarantees, random
from cloister.core.random import ListedRandomSource
from cloister.errors import ParameterError, ParameterTypeError, SeededRandomnessWarning
from tests.support.forking import garbage_left_alone
from tests.support.words import PreparedWords


def test_the_default_is_the_operating_system() -> None:
    source = random.random_source()
    assert source.is_secure
    assert random.caveats_of(source) == ()
    assert isinstance(source, random.RandomSource)


def test_a_seed_warns_and_taints() -> None:
    with pytest.warns(SeededRandomnessWarning, match="not private"):
        source = random.random_source(7)
    assert not source.is_secure
    assert random.caveats_of(source) == (guarantees.SEEDED_RANDOMNESS,)


def test_a_source_is_used_as_it_is() -> None:
    source = random.SeededRandomSource(1)
    assert random.random_source(source) is source


@pytest.mark.parametrize("bad", [True, "seed", 1.5])
def test_other_random_states_are_refused(bad: object) -> None:
    with pytest.raises(ParameterTypeError, match="leave random_state out"):
        random.random_source(bad)  # type: ignore[arg-type]


def test_seeds_repeat_and_differ() -> None:
    first, second = random.SeededRandomSource(1), random.SeededRandomSource(1)
    assert first.random_bytes(100) == second.random_bytes(100)
    assert first.words(5).tolist() == second.words(5).tolist()
    assert random.SeededRandomSource(2).random_bytes(100) != random.SeededRandomSource(1).random_bytes(100)


def test_the_seeded_stream_never_changes() -> None:
    assert random.SeededRandomSource(0).random_bytes(8).hex() == "20313eec7c231555"


def test_the_system_stream_does_not_repeat() -> None:
    source = random.SystemRandomSource()
    words = np.concatenate([source.words(50_000), random.SystemRandomSource().words(50_000)])
    assert np.unique(words).size == words.size


SIZES = (1, 8, 32, 2048, 2049, 100_000)


Drawn: TypeAlias = tuple[bytes, ...]


def _draw(source: random.SystemRandomSource) -> Drawn:
    return tuple(source.random_bytes(max(size, 16)) for size in SIZES)


def _child(source: random.SystemRandomSource, out: multiprocessing.Queue[Drawn]) -> None:
    out.put(_draw(source))


def _restored(source: random.SystemRandomSource, out: multiprocessing.Queue[Drawn], process: int) -> None:
    """Go on as the snapshot of a process would that does not know that it was restored."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "getpid", lambda: process)
        patch.setattr(random, "_forks", 0, raising=False)
        drawn = _draw(source)
    out.put(drawn)


def _drawn(source: random.SystemRandomSource, target: Any, *args: Any) -> list[Drawn]:
    context = multiprocessing.get_context("fork")
    out: multiprocessing.Queue[Drawn] = context.Queue()
    processes = [context.Process(target=target, args=(source, out, *args)) for _ in range(2)]
    with garbage_left_alone():
        for process in processes:
            process.start()
    drawn = [out.get(timeout=600) for _ in processes]
    for process in processes:
        process.join()
    return drawn


@pytest.mark.parametrize("restored", [False, True], ids=["forked", "restored"])
def test_two_copies_of_a_process_share_no_randomness(restored: bool) -> None:
    source = random.SystemRandomSource()
    _ = source.random_bytes(1), source.random_bytes(10_000)
    drawn = _drawn(source, _restored, os.getpid()) if restored else _drawn(source, _child)
    for first, second, third in zip(*drawn, _draw(source), strict=True):
        assert len({first[:16], second[:16], third[:16]}) == 3
        assert len({first, second, third}) == 3


def test_two_copies_of_a_source_share_no_randomness() -> None:
    source = random.SystemRandomSource()
    _ = source.words(5), source.words(5000)
    again = copy.deepcopy(source)
    assert source.words(5).tolist() != again.words(5).tolist()
    assert source.words(5000)[:2].tolist() != again.words(5000)[:2].tolist()


@pytest.mark.parametrize("count", [0, *SIZES])
def test_as_much_is_drawn_as_was_asked_for(count: int) -> None:
    source = random.SystemRandomSource()
    assert len(source.random_bytes(count)) == count
    words = source.words(count)
    assert (words.dtype, words.shape) == (np.dtype(np.uint64), (count,))
    words += np.uint64(1)  # callers may change what they were given
    assert count < 16 or np.unique(words).size == count


def test_threads_share_no_randomness() -> None:
    source = random.SystemRandomSource()
    drawn: list[bytes] = []
    threads = [threading.Thread(target=lambda: drawn.append(source.random_bytes(5000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 4


def test_bits_are_fair() -> None:
    tosses = random.bits(random.random_source(), 1_000_001)
    assert tosses.shape == (1_000_001,)
    assert abs(int(tosses.sum()) - 500_000) < 6.2 * 500


def test_integers_below_are_uniform_and_exact() -> None:
    draws = random.integers_below(random.random_source(), 7, 700_000)
    counts = np.bincount(draws, minlength=7)
    assert counts.size == 7
    assert ((counts - 100_000) ** 2 / 100_000).sum() < 60


def test_integers_below_refuse_words_that_would_favor_a_result() -> None:
    refused = pow(3, -1, 2**64) * (2**64 - 1) % 2**64
    source = ListedRandomSource([refused, 0, refused, 2**64 - 1])
    assert random.integers_below(source, 3, 2).tolist() == [2, 0]
    assert source.used == 4


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20), st.integers(1, 2**62))
def test_scaled_words_are_exact(words: list[int], bound: int) -> None:
    assert random.scale_words(np.array(words, dtype=np.uint64), bound).tolist() == [
        word * bound >> 64 for word in words
    ]


@pytest.mark.parametrize("bound", [3, 5, 6, 7])
def test_integers_below_are_exactly_uniform_on_a_small_word(bound: int) -> None:
    """The same rule on 8-bit words, enumerated."""
    kept = [word * bound >> 8 for word in range(256) if word * bound % 256 < 256 - 256 % bound]
    assert {kept.count(result) for result in range(bound)} == {256 // bound}


def test_chances_compare_one_word_with_a_threshold() -> None:
    source = ListedRandomSource([4, 5, 6, 2**64 - 1, 9, 9])
    assert random.chances(source, 5, 3).tolist() == [True, False, False]
    assert random.chances(source, 2**64, 1).tolist() == [True]
    assert random.chances(source, np.array([9, 10], dtype=np.uint64), 2).tolist() == [False, True]


def test_listed_words_end_and_are_not_secure() -> None:
    source = ListedRandomSource([1, 2])
    assert not source.is_secure
    assert source.random_bytes(3) == b"\x01\x00\x00"
    with pytest.raises(ParameterError, match="list more words"):
        source.words(2)


@pytest.mark.parametrize("bad", [0, 2**63])
def test_integers_below_need_a_sensible_bound(bad: int) -> None:
    with pytest.raises(ParameterError, match="smaller range"):
        random.integers_below(random.random_source(), bad, 1)


def test_permutations_are_permutations() -> None:
    order = random.permutation(random.random_source(), 1000)
    assert sorted(order.tolist()) == list(range(1000))


def test_permutations_are_redrawn_on_a_tie() -> None:
    source = PreparedWords(5, 5, 7, 7, 2, 1, 0, 0)
    assert random.permutation(source, 2).tolist() == [1, 0]


@pytest.mark.parametrize("count", [0, 1, 8192, 8193, 20_000])
def test_words_and_bytes_are_one_stream(count: int) -> None:
    one, other = random.SeededRandomSource(3), random.SeededRandomSource(3)
    words = [one.words(3), one.words(count), one.words(1)]
    assert np.concatenate(words).tobytes() == other.random_bytes(8 * (count + 4))
