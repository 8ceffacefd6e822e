"""Ways to get something unsafe past the gate, each of which it must stop, and honest releases that it must let pass."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cloister as cl
from cloister.attacks import GateResult, gate
from cloister.attacks.gating._row_copies import find_copies
from cloister.attacks.gating._row_keys import RESOLUTIONS, read_pair
from cloister.attacks.gating.policy import GatePolicy
from cloister.core.guarantees import (
    SEEDED_RANDOMNESS,
    AllOf,
    ApproxDP,
    LocalDP,
    NoGuarantee,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from cloister.core.random import SystemRandomSource
from cloister.crypto.certificates import certify
from cloister.crypto.signatures import SigningKey
from tests.attacks.gating.crowds import DP, ILLNESSES, described, mixed, people, screen, stands, wide
from tests.attacks.gating.releases import anonymized, patients
from tests.support.thoroughness import audited


@functools.cache
def original_of(make: Callable[[], pd.DataFrame]) -> Any:
    """Return a described table that many ways are tried on, and none changes."""
    return described(make())


def two_hundred() -> pd.DataFrame:
    return people(200)


def test_an_exact_copy_with_a_stated_promise_is_refused_where_few_rows_are_unique() -> None:
    frame = people(1500).assign(age=lambda data: data["age"] // 4 * 4)
    alone = int((frame.groupby(list(frame.columns))["age"].transform("size") == 1).sum())
    assert 300 < alone < 700
    found = gate(frame, original=described(frame), kind="synthetic table", guarantee=DP)
    assert stands(found)["copies"] == "broken"
    assert f"{alone:,} of 1,500 people have a row of their own; {alone:,} of these rows" in found.verdict


def test_a_copy_in_which_nobody_is_alone_is_refused() -> None:
    frame = patients()
    assert frame.groupby(list(frame.columns))["age"].transform("size").min() > 1
    found = screen(frame[3:], original=frame, kind="synthetic table", guarantee=DP)
    assert stands(found)["copies"] == "broken"
    assert "exactly as often as in the original" in found.verdict


@pytest.mark.parametrize(
    "promise",
    [
        ZeroConcentratedDP(rho="0.01", delta="0.9"),
        ZeroConcentratedDP(rho="0.01", delta="0.0002"),
        ApproxDP(epsilon="0.01", delta="0.9"),
        PureDP(epsilon=1, adjacency="item"),
        PureDP(epsilon=1, adjacency="event"),
        PureDP(epsilon=1, unit="sex"),
        PureDP(epsilon=1, unit="cell"),
        PureDP(epsilon=1, caveats=(SEEDED_RANDOMNESS,)),
        RenyiDP(alpha=2, epsilon=1),
        LocalDP(epsilon=1),
        cl.KAnonymity(k=5),
        AllOf(parts=(PureDP(epsilon=1),)),
        NoGuarantee(reason="nobody knows"),
    ],
    ids=lambda promise: f"{promise.kind}-{promise.brief()}",
)
def test_a_promise_that_is_worth_nothing_carries_nothing(promise: Any) -> None:
    original = original_of(two_hundred)
    found = screen(people(200, 5000), original=original, kind="synthetic table", guarantee=promise)
    assert stands(found)["promise"] == "broken"
    assert not found.publish


def test_a_concentrated_promise_counts_with_its_own_slack() -> None:
    original = original_of(two_hundred)
    promise = ZeroConcentratedDP(rho="0.01", delta="0.00005")
    found = screen(people(200, 5000), original=original, kind="synthetic table", guarantee=promise)
    assert stands(found)["promise"] == "held"


def noisy(frame: pd.DataFrame) -> pd.DataFrame:
    place = np.arange(len(frame))
    return frame.assign(
        salary=frame["salary"] + mixed(place, 8, 100) * 1e-9, latitude=frame["latitude"] + mixed(place, 9, 100) * 1e-11
    )


COPIES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "as they are": lambda frame: frame,
    "in another order": lambda frame: frame.sample(frac=1, random_state=1),
    "with noise in the ninth digit": noisy,
    "with noise of a euro": lambda frame: frame.assign(salary=frame["salary"] + mixed(np.arange(len(frame)), 8, 3) - 1),
    "in capitals and with blanks": lambda frame: frame.assign(illness=" " + frame["illness"].str.upper() + " "),
    "numbers as texts": lambda frame: frame.assign(salary=frame["salary"].astype(str), age=frame["age"].astype(float)),
    "days as texts": lambda frame: frame.assign(seen=frame["seen"].dt.strftime("%Y-%m-%d %H:%M:%S")),
    "without a column": lambda frame: frame.drop(columns="salary"),
    "without most columns": lambda frame: frame[["age", "salary", "illness"]],
    "in another unit": lambda frame: frame.assign(salary=frame["salary"] * 1.17, latitude=frame["latitude"] - 40),
    "each twice": lambda frame: pd.concat([frame, frame]),
    "a tenth, among made-up rows": lambda frame: pd.concat([wide(540, 90_000), frame[:60]]),
    "one column made up": lambda frame: frame.assign(zip=wide(600, 90_000)["zip"]),
    "one column shuffled": lambda frame: frame.assign(illness=np.roll(frame["illness"], 7)),
    "each column shuffled by itself": lambda frame: frame.apply(lambda column: np.roll(column, len(column.name) * 7)),
}


WAITING = {
    "in another order",
    "with noise in the ninth digit",
    "without a column",
    "each twice",
    "one column made up",
}
"""What is found by the same comparisons as a copy that always runs, which is further from the original."""


@pytest.mark.parametrize("name", audited(COPIES, but=[name for name in COPIES if name not in WAITING]))
def test_copies_with_a_stated_promise_are_refused(name: str) -> None:
    frame = wide()
    found = screen(COPIES[name](frame), original=original_of(wide), kind="synthetic table", guarantee=DP)
    assert stands(found)["copies"] == "broken"
    assert not found.publish
    assert str(frame["salary"][7]) not in json.dumps(found.to_dict())


def test_values_that_cannot_be_compared_speak_against_publishing() -> None:
    frame = wide()
    coded = frame.assign(illness="code " + frame["illness"].astype("category").cat.codes.astype(str))
    ranges = frame.assign(age=[f"[{age // 10 * 10}, {age // 10 * 10 + 10})" for age in frame["age"]])
    for shown in (coded, ranges):
        found = screen(shown, original=described(frame), kind="synthetic table", guarantee=DP)
        assert stands(found)["values"] == "not run"
        assert not found.publish


def test_tables_without_a_common_column_speak_against_publishing() -> None:
    frame = people(200)
    other = frame.rename(columns=str.upper)
    assert not gate(other, original=frame, kind="synthetic table", guarantee=DP).publish
    assert not screen(other, original=described(frame), kind="synthetic table", guarantee=DP).publish


def test_a_control_of_rows_of_the_release_shows_nothing() -> None:
    frame, shown = wide(), wide(600, 90_000)
    found = screen(shown, original=described(frame), control=shown, kind="synthetic table", guarantee=DP)
    assert stands(found)["control"] == "broken"


@pytest.mark.parametrize("method", ["IndependentMarginals", "SpanningTree", "HistogramSynthesizer"])
def test_honest_synthetic_tables_show_no_more_than_chance(method: str) -> None:
    original = described(people(2000))
    price = {"delta": "1e-6"} if method == "SpanningTree" else {}
    made = getattr(cl.synth, method)(epsilon=1, **price).fit(original).sample(2000)
    found, strange = find_copies(
        original,
        made,
        quasi=["age", "zip", "sex"],
        sensitive=["illness"],
        policy=GatePolicy(),
        source=SystemRandomSource(),
    )
    assert not strange
    assert not [look for look in found if look.exceeds]


def test_an_honest_synthetic_table_passes_on_its_promise() -> None:
    original = described(people(1000))
    model = cl.synth.SpanningTree(epsilon=1, delta="1e-6").fit(original)
    found = gate(model.sample(1000), original=original, kind="synthetic table", guarantee=model.guarantee_)
    assert found.publish, found.verdict


def test_other_people_are_no_copies() -> None:
    for frame, others in ((people(1000), people(1000, 5000)), (wide(), wide(600, 5000))):
        original = described(frame)
        found, strange = find_copies(
            original,
            cl.open_table(others),
            quasi=["age", "zip", "sex"],
            sensitive=["illness"],
            policy=GatePolicy(),
            source=SystemRandomSource(),
        )
        assert not strange
        assert not [look for look in found if look.exceeds]


def test_missing_cells_are_compared_too() -> None:
    frame = wide(60).assign(salary=np.nan, seen=pd.NaT, zip=None)
    frame.loc[:29, "salary"] = np.arange(30) * 1000.0
    for resolution in RESOLUTIONS:
        pair = read_pair(cl.open_table(frame), cl.open_table(frame), list(frame.columns), resolution=resolution)
        assert not pair.strange
        first, second = pair.hash_cells()
        assert np.array_equal(first, second)


def kept(frame: pd.DataFrame, **roles: str) -> Any:
    """Return a release with k = 10 and l = 4, in which insensitive columns stay as they are."""
    models = [cl.KAnonymity(k=10), cl.LDiversity("illness", l=4)]
    return cl.anonymize(described(frame, **roles), models=models, algorithm="mondrian")


def test_a_timestamp_that_nobody_counts_is_found() -> None:
    frame = people(1500).assign(seen=pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(1500) * 61, unit="s"))
    release = kept(frame)
    for found in (screen(release), screen(release.table, original=described(frame), kind="anonymized table")):
        assert stands(found)["uniqueness"] == "broken"
        assert '"seen"' in found.verdict
        assert "1,500 of 1,500 rows" in found.verdict


@pytest.mark.parametrize(
    "extra",
    [
        {"latitude": lambda place: 48 + place / 1e5, "longitude": lambda place: 11 + place * 7 % 1500 / 1e5},
        {
            "shoe": lambda place: place % 40,
            "street": lambda place: np.char.add("street ", (place * 7 % 30).astype(str)),
        },
        {"code": lambda place: np.char.add("x", place.astype(str))},
    ],
    ids=["coordinates", "two together", "texts"],
)
def test_columns_that_are_unique_together_are_found(extra: dict[str, Any]) -> None:
    place = np.arange(1500)
    frame = people(1500).assign(**{name: make(place) for name, make in extra.items()})
    assert stands(screen(kept(frame)))["uniqueness"] == "broken"


def test_an_insensitive_column_that_splits_no_class_does_no_harm() -> None:
    frame = people(1500).assign(country="DE")
    found = gate(kept(frame))
    assert stands(found)["uniqueness"] == "held"
    assert found.publish, found.verdict


def test_the_table_is_looked_at_and_not_only_what_the_release_says_of_it() -> None:
    frame = people(1500)
    release = kept(frame)
    swapped = dataclasses.replace(release, table=cl.open_table(frame))
    assert gate(release).publish
    assert stands(gate(swapped))["uniqueness"] == "broken"


def test_quasi_identifiers_that_are_not_named_count_all_the_same() -> None:
    frame = people(1500)
    found = screen(frame, original=described(frame), kind="anonymized table", quasi_identifiers=["sex"])
    assert stands(found)["uniqueness"] == "broken"


def test_a_name_under_another_name_is_found() -> None:
    frame = people(1500).assign(name=[f"Ada {place}" for place in range(1500)])
    for role in ("sensitive", "insensitive"):
        original = described(frame.assign(alias=frame["name"].str.upper()), name="identifier", alias=role)
        release = cl.anonymize(original, models=[cl.KAnonymity(k=10)], algorithm="mondrian")
        for found in (screen(release), screen(release.table, original=original, kind="anonymized table")):
            assert stands(found)["names under another name"] == "broken"
            assert "Ada 7" not in json.dumps(found.to_dict())


def test_numbers_of_people_do_not_make_an_age_a_name() -> None:
    frame = people(1500).assign(number=np.arange(1500))
    original = described(frame, number="identifier")
    models = [cl.KAnonymity(k=10), cl.LDiversity("illness", l=4)]
    found = screen(cl.anonymize(original, models=models, algorithm="mondrian"))
    assert "names under another name" not in stands(found)


def test_a_sensitive_value_of_ones_own_is_found_and_a_number_is_told() -> None:
    frame = people(1500).assign(token=[f"t{place * 7919 % 15_013}" for place in range(1500)], cost=np.arange(1500) * 7)
    release = cl.anonymize(
        described(frame, token="sensitive", cost="sensitive"), models=[cl.KAnonymity(k=10)], algorithm="mondrian"
    )
    found = stands(screen(release))
    assert found["values of one person"] == "broken"
    assert found["numbers of one person"] == "told"


def test_free_text_and_guessed_roles_speak_against_publishing() -> None:
    frame = people(1500).assign(note=[f"seen on ward {place % 7}" for place in range(1500)])
    table = described(frame, note="sensitive")
    column = dataclasses.replace(table.schema["note"], kind="text", categories=None)
    table = table.with_schema(table.schema.with_column(column))
    models = [cl.KAnonymity(k=10), cl.LDiversity("illness", l=4)]
    release = cl.anonymize(table, models=models, algorithm="mondrian")
    found = screen(release)
    assert stands(found)["free text"] == "not run"
    assert not found.publish
    assert stands(screen(release.table, original=table, kind="anonymized table"))["free text"] == "not run"
    opened = cl.open_table(people(1500))
    guessed = opened.with_schema(cl.Schema.infer(opened))
    found = screen(people(1500), original=guessed, kind="anonymized table", quasi_identifiers=["age"])
    assert stands(found)["guessed roles"] == "not run"


def test_the_warnings_of_a_release_are_told() -> None:
    found = screen(anonymized(patients(), cl.LDiversity("illness", l=3)))
    told = next(finding for finding in found.findings if finding.attack == "own warnings")
    assert "Another release of the same people" in told.reason
    assert not told.blocks


def hiding(rows: int, illness: Any) -> pd.DataFrame:
    """Return a table of two crowds, of whom the first so many are shown with nothing known about them."""
    place = np.arange(400)
    frame = pd.DataFrame({"age": np.where(place < rows, 99, 30 + place % 2), "illness": ILLNESSES[place // 2 % 5]})
    frame.loc[: rows - 1, "illness"] = illness
    return frame


@pytest.mark.parametrize(
    ("rows", "illness", "attack", "stand"),
    [
        (6, ILLNESSES[np.arange(6) % 5], "linkage", "held"),
        (3, ILLNESSES[:3], "linkage", "broken"),
        (6, ILLNESSES[np.arange(6) % 5], "hidden rows", "held"),
        (6, "flu", "hidden rows", "broken"),
    ],
)
def test_rows_that_show_nothing_are_a_class_like_others(rows: int, illness: Any, attack: str, stand: str) -> None:
    frame = hiding(rows, illness)
    shown = frame.assign(age=["*" if age == 99 else str(age) for age in frame["age"]])
    asked: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": "illness", "kind": "anonymized table"}
    found = gate(shown, original=frame, **asked)
    assert stands(found)[attack] == stand
    assert found.publish is (stand == "held")


def test_repeated_rows_make_no_crowd() -> None:
    frame = people(300)
    found = screen(pd.concat([frame] * 10), original=described(frame), kind="anonymized table")
    assert stands(found)["rows"] == "broken"


def test_a_sensitive_column_beside_what_is_known_is_found() -> None:
    quasi = people(100).assign(GroupID=np.arange(100) // 4)
    second = pd.DataFrame({"GroupID": np.arange(100) // 4, "illness": quasi["illness"], "Count": 1})
    found = screen((quasi, second), original=described(people(100)))
    assert stands(found)["columns"] == "broken"


def test_a_column_that_the_original_does_not_have_is_found_without_a_schema() -> None:
    frame = people(300)
    found = screen(frame.assign(alias="x"), original=frame, kind="synthetic table", guarantee=DP)
    assert stands(found)["columns"] == "broken"


def persons(frame: pd.DataFrame, each: int) -> Any:
    named = frame.assign(person=[f"p{place // each}" for place in range(len(frame))])
    table = described(named, person="identifier")
    return table.with_schema(table.schema.with_subject("person"))


def test_persons_are_counted_where_each_has_several_rows() -> None:
    frame = people(1500).sort_values(["sex", "zip", "age"], ignore_index=True)
    original = persons(frame, 3)
    models = [cl.KAnonymity(k=5), cl.LDiversity("illness", l=2)]
    release = cl.anonymize(original, models=models, algorithm="mondrian")
    found = screen(release.table, original=original, kind="anonymized table")
    assert stands(found)["rows of one person"] == "held"
    careless = cl.anonymize(described(frame), models=models, algorithm="mondrian")
    found = screen(careless.table, original=original, kind="anonymized table")
    assert stands(found)["rows of one person"] == "broken"


def test_overlapping_classes_leave_open_how_many_persons_there_are() -> None:
    frame = people(200)
    shown = frame.assign(age="*", zip=np.where(np.arange(200) < 100, "*", frame["zip"]))
    found = screen(shown, original=persons(frame, 4), kind="anonymized table")
    assert stands(found)["rows of one person"] == "not run"


def test_a_promise_about_persons_stands_for_their_rows() -> None:
    frame = people(600)
    original = persons(frame, 3)
    shown = people(600, 5000)
    asked: dict[str, Any] = {"original": original, "kind": "synthetic table"}
    found = screen(shown, guarantee=PureDP(epsilon=1, unit="person", adjacency="user"), **asked)
    assert stands(found)["rows of one person"] == "told"
    assert stands(screen(shown, guarantee=DP, **asked))["rows of one person"] == "not run"
    single = persons(frame, 1)
    assert "rows of one person" not in stands(screen(shown, original=single, kind="synthetic table", guarantee=DP))


def answers(rows: int = 400, start: int = 0, columns: int = 12) -> np.ndarray:
    """Return people as answers to questions with four answers each."""
    place = np.arange(start, start + rows)
    return np.column_stack([np.minimum(mixed(place, 11 + column, 6), 3) for column in range(columns)])


def asked(codes: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({f"q{column}": [f"v{code}" for code in codes[:, column]] for column in range(codes.shape[1])})


def rewritten(codes: np.ndarray, cells: int) -> np.ndarray:
    """Return the rows with some other answer in so many cells of each, the last row first."""
    changed, place = codes.copy(), np.arange(len(codes))
    order = np.argsort([mixed(place, 50 + column, 10**6) for column in range(codes.shape[1])], axis=0)
    for column in order[:cells]:
        changed[place, column] = (codes[place, column] + 1 + mixed(place, 70, 3)) % 4
    return changed[::-1]


def nearby(shown: pd.DataFrame, original: Any) -> GateResult:
    return screen(shown, original=original, kind="synthetic table", guarantee=DP)


@pytest.mark.parametrize("cells", [2, 3])
@pytest.mark.parametrize("is_described", [False, True], ids=["bare", "described"])
def test_rows_that_were_changed_in_a_few_cells_are_found(cells: int, is_described: bool) -> None:
    codes = answers()
    shown, frame = asked(rewritten(codes, cells)), asked(codes)
    found = nearby(shown, described(frame) if is_described else frame)
    assert stands(found)["nearest rows"] == "broken"
    assert not found.publish


def test_numbers_with_noise_in_each_are_found() -> None:
    place = np.arange(400)
    frame = pd.DataFrame({f"lab{column}": mixed(place, column, 1000) / 10 for column in range(6)})
    noise = np.column_stack([mixed(place, 30 + column, 200) / 100 - 1 for column in range(6)])
    found = nearby((frame + noise)[::-1], frame)
    assert stands(found)["nearest rows"] == "broken"


def test_other_people_and_other_answers_are_not_too_near() -> None:
    for shown in (answers(400, 9000), answers(900, 9000), rewritten(answers(), 9)):
        found = nearby(asked(shown), asked(answers()))
        assert stands(found)["nearest rows"] == "held"


def few_questions() -> pd.DataFrame:
    return asked(answers(columns=4))


def many_questions() -> pd.DataFrame:
    return asked(answers(columns=6))


@pytest.mark.parametrize("method", ["IndependentMarginals", "SpanningTree", "HistogramSynthesizer"])
@pytest.mark.parametrize("columns", [4, 6])
def test_honest_synthetic_tables_are_no_nearer_than_chance(method: str, columns: int) -> None:
    original = original_of(many_questions if columns == 6 else few_questions)
    price = {"delta": "1e-6"} if method == "SpanningTree" else {}
    made = getattr(cl.synth, method)(epsilon=1, **price).fit(original).sample(400)
    found = nearby(made, original)
    assert stands(found)["nearest rows"] == "held", found.verdict
    assert stands(found)["copies"] == "held", found.verdict


def named(rows: int = 1000) -> np.ndarray:
    """Return full names, some of which several people have."""
    place = np.arange(rows)
    return np.array([f"First{a} Last{b}" for a, b in zip(mixed(place, 5, 60), mixed(place, 6, 90), strict=True)])


@pytest.mark.parametrize("is_known", [False, True], ids=["bare", "every name declared"])
def test_a_true_name_beside_a_true_diagnosis_is_found(is_known: bool) -> None:
    frame = people().assign(name=named())
    assert 0.6 < (~frame["name"].duplicated(keep=False)).mean() < 0.9
    shown = frame.assign(age=np.roll(frame["age"], 3), zip=np.roll(frame["zip"], 5), sex=np.roll(frame["sex"], 8))
    original: Any = frame
    if is_known:
        original = described(frame)
        column = cl.Column(name="name", role="insensitive", categories=sorted(set(frame["name"])))
        original = original.with_schema(original.schema.with_column(column))
    found = nearby(shown[::-1], original)
    assert stands(found)["copies"] == "broken"
    assert '"illness", "name"' in found.verdict
    assert "First7" not in json.dumps(found.to_dict())


def test_true_names_among_shuffled_columns_are_found() -> None:
    frame = people().assign(name=named())
    shown = frame.apply(lambda column: np.roll(column, len(column.name) * 7))
    assert 'Of the values of "name" that are somebody\'s own' in nearby(shown, frame).verdict


def protected(extra: dict[str, Any], **known: Any) -> GateResult:
    """Return what the gate says of a table with rough known columns and further ones that are called sensitive."""
    frame = people(900).assign(**extra)[["age", "sex", "illness", *extra]]
    shown = frame.assign(age=[f"[{age // 30 * 30}, {age // 30 * 30 + 30})" for age in frame["age"]])
    told = {"quasi_identifiers": ["age", "sex"], "sensitive": ["illness", *extra]}
    return screen(shown[::-1], original=known.pop("original", frame), kind="anonymized table", **told)


def test_names_that_some_people_share_are_found_where_they_are_called_sensitive() -> None:
    found = protected({"name": named(900)})
    assert stands(found)["values of one person"] == "broken"
    assert "First7" not in json.dumps(found.to_dict())


def test_a_few_values_of_ones_own_are_told() -> None:
    rare = np.where(np.arange(900) < 30, np.arange(900), 1000)
    found = protected({"code": [f"c{value}" for value in rare]})
    assert stands(found)["values of one person"] == "told"
    assert "30 of 900" in next(item.reason for item in found.findings if item.attack == "values of one person")
    assert found.publish


NUMBERS: dict[str, Callable[[np.ndarray], Any]] = {
    "phones": lambda place: 41_790_000_000 + place * 7919,
    "seconds": lambda place: 1_600_000_000 + mixed(place, 9, 10**8),
    "seconds with parts": lambda place: 1_600_000_000.25 + mixed(place, 9, 10**8),
    "digits in texts": lambda place: [str(41_790_000_000 + value * 7919) for value in place],
    "times": lambda place: pd.Timestamp("2024-01-01") + pd.to_timedelta(place * 61, unit="s"),
}


@pytest.mark.parametrize("make", NUMBERS.values(), ids=NUMBERS)
def test_numbers_of_many_digits_are_names(make: Callable[[np.ndarray], Any]) -> None:
    found = protected({"number": make(np.arange(900))})
    assert stands(found)["values of one person"] == "broken"
    assert not found.publish


def test_numbers_of_many_digits_that_are_declared_as_amounts_are_told() -> None:
    cost = 1_000_000 + mixed(np.arange(900), 9, 10**8)
    original = described(people(900).assign(cost=cost), cost="sensitive")
    column = cl.Column(name="cost", role="sensitive", kind="numeric", bounds=(0, 10**9))
    declared = original.with_schema(original.schema.with_column(column))
    assert stands(protected({"cost": cost}, original=declared))["numbers of one person"] == "told"
    guessed = original.with_schema(original.schema.with_column(dataclasses.replace(column, guessed={"bounds"})))
    assert stands(protected({"cost": cost}, original=guessed))["values of one person"] == "broken"


def test_the_word_of_an_unknown_signer_excuses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOISTER_SIGNING_KEY", str(tmp_path / "signing.key"))
    frame, place = people(200), tmp_path / "made-up.csv"
    people(200, 5000).to_csv(place, index=False)
    key = SigningKey.generate()
    certify([place], kind="synthetic table", guarantee=DP, recipe={}, key=key)
    found = gate(place, original=frame)
    assert stands(found)["promise"] == "not run"
    assert not found.publish
    assert stands(gate(place, original=frame, control=people(200, 9000)))["promise"] == "told"
    assert gate(place, original=frame, guarantee=DP).publish  # the custodian's own word
    (tmp_path / "signers").write_text(f"{key.public} clinic\n", encoding="utf-8")
    assert gate(place, original=frame).publish
