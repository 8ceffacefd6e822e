from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cloister.errors import MissingBoundsError, OutsideDomainError, ParameterError
from cloister.local import DirectEncoding, Domain


def test_codes_are_places_in_the_declared_order() -> None:
    domain = Domain.of(["b", "a", "c"])
    for values in (["a", "b"], np.array(["a", "b"]), pd.Series(["a", "b"]), pa.array(["a", "b"])):
        assert domain.codes(values).tolist() == [1, 0]
    assert domain.codes(pa.chunked_array([["c"], ["a"]])).tolist() == [2, 1]
    assert domain.code("c") == 2


def test_whole_numbers_stand_for_themselves() -> None:
    domain = Domain.of(5)
    assert domain.codes(np.arange(5, dtype=np.uint8)).tolist() == [0, 1, 2, 3, 4]
    assert domain.codes([4, 0]).tolist() == [4, 0]
    assert Domain.of(range(10, 13)).codes([12, 10]).tolist() == [2, 0]
    assert Domain.of([False, True]).codes([True, False]).tolist() == [1, 0]
    assert Domain.of([1, 3, 5]).codes(np.array([5, 1])).tolist() == [2, 0]
    assert Domain.of(Domain.of(5)) == domain


@pytest.mark.parametrize("values", [["a", "z"], ["a", None], [float("nan")], [1], ["a", 1], [["a"]]])
def test_undeclared_and_missing_values_are_refused_without_telling_them(values: list[object]) -> None:
    with pytest.raises(OutsideDomainError) as caught:
        Domain.of(["a", "b"]).codes(values)
    assert "z" not in str(caught.value).split("Fix")[0].replace("z ", "")
    assert "domain=" in caught.value.fix


@pytest.mark.parametrize("value", [5, -1, 2**63, 2**64 - 1])
def test_numbers_outside_of_a_range_are_refused(value: int) -> None:
    with pytest.raises(OutsideDomainError, match="declare every possible answer"):
        Domain.of(5).codes(np.array([value], dtype=np.uint64 if value > 9 else np.int64))


def test_domains_are_declared_and_distinct() -> None:
    with pytest.raises(MissingBoundsError, match=r'domain=\["no", "yes"\]'):
        Domain.of(None)
    for bad in (["a"], ["a", "a"], 1, "text", [None, "a"], np.array([])):
        with pytest.raises(ParameterError):
            Domain.of(bad)


def test_the_hash_is_that_of_the_canonical_text() -> None:
    text = '["s:ja","s:nein, \\"nie\\"","s:ü"]'
    assert Domain.of(["ja", 'nein, "nie"', "ü"]).hash == hashlib.sha256(text.encode()).hexdigest()
    kinds = ('["i:0","i:1"]', '["b:false","b:true"]', '["n:0.5","n:1.5"]')
    for values, canonical in zip((2, [False, True], [0.5, 1.5]), kinds, strict=True):
        assert Domain.of(values).hash == hashlib.sha256(canonical.encode()).hexdigest()


@pytest.mark.parametrize(
    "values", [[[1, 2], [3, 4]], np.array([[1, 2], [3, 4]]), [[1], [2, 3]], pd.DataFrame({"answer": [1, 2]})]
)
def test_several_values_for_each_person_are_not_taken_for_more_people(values: object) -> None:
    with pytest.raises(OutsideDomainError, match="several values"):
        Domain.of(5).codes(values)
    with pytest.raises(OutsideDomainError, match="several values"):
        DirectEncoding(domain=5, epsilon=1).randomize(values)


@pytest.mark.parametrize("size", [10**12, range(10**30), range(2**24 + 1)])
def test_a_domain_is_measured_before_it_is_listed(size: object) -> None:
    with pytest.raises(ParameterError, match="between 2 and 16,777,216"):
        Domain.of(size)


def test_a_whole_number_of_numpy_is_a_size() -> None:
    assert Domain.of(np.int64(5)) == Domain.of(5)


def test_a_set_has_no_public_order() -> None:
    with pytest.raises(ParameterError, match="order"):
        Domain.of({"a", "b", "c"})


def test_half_a_character_is_no_answer() -> None:
    with pytest.raises(ParameterError, match="surrogate"):
        Domain.of(["a", "\ud800"])


def test_masked_values_are_missing() -> None:
    with pytest.raises(OutsideDomainError):
        Domain.of(5).codes(np.ma.masked_array([1, 2], mask=[False, True]))
    assert Domain.of(5).codes(np.ma.masked_array([1, 2])).tolist() == [1, 2]


def test_integers_at_the_edge_of_64_bits_do_not_wrap() -> None:
    domain = Domain.of(range(2**63 - 2, 2**63 + 2))
    assert domain.codes([2**63 - 1]).tolist() == [1]
    for values in ([-(2**63)], [1], [2**70]):
        with pytest.raises(OutsideDomainError):
            domain.codes(values)
    assert Domain.of(range(2**63 - 3, 2**63)).codes([2**63 - 1]).tolist() == [2]


def test_dictionaries_with_narrow_indices_are_read() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 127], pa.int8()), pa.array(list(range(128))))
    assert Domain.of(200).codes(column).tolist() == [0, 127]
