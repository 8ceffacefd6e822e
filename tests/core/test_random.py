from __future__ import annotations

import multiprocessing
import threading

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.core import guarantees, random
from cloister.core.random import ListedRandomSource
from cloister.errors import ParameterError, ParameterTypeError, SeededRandomnessWarning
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


def test_a_new_key_is_taken_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.SystemRandomSource()
    monkeypatch.setattr(source, "_REKEY_AFTER", 64)
    first = source._stream()
    source.random_bytes(64)
    assert source._stream() is not first


def _child(source: random.SystemRandomSource, out: multiprocessing.Queue[bytes]) -> None:
    out.put(source.random_bytes(32))


def test_a_forked_child_has_a_stream_of_its_own() -> None:
    source = random.SystemRandomSource()
    source.random_bytes(1)
    context = multiprocessing.get_context("fork")
    out: multiprocessing.Queue[bytes] = context.Queue()
    processes = [context.Process(target=_child, args=(source, out)) for _ in range(2)]
    for process in processes:
        process.start()
    drawn = {out.get(timeout=30) for _ in processes} | {source.random_bytes(32)}
    for process in processes:
        process.join()
    assert len(drawn) == 3


def test_threads_have_streams_of_their_own() -> None:
    source = random.SystemRandomSource()
    streams: list[object] = []
    threads = [threading.Thread(target=lambda: streams.append(source._stream())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(stream) for stream in streams}) == 4


def test_a_fork_changes_the_key_even_if_the_process_number_comes_again() -> None:
    source = random.SystemRandomSource()
    before = source._stream()
    assert source._stream() is before
    random._count_fork()
    assert source._stream() is not before


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
    assert random.scaled(np.array(words, dtype=np.uint64), bound).tolist() == [word * bound >> 64 for word in words]


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


def test_words_count_towards_a_new_key(monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.SystemRandomSource()
    monkeypatch.setattr(source, "_REKEY_AFTER", 64)
    first = source._stream()
    source.words(8)
    assert source._stream() is not first
