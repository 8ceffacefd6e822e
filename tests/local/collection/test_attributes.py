from __future__ import annotations

import functools
import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cloister.core import exact
from cloister.core.guarantees import LocalDP
from cloister.core.random import SeededRandomSource
from cloister.errors import (
    ForeignReportError,
    MalformedReportError,
    OutsideDomainError,
    ParameterError,
    ParameterTypeError,
    TooFewReportsError,
    UnknownColumnError,
)
from cloister.local import (
    DirectEncoding,
    DuchiVector,
    MeanEstimate,
    OptimizedUnaryEncoding,
    SeveralAttributes,
    SquareWave,
    SummationHistogramEncoding,
    SymmetricUnaryEncoding,
)
from cloister.local.collection._designs import for_everybody
from cloister.local.draws import law_of
from tests.local.collection.spread import assert_scatters
from tests.support.thoroughness import audited

SIZES = {"a": 2, "b": 3}
METHODS = ("sample_one", "split", "fake_data", "all")
TABLE = {"a": [0, 1, 1, 0] * 25, "b": [2, 1, 0, 0] * 25}

Person = tuple[int, ...]
Law = dict[tuple[Any, ...], Fraction]


def laws_of(collection: SeveralAttributes) -> dict[Person, Law]:
    """The exact law of everything that one person sends, for every person."""
    sizes = [len(protocol.domain) for protocol in collection.protocols.values()]  # type: ignore[attr-defined]

    def law(person: Person) -> Law:
        codes = {name: np.array([code]) for name, code in zip(collection.protocols, person, strict=True)}

        def device(draws: Any) -> tuple[Any, ...]:
            answers = collection.perturb(codes, draws)
            sent = tuple(answers.rows[name].tobytes() for name in collection.protocols)
            return (*sent, None if answers.asked is None else int(answers.asked[0]))

        return law_of(device)

    return {person: law(person) for person in itertools.product(*map(range, sizes))}


def epsilon_between(laws: dict[Person, Law], *, differing: int | None = None) -> float:
    worst = Fraction(1)
    for one, other in itertools.permutations(laws, 2):
        if differing is None or sum(a != b for a, b in zip(one, other, strict=True)) == differing:
            assert laws[one].keys() == laws[other].keys()
            worst = max(worst, *(laws[one][sent] / laws[other][sent] for sent in laws[one]))
    return float(exact.log_bounds(worst)[1])


@pytest.mark.parametrize("kind", [DirectEncoding, OptimizedUnaryEncoding])
@pytest.mark.parametrize("method", METHODS)
def test_one_person_pays_the_stated_total_for_everything_they_send(method: str, kind: Any) -> None:
    collection = SeveralAttributes(SIZES, epsilon=1, method=method, protocol=kind)
    laws = laws_of(collection)
    assert all(sum(law.values()) == 1 for law in laws.values())
    total = {"all": 2}.get(method, 1)
    assert collection.total == total == collection.guarantee.epsilon
    assert collection.guarantee.unit == "person"
    assert total - 1e-9 <= epsilon_between(laws) <= total + 1e-15
    assert total - 1e-9 <= float(collection.epsilon_of()) <= total + 1e-15


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("method", METHODS)
def test_totals_hold_for_other_numbers_of_attributes(method: str, count: int) -> None:
    questions = {f"q{place}": 2 for place in range(count)}
    collection = SeveralAttributes(questions, epsilon="0.7", method=method, protocol=DirectEncoding)
    total = 0.7 * (count if method == "all" else 1)
    assert epsilon_between(laws_of(collection)) == pytest.approx(total, abs=1e-9)


def test_the_published_amplification_of_fake_data_is_refuted_for_a_whole_person() -> None:
    collection = SeveralAttributes({"a": 2, "b": 2}, epsilon=1, method="fake_data", amplified=True)
    laws, published = laws_of(collection), math.log(2 * (math.e - 1) + 1)
    assert published == pytest.approx(1.48988, abs=1e-5)
    assert epsilon_between(laws) == pytest.approx(published, abs=1e-9)
    assert float(collection.guarantee.epsilon) == pytest.approx(published, abs=1e-12)
    assert epsilon_between(laws, differing=1) == pytest.approx(1, abs=1e-9)
    assert float(collection.attribute_epsilon()) == pytest.approx(1, abs=1e-9)


def test_the_published_amplification_fails_even_for_one_attribute_among_unequal_sizes() -> None:
    collection = SeveralAttributes(
        {"a": 2, "b": 4}, epsilon=1, method="fake_data", amplified=True, protocol=DirectEncoding
    )
    lost = epsilon_between(laws_of(collection), differing=1)
    assert lost == pytest.approx(1.11212, abs=1e-5)
    assert float(collection.attribute_epsilon()) == pytest.approx(lost, abs=1e-12)


@pytest.mark.parametrize("kind", [OptimizedUnaryEncoding, SymmetricUnaryEncoding])
def test_the_bound_for_one_attribute_holds_for_unary_encoding(kind: Any) -> None:
    collection = SeveralAttributes(SIZES, epsilon=1, method="fake_data", amplified=True, protocol=kind)
    lost = epsilon_between(laws_of(collection), differing=1)
    assert 1 < lost <= float(collection.attribute_epsilon()) + 1e-15


@pytest.mark.parametrize("method", METHODS)
def test_one_attribute_alone_never_loses_more_than_stated(method: str) -> None:
    collection = SeveralAttributes(SIZES, epsilon=1, method=method, protocol=DirectEncoding)
    assert epsilon_between(laws_of(collection), differing=1) <= float(collection.attribute_epsilon()) + 1e-15


def test_the_coin_knows_nothing_of_the_data() -> None:
    for law in laws_of(SeveralAttributes(SIZES, epsilon=1)).values():
        for place in (0, 1):
            assert sum(chance for sent, chance in law.items() if sent[-1] == place) == Fraction(1, 2)


@pytest.mark.parametrize("kind", [DirectEncoding, OptimizedUnaryEncoding])
def test_estimates_with_fakes_are_unbiased_with_the_stated_variance(kind: Any) -> None:
    """Exactly: the mean and variance of one person's share of the estimate, over the law of the device."""
    collection = SeveralAttributes(SIZES, epsilon=1, method="fake_data", protocol=kind)
    protocol, count = collection.protocols["b"], 2
    p, q = collection.design.probabilities(protocol)  # type: ignore[attr-defined]
    for person, law in laws_of(collection).items():
        for value in range(3):
            moments = [Fraction(0), Fraction(0)]
            for sent, chance in law.items():
                rows = np.frombuffer(sent[1], dtype=protocol.output_space.dtype)
                part = (int(protocol.support_counts(rows)[value]) - q) / (p - q)  # type: ignore[attr-defined]
                moments = [moments[0] + chance * part, moments[1] + chance * part**2]
            assert moments[0] == (person[1] == value)
            variance = float(moments[1] - moments[0] ** 2)
            assert variance == pytest.approx(collection.variance("b", int(person[1] == value)))
    assert p - q == (protocol.probabilities[0] - protocol.probabilities[1]) / count  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("method", audited(METHODS, but=["sample_one", "fake_data"]))
def test_estimates_scatter_as_their_variance_says(method: str) -> None:
    collection = SeveralAttributes(SIZES, epsilon=2, method=method, protocol=DirectEncoding)
    groups, people = 12_000, 200
    truth = np.repeat([0, 1, 2], [60, 100, 40])
    table = {"a": np.tile(truth % 2, groups), "b": np.tile(truth, groups)}
    reports = collection.randomize(table)
    asked = np.full(groups * people, 1) if reports.asked is None else reports.asked
    ends = np.cumsum((asked == 1).reshape(groups, people).sum(axis=1))
    parts = zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)
    rows = reports.of("b")
    found = [collection.design.estimate(rows[start:end], people=people).raw_counts[0] for start, end in parts]
    assert_scatters(np.array(found) / people - 0.3, math.sqrt(collection.variance("b", 0.3) / people))


@pytest.mark.parametrize("method", METHODS)
def test_the_stated_errors_are_those_of_theory(method: str) -> None:
    collection = SeveralAttributes(SIZES, epsilon=2, method=method, protocol=DirectEncoding)
    people = 200_000
    table = {"a": np.arange(people) % 2, "b": np.arange(people) % 3}
    found = collection.estimate(collection.randomize(table))
    assert found["b"].reports == people
    for value in range(3):
        error = math.sqrt(collection.variance("b", 1 / 3) / people)
        assert found["b"].frequency_errors[value] == pytest.approx(error, rel=0.05)
        assert abs(found["b"].frequencies[value] - 1 / 3) < 6.2 * error


def test_sampling_one_beats_splitting_and_fakes() -> None:
    questions = {f"q{place}": 4 for place in range(5)}
    variances = {
        method: SeveralAttributes(questions, epsilon=1, method=method, protocol=DirectEncoding).variance("q0")
        for method in METHODS
    }
    assert variances["all"] < variances["sample_one"] < variances["fake_data"]
    assert variances["sample_one"] < variances["split"]


def test_protocols_are_chosen_by_size_and_may_be_given() -> None:
    chosen = SeveralAttributes({"few": 3, "many": 100, "two": 2}, epsilon=1).protocols
    assert [protocol.name for protocol in chosen.values()] == [
        "direct_encoding",
        "optimized_unary_encoding",
        "randomized_response",
    ]
    made = functools.partial(SummationHistogramEncoding, domain=["x", "y"])
    collection = SeveralAttributes(
        {"made": made, "given": DirectEncoding(domain=3, epsilon="1/2")}, epsilon=1, method="split"
    )
    assert {protocol.epsilon for protocol in collection.protocols.values()} == {Fraction(1, 2)}
    estimates = collection.estimate(collection.randomize({"made": ["x", "y"] * 50, "given": [0, 2] * 50}))
    assert set(estimates) == {"made", "given"}


@pytest.mark.parametrize("method", METHODS)
def test_every_form_gives_the_same_estimates(method: str) -> None:
    collection = SeveralAttributes(SIZES, epsilon=1, method=method)
    first, second = (collection.randomize(TABLE) for _ in range(2))
    both = first + second
    expected = {name: dict(estimate.counts) for name, estimate in collection.estimate(both).items()}
    again = SeveralAttributes.from_dict(json.loads(json.dumps(collection.to_dict())))
    assert again == collection
    assert hash(again) == hash(collection)
    for form in ([first, second], both.to_dicts(), both.to_json_lines(), both.to_json_lines().splitlines()):
        found = again.estimate(form)
        assert {name: dict(estimate.counts) for name, estimate in found.items()} == expected
    assert again.read(both.to_dicts()).to_dicts() == both.to_dicts()


@pytest.mark.parametrize("method", METHODS)
def test_one_person_is_a_table_of_single_values(method: str) -> None:
    collection = SeveralAttributes({"a": ["no", "yes"], "b": 3}, epsilon=1, method=method)
    report = collection.randomize({"a": "yes", "b": 0, "ignored": "secret"})
    assert len(report) == 1
    (sent,) = report.to_dicts()
    assert len(sent["answers"]) == (1 if method == "sample_one" else 2)
    assert "secret" not in json.dumps(sent)


def test_data_frames_and_arrow_tables_are_tables() -> None:
    collection = SeveralAttributes({"a": ["no", "yes"], "b": 3}, epsilon=1, method="split")
    columns = {"a": ["no", "yes"], "b": [0, 2]}
    for table in (columns, pd.DataFrame(columns), pa.table(columns)):
        assert len(collection.randomize(table)) == 2


def test_a_category_without_reports_keeps_its_place_and_an_unknown_one_is_refused() -> None:
    """LDP-18."""
    domain = ["never", "once", "often"]
    collection = SeveralAttributes({"a": domain, "b": 2}, epsilon=20, method="all", protocol=DirectEncoding)
    found = collection.estimate(collection.randomize({"a": ["never", "often"] * 500, "b": [0, 1] * 500}))["a"]
    assert list(found.counts) == domain
    assert found.raw_counts == pytest.approx([500, 0, 500], abs=5)
    for bad in ("sometimes", None):
        with pytest.raises(OutsideDomainError, match="no answer"):
            collection.randomize({"a": ["never", bad], "b": [0, 1]})


def test_columns_must_be_there_and_of_one_length() -> None:
    collection = SeveralAttributes(SIZES, epsilon=1)
    with pytest.raises(UnknownColumnError, match='no column "b"'):
        collection.randomize({"a": [0]})
    with pytest.raises(UnknownColumnError, match='no column "b"'):
        collection.randomize(pd.DataFrame({"a": [0]}))
    for columns in ({"a": [0], "b": [0, 1]}, {"a": 0, "b": [0]}):
        with pytest.raises(ParameterError, match="one value per person"):
            collection.randomize(columns)


@pytest.mark.parametrize("method", ["sample_one", "split"])
def test_foreign_and_malformed_reports_are_refused(method: str) -> None:
    collection = SeveralAttributes(SIZES, epsilon=1, method=method)
    other = SeveralAttributes(SIZES, epsilon=2, method=method)
    reports = collection.randomize(TABLE)
    for foreign in (other.randomize(TABLE), other.randomize(TABLE).to_dicts()):
        with pytest.raises(ForeignReportError, match="by themselves"):
            collection.estimate(foreign)
    with pytest.raises(ForeignReportError):
        reports + other.randomize(TABLE)
    good = reports.to_dicts()[0]
    wrong: list[Any] = [{}, {"a": 0, "b": 0, "c": 0}, {"a": 2, "b": 0}, {"a": "no", "b": 0}, [0, 0], None]
    wrong += [{"a": 0, "b": 0}] if method == "sample_one" else [{"a": 0}]
    for answers in wrong:
        with pytest.raises(MalformedReportError, match="never send plain answers"):
            collection.estimate([{**good, "answers": answers}])
    with pytest.raises(MalformedReportError, match="nothing beside it"):
        collection.estimate([{**good, "name": "somebody"}])
    for text in ("{", "[" * 100_000, '"' + "x" * 2**21 + '"'):
        with pytest.raises(MalformedReportError):
            collection.estimate([text])
    for nothing in (7, b"bytes"):
        with pytest.raises(ParameterTypeError, match="randomize returned"):
            collection.estimate(nothing)


def test_too_few_reports_are_told_by_attribute() -> None:
    collection = SeveralAttributes(SIZES, epsilon=1)
    with pytest.raises(TooFewReportsError, match="collect more"):
        collection.estimate([])
    with pytest.raises(TooFewReportsError, match="ask about fewer"):
        collection.estimate(collection.randomize({"a": 1, "b": 1}))


def test_designs_refuse_what_they_cannot_do() -> None:
    with pytest.raises(ParameterError, match="sample_one, split, fake_data, all"):
        SeveralAttributes(SIZES, epsilon=1, method="spilt")
    with pytest.raises(ParameterError, match="drop amplified"):
        SeveralAttributes(SIZES, epsilon=1, amplified=True)
    with pytest.raises(ParameterError, match='method="sample_one"'):
        SeveralAttributes(SIZES, epsilon=1, method="fake_data", protocol=SummationHistogramEncoding)
    with pytest.raises(ParameterError, match='epsilon="1/2"'):
        SeveralAttributes({"a": DirectEncoding(domain=2, epsilon=1), "b": 2}, epsilon=1, method="split")
    for questions in ({}, ["a"], {1: 2}, None):
        with pytest.raises(ParameterTypeError, match="mapping"):
            SeveralAttributes(questions, epsilon=1)  # type: ignore[arg-type]
    with pytest.raises(ParameterTypeError, match="returns a protocol"):
        SeveralAttributes({"a": lambda epsilon: epsilon}, epsilon=1)
    for epsilon in (0, 21):
        with pytest.raises(ParameterError, match="epsilon"):
            SeveralAttributes(SIZES, epsilon=epsilon)
    with pytest.raises(UnknownColumnError):
        SeveralAttributes(SIZES, epsilon=1).variance("c")


def test_changed_records_are_refused() -> None:
    record = SeveralAttributes(SIZES, epsilon=1).to_dict()
    with pytest.raises(ForeignReportError, match="same version"):
        SeveralAttributes.from_dict({**record, "method": "all"})
    with pytest.raises(ParameterTypeError, match="to_dict"):
        SeveralAttributes.from_dict({})


def test_seeded_reports_break_their_promise() -> None:
    collection = SeveralAttributes(SIZES, epsilon=1)
    seeded = collection.randomize(TABLE, random_state=SeededRandomSource(1))
    assert not collection.estimate(seeded + collection.randomize(TABLE))["a"].guarantee.holds
    assert not collection.estimate([collection.randomize(TABLE), seeded])["a"].guarantee.holds


def test_texts_state_the_total_of_a_person_and_no_report() -> None:
    collection = SeveralAttributes(SIZES, epsilon=1, method="all")
    assert repr(collection.randomize(TABLE)) == (
        "AttributeReports(100 of SeveralAttributes(a, b; all, epsilon = 2 per person))"
    )
    estimate = collection.estimate(collection.randomize(TABLE))["a"]
    assert "epsilon = 2 per person" in str(estimate)
    assert "each possible set of reports of one person" in estimate.guarantee.explain()


def test_means_from_those_who_were_asked_say_so() -> None:
    mean = MeanEstimate(
        value=0.5, standard_error=0.1, reports=50, bounds=(0.0, 1.0), protocol="piecewise", guarantee=LocalDP(epsilon=1)
    )
    found = for_everybody(mean, people=200)
    assert (found.value, found.standard_error) == (0.5, 0.1)  # type: ignore[union-attr]
    assert found.notes == ("50 of 200 people were asked, chosen at random",)


@pytest.mark.parametrize("made", [pa.table, pa.record_batch, pd.DataFrame, dict])
def test_a_missing_column_is_told_with_names_and_never_with_values(made: Any) -> None:
    with pytest.raises(UnknownColumnError) as caught:
        SeveralAttributes(SIZES, epsilon=1).randomize(made({"a": [0, 1], "other": ["4711", "4712"]}))
    assert "a, other" in str(caught.value)
    assert 'add the column "b"' in caught.value.fix
    assert "drop the question" in caught.value.fix
    assert "schema" not in str(caught.value)
    assert "4711" not in str(caught.value)


@pytest.mark.parametrize("method", ["sample_one", "split", "all"])
def test_every_part_of_an_estimate_carries_the_promise_of_the_person(method: str) -> None:
    people = SeveralAttributes(
        {
            "age": functools.partial(SquareWave, bounds=(0, 1)),
            "both": functools.partial(DuchiVector, bounds=[(0, 1), (0, 1)]),
        },
        epsilon=1,
        method=method,
    )
    found = people.estimate(people.randomize({"age": [0.1, 0.7] * 50, "both": [[0.1, 0.2]] * 100}))
    assert found["age"].guarantee == found["age"].mean.guarantee == people.guarantee
    assert {each.guarantee for each in (found["both"], *found["both"])} == {people.guarantee}


def test_names_with_odd_separators_survive_their_lines() -> None:
    people = SeveralAttributes({"a\u2028b": 2, "c\x85": 2}, epsilon=1)
    reports = people.randomize({"a\u2028b": [0, 1] * 10, "c\x85": [1, 0] * 10})
    assert people.read(reports.to_json_lines()).to_dicts() == reports.to_dicts()


def test_a_list_of_people_is_a_table() -> None:
    collection = SeveralAttributes({"sex": ["f", "m"], "smokes": ["no", "yes"]}, epsilon=1, method="all")
    people = [{"sex": "f", "smokes": "no", "name": "x"}, {"smokes": "yes", "sex": "m"}, {"sex": "m", "smokes": "no"}]
    codes, is_single = collection.encode(people)
    assert {name: found.tolist() for name, found in codes.items()} == {"sex": [0, 1, 1], "smokes": [0, 1, 0]}
    assert not is_single
    assert len(collection.randomize(tuple(people))) == 3
    with pytest.raises(UnknownColumnError, match='no column "smokes"') as caught:
        collection.randomize([*people, {"sex": "4711"}])
    assert "4711" not in str(caught.value)


def test_the_attribute_of_a_value_outside_is_told_and_not_the_value() -> None:
    collection = SeveralAttributes({"sex": ["f", "m"], "smokes": ["no", "yes"]}, epsilon=1)
    for bad in ("4711", None):
        with pytest.raises(OutsideDomainError, match='Attribute "smokes"') as caught:
            collection.randomize({"sex": ["f"], "smokes": [bad]})
        assert "4711" not in str(caught.value)
        assert "no answer" in caught.value.fix
