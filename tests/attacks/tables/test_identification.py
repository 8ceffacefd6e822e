from __future__ import annotations

import hashlib
import hmac
import itertools
from base64 import b64encode
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import cloister as cl
from cloister import attacks
from cloister.anonymize.operations import Pseudonymize
from cloister.core.random import SeededRandomSource, integers_below
from cloister.errors import CloisterError


def _people(count: int = 200, seed: int = 31) -> pd.DataFrame:
    source = SeededRandomSource(seed)
    return pd.DataFrame({name: integers_below(source, size, count) for name, size in (("a", 5), ("b", 9), ("c", 30))})


# Uniqueness


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=20))
@settings(max_examples=12)
def test_every_small_set_of_columns_is_counted(rows: list[tuple[int, ...]]) -> None:
    table = pa.table({name: [row[place] for row in rows] for place, name in enumerate("abc")})
    found = dict(attacks.uniqueness(table, largest=3).subsets)
    for size in (1, 2, 3):
        for places in itertools.combinations(range(3), size):
            shown = [tuple(row[place] for place in places) for row in rows]
            expected = sum(shown.count(row) == 1 for row in shown) / len(rows)
            assert found[tuple("abc"[place] for place in places)] == pytest.approx(expected)


def test_a_key_identifies_alone() -> None:
    table = _people().assign(key=range(200))
    found = attacks.identifying_columns(table)
    assert found.columns == ("key",)
    assert found.success == 1


def test_needless_columns_are_not_chosen() -> None:
    people = _people()
    table = people.assign(copy=people["c"], same=1)
    found = attacks.identifying_columns(table, share=1)
    assert "same" not in found.columns
    assert not {"copy", "c"} <= set(found.columns)
    everything = attacks.uniqueness(table, columns=["a", "b", "c"])
    assert found.success == everything.success


def test_a_release_is_less_unique_than_its_original() -> None:
    table = cl.open_table(_people())
    release = cl.anonymize(table, models=[cl.KAnonymity(k=4)], quasi_identifiers=["a", "b", "c"], algorithm="mondrian")
    assert attacks.uniqueness(release).success == 0
    assert attacks.uniqueness(table).success > 0.2


# Singling out


def test_raw_rows_single_people_out_and_classes_do_not() -> None:
    people = _people()
    table = cl.open_table(people)
    release = cl.anonymize(table, models=[cl.KAnonymity(k=4)], quasi_identifiers=["a", "b", "c"], algorithm="mondrian")
    raw = attacks.singling_out(
        people, people, quasi_identifiers=["a", "b", "c"], outsiders=_people(seed=32), attempts=400
    )
    assert raw.succeeded
    unique = attacks.uniqueness(people).success
    assert raw.success == pytest.approx(unique, abs=0.2)
    assert raw.control is not None
    assert raw.control < raw.success
    sizes = people.groupby(["a", "b", "c"])["a"].transform("size")
    assert raw.worst
    assert all(sizes[position] == 1 for position, _ in raw.worst)
    protected = attacks.singling_out(release, attempts=400)
    assert protected.success == 0
    assert not protected.succeeded


def test_a_rare_value_beside_a_class_singles_out() -> None:
    people = pa.table({"age": list(range(20, 40)), "illness": ["flu"] * 19 + ["rare"]})
    released = pa.table({"age": ["20-39"] * 20, "illness": ["flu"] * 19 + ["rare"]})
    result = attacks.singling_out(
        released, people, quasi_identifiers=["age"], sensitive="illness", random_state=SeededRandomSource(1)
    )
    assert 0 < result.success < 0.1
    assert result.worst == ((19, 1.0),)


def test_conditions_of_fewer_columns_single_out_less() -> None:
    people = _people()
    one, three = (
        attacks.singling_out(
            people, people, quasi_identifiers=["a", "b", "c"], columns=width, random_state=SeededRandomSource(2)
        )
        for width in (1, 3)
    )
    assert one.success < three.success


# Linked databases


def test_sources_with_several_rows_a_person_are_compared_as_sets() -> None:
    first = pa.table({"user": [1, 1, 2, 2, 3], "drug": ["a", "b", "b", "a", "a"]})
    second = pa.table({"user": [1, 2, 3, 9], "pharmacy": ["n", "n", "n", "s"]})
    result = attacks.correlation(first, second, on="user")
    assert result.people == 3
    assert result.unique_before == (pytest.approx(1 / 3), 0.0)
    assert result.success == pytest.approx(1 / 3)
    assert not result.succeeded


def test_a_list_is_hunted_in_a_table() -> None:
    table = pa.table({"name": ["ann", "bob", "bob", "joe"], "town": ["x", "x", "y", "y"]})
    staff = pa.table({"name": ["ann", "bob", "zoe", "joe"], "town": ["x", None, "x", "y"]})
    result = attacks.identification(table, staff, on=["name", "town"], truth=[0, 1, -1, -1])
    assert result.hits == 2
    assert result.precision == 0.5
    assert result.success == 0.5
    assert result.worst == ((0, 1.0),)


# Sparse data


def _ratings(people: int = 300, items: int = 400, each: int = 20) -> pd.DataFrame:
    source = SeededRandomSource(41)
    popular = integers_below(source, items, people * each) * integers_below(source, items, people * each) // items
    return pd.DataFrame(
        {
            "person": np.repeat(np.arange(people), each),
            "item": popular,
            "stars": integers_below(source, 5, people * each) + 1,
        }
    ).drop_duplicates(["person", "item"])


def test_a_few_ratings_find_people_and_strangers_are_not_found() -> None:
    ratings = _ratings()
    known = ratings[ratings["person"] < 100].groupby("person").head(8)
    released = ratings[ratings["person"] >= 50].assign(person=lambda rows: rows["person"] + 1000)
    truth = {person: person + 1000 if person >= 50 else None for person in range(100)}
    options: dict[str, Any] = {"person": "person", "item": "item", "truth": truth}
    result = attacks.sparse_linkage(released, known, value="stars", **options)
    assert result.succeeded
    assert result.success > 0.9
    assert result.control is not None
    assert result.control < 0.5
    vague = attacks.sparse_linkage(released, known.groupby("person").head(1), **options)
    assert vague.success < result.success
    blurred = known.assign(stars=known["stars"] + 1)
    assert attacks.sparse_linkage(released, blurred, value="stars", **options).success < 0.1
    assert attacks.sparse_linkage(released, blurred, value="stars", tolerance=1, **options).success > 0.8


# Hashed identifiers

NUMBERS = [f"555-{number:04d}" for number in range(0, 10_000, 37)]
DOMAIN = attacks.digit_pattern("555-####")


@pytest.mark.parametrize("method", ["md5", "sha1", "sha256"])
def test_plain_hashes_are_all_found(method: str) -> None:
    tokens = [hashlib.new(method, number.encode()).hexdigest() for number in NUMBERS]
    result = attacks.dictionary(tokens, DOMAIN, method=method, truth=NUMBERS)
    assert result.success == 1
    assert result.control == 0
    assert result.finished
    assert result.tried == 10_000
    assert result.seconds > 0


@pytest.mark.parametrize("after", [False, True])
def test_a_known_salt_does_not_help(after: bool) -> None:
    salted = [b"2026" + number.encode() if not after else number.encode() + b"2026" for number in NUMBERS]
    tokens = [b64encode(hashlib.sha256(text).digest()).decode() for text in salted]
    assert attacks.dictionary(tokens, DOMAIN, salt=b"2026", salt_after=after).success == 1
    assert attacks.dictionary(tokens, DOMAIN, salt=b"2027", salt_after=after).success == 0


@pytest.mark.parametrize("length", [8, 9, 64])
def test_short_hashes_are_found_too(length: int) -> None:
    tokens = [hashlib.sha256(number.encode()).hexdigest().upper()[:length] for number in NUMBERS]
    assert attacks.dictionary(tokens, DOMAIN, truth=NUMBERS).success == 1


def test_keyed_pseudonyms_resist() -> None:
    operation = Pseudonymize("phone", key=bytes(range(32)), domain="phone/study")
    tokens = operation.apply(pa.table({"phone": NUMBERS})).to_arrow()["phone"].to_pylist()
    result = attacks.dictionary(tokens, DOMAIN)
    assert result.success == 0
    assert not result.succeeded
    keyed = [hmac.digest(b"secret", number.encode(), "sha256").hex() for number in NUMBERS]
    assert attacks.dictionary(keyed, DOMAIN).success == 0


def test_missing_tokens_are_passed_over() -> None:
    tokens = [None, hashlib.sha256(b"555-0001").digest()]
    result = attacks.dictionary(tokens, DOMAIN)
    assert result.trials == 1
    assert result.worst == ((1, 1.0),)


def test_a_limit_stops_and_estimates() -> None:
    token = hashlib.sha256(b"nobody").hexdigest()
    result = attacks.dictionary([token], attacks.digit_pattern("9" + "#" * 9), limit=1e-6)
    assert not result.finished
    assert result.seconds_to_all is not None
    assert result.seconds_to_all > result.seconds
    assert "would take" in result.verdict


def test_patterns_list_every_text_once() -> None:
    assert list(attacks.digit_pattern("a#{}#")) == [
        f"a{first}{{}}{second}" for first in range(10) for second in range(10)
    ]
    assert list(attacks.digit_pattern("none")) == ["none"]


PEOPLE = pa.table({"a": [1], "b": [2]})
WRONG: dict[str, tuple[Any, str]] = {
    "an unknown column": (lambda: attacks.uniqueness(PEOPLE, columns=["z"]), "z"),
    "no columns": (lambda: attacks.identifying_columns(PEOPLE, columns=[]), "columns=["),
    "no rows": (lambda: attacks.uniqueness(PEOPLE.slice(0, 0)), "open a table"),
    "no original": (lambda: attacks.singling_out(PEOPLE, quasi_identifiers=["a"]), "original"),
    "too many columns": (
        lambda: attacks.singling_out(PEOPLE, PEOPLE, quasi_identifiers=["a"], columns=2),
        "columns <= 1",
    ),
    "an original without a column": (
        lambda: attacks.singling_out(PEOPLE, PEOPLE.select(["a"]), quasi_identifiers=["a", "b"]),
        '"b"',
    ),
    "no common key": (lambda: attacks.correlation(PEOPLE, PEOPLE, on="z"), "z"),
    "nothing but the key": (lambda: attacks.correlation(PEOPLE, PEOPLE, on=["a", "b"]), "keep attributes"),
    "nobody in both": (
        lambda: attacks.correlation(PEOPLE, pa.table({"a": [7], "b": [2]}), on="a"),
        "same way in both",
    ),
    "a list of nobody": (lambda: attacks.identification(PEOPLE, PEOPLE, on=["a"], truth=[-1]), "some people"),
    "truth that is no mapping": (
        lambda: attacks.sparse_linkage(PEOPLE, PEOPLE, person="a", item="b", truth=[1]),
        "truth={",
    ),
    "truth that is not complete": (
        lambda: attacks.sparse_linkage(PEOPLE, PEOPLE, person="a", item="b", truth={}),
        "for each person",
    ),
    "no tokens": (lambda: attacks.dictionary([], ["a"]), "at least one"),
    "tokens of several lengths": (lambda: attacks.dictionary(["abcdef", "abcd"], ["a"]), "one kind"),
    "tokens in no form": (lambda: attacks.dictionary(["§§§§§§"], ["a"]), "hexadecimal"),
    "an unknown hash": (lambda: attacks.dictionary(["abcdef"], ["a"], method="rot13"), 'method="sha256"'),
    "nothing to try": (lambda: attacks.dictionary(["abcdef"], []), "digit_pattern"),
    "one text to try": (lambda: attacks.dictionary(["abcdef"], "555"), "digit_pattern"),
    "truth of another length": (lambda: attacks.dictionary(["abcdef"], ["a"], truth=[]), "one identifier per token"),
}


@pytest.mark.parametrize("name", WRONG)
def test_misuse_is_refused_with_a_fix(name: str) -> None:
    call, words = WRONG[name]
    with pytest.raises(CloisterError) as caught:
        call()
    assert words in str(caught.value)
    assert "§" not in str(caught.value)
