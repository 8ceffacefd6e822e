from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import cloister as cl
from cloister.anonymize.anatomy import anatomize
from cloister.core.random import SeededRandomSource, permutation
from cloister.errors import (
    DataError,
    ParameterError,
    ParameterTypeError,
    SeededRandomnessWarning,
    UnknownColumnError,
)
from tests.support.thoroughness import audited

ILLNESSES = ("asthma", "burnout", "cancer", "diabetes")
QUASI = ["job", "smoker", "age"]


def people(rows: int = 1200, *, related: bool = True, seed: int = 3) -> pd.DataFrame:
    """Return a table in which jobs, smoking and age go with the illness, or with nothing."""
    order = permutation(SeededRandomSource(seed), rows)
    illness = order % 4
    noise = permutation(SeededRandomSource(seed + 1), rows)
    told = illness if related else noise % 4
    return pd.DataFrame(
        {
            "job": [f"job {(code + (extra % 4 == 0)) % 4}" for code, extra in zip(told, noise // 4, strict=True)],
            "smoker": np.where((told == 2) ^ (noise % 5 == 0), "yes", "no"),
            "age": 20 + 10 * told + noise % 31,
            "illness": [ILLNESSES[code] for code in illness],
        }
    )


def released(frame: pd.DataFrame, l: int = 3) -> Any:  # noqa: E741
    return cl.anonymize(
        cl.open_table(frame),
        models=[cl.LDiversity("illness", l=l, kind="frequency")],
        algorithm="anatomy",
        quasi_identifiers=[name for name in frame.columns if name != "illness"],
        sensitive=["illness"],
    )


RELATED, UNRELATED = people(), people(related=False)
TABLES = anatomize(
    pa.Table.from_pandas(RELATED), quasi=QUASI, sensitive="illness", l=2, random_state=SeededRandomSource(9)
)
PAIR = (TABLES.quasi, TABLES.sensitive)
TRUTH = RELATED["illness"].to_numpy()[TABLES.positions]


@pytest.mark.parametrize("method", ["exact", "restricted"])
def test_related_columns_give_people_away(method: str) -> None:
    result = cl.attacks.anatomy_em(released(RELATED), truth=RELATED, method=method, starts=2)
    assert result.success > 0.8
    assert result.baseline == pytest.approx(1 / 3)
    assert result.succeeded
    assert result.verdict.startswith("An attacker who knows only the two published tables is right for ")
    assert "where the release promises 33.3%" in result.verdict


def test_a_column_that_tells_everything_is_a_success_also_without_groups() -> None:
    frame = pd.DataFrame({"ward": RELATED["illness"].str.upper(), "illness": RELATED["illness"]})
    result = cl.attacks.anatomy_em(released(frame), truth=frame, starts=1)
    assert (result.success, result.without_groups) == (1, 1)
    assert result.succeeded
    assert result.verdict.startswith("An attacker who knows only the two published tables is right for 100%")


def test_sampling_gives_the_same_people_away() -> None:
    release = released(RELATED)
    sampled = cl.attacks.anatomy_definetti(release, truth=RELATED, sweeps=60, burn_in=60)
    learned = cl.attacks.anatomy_em(release, truth=RELATED, starts=1)
    assert sampled.success == pytest.approx(learned.success, abs=0.05)
    assert sampled.succeeded
    assert sampled.method == "sampling"


@pytest.mark.parametrize("attack", [cl.attacks.anatomy_em, cl.attacks.anatomy_definetti])
def test_unrelated_columns_give_nobody_away(attack: Any) -> None:
    result = attack(released(UNRELATED), truth=UNRELATED)
    assert abs(result.success - 1 / 3) < 0.12
    assert "found no more than the release promises" in result.verdict or result.interval[0] < 0.42


def test_the_free_variant_is_there_and_weaker() -> None:
    free, exact = (
        cl.attacks.anatomy_em(PAIR, truth=TRUTH, method=method, starts=3, random_state=SeededRandomSource(8))
        for method in ("free", "exact")
    )
    assert free.success < exact.success
    assert (free.claim, exact.claim) == ("calibrated", "posterior")


def test_without_the_truth_a_release_is_scored_by_what_it_was_made_from() -> None:
    release = released(RELATED)
    results = [cl.attacks.anatomy_em(release, truth=truth, starts=1) for truth in (None, RELATED)]
    assert results[0].success == pytest.approx(results[1].success, abs=0.01)


def test_every_form_of_the_truth_and_of_the_tables_is_understood(tmp_path: Path) -> None:
    release = released(RELATED)
    truths = [
        RELATED,
        cl.open_table(RELATED),
        RELATED["illness"],
        RELATED["illness"].astype("category"),
        RELATED["illness"].tolist(),
        pa.Table.from_pandas(RELATED),
        RELATED["illness"].to_numpy()[release.tables.positions],
    ]
    found = [cl.attacks.anatomy_em(release, truth=truth, starts=1).success for truth in truths]
    quasi, sensitive = release.write(tmp_path / "release.csv")
    in_order = RELATED["illness"].to_numpy()[release.tables.positions]
    pairs = [(release.quasi, release.sensitive), (release.quasi.to_pandas(), release.sensitive.to_pandas())]
    pairs += [(quasi, sensitive), (str(quasi), str(sensitive)), (release.tables.quasi, release.tables.sensitive)]
    found += [cl.attacks.anatomy_em(pair, truth=in_order, starts=1).success for pair in pairs]
    assert max(found) - min(found) < 0.02
    assert min(found) > 0.8


def test_worst_records_are_positions_of_the_custodians_table() -> None:
    frame = people(rows=900)
    frame.loc[[5, 17], "job"] = "astronaut"
    frame.loc[[5, 17], "illness"] = "cancer"
    result = cl.attacks.anatomy_em(released(frame, l=2), truth=frame, starts=1)
    guesses = result.guesses.to_pylist()
    assert np.mean([guess == true for guess, true in zip(guesses, frame["illness"], strict=True)]) == result.success
    assert len(result.worst) == 10
    for position, score in result.worst:
        assert guesses[position] == frame["illness"][position]
        assert score == pytest.approx(float(result.certainty[position]))
        assert score >= np.quantile(result.certainty, 0.9)


def test_the_answer_is_the_most_probable_start_not_the_most_successful_one() -> None:
    result = cl.attacks.anatomy_em(released(UNRELATED), truth=UNRELATED, starts=6)
    chosen = max(result.runs, key=lambda run: run.objective)
    assert result.success == chosen.success
    assert len(result.runs) == 6


def test_scoring_never_changes_the_answers() -> None:
    release = released(RELATED)
    true = cl.attacks.anatomy_em(release, truth=RELATED, starts=2, random_state=SeededRandomSource(4))
    groups = release.tables.quasi["GroupID"].to_numpy()
    wrong = RELATED["illness"].to_numpy()[release.tables.positions]
    order = np.argsort(groups, kind="stable")
    turned = wrong.copy()
    turned[order] = np.concatenate([np.roll(part, 1) for part in np.array_split(wrong[order], len(wrong) // 3)])
    false = cl.attacks.anatomy_em(release, truth=turned, starts=2, random_state=SeededRandomSource(4))
    assert true.guesses.equals(false.guesses)
    assert true.success > 0.8 > 0.4 > false.success


def test_groups_of_several_sizes_missing_cells_and_missing_values_are_handled() -> None:
    frame = people(rows=1001)
    frame.loc[::13, "illness"] = None
    frame.loc[::7, "job"] = None
    frame["age"] = frame["age"].astype(float)
    frame.loc[::11, "age"] = np.nan
    result = cl.attacks.anatomy_em(released(frame), truth=frame, starts=1)
    assert result.sizes == (3, 4)
    assert result.trials == 1001
    assert result.success > 0.6
    assert cl.attacks.anatomy_definetti(released(frame), truth=frame, sweeps=20, burn_in=20).success > 0.5


def test_values_that_repeat_within_a_group_are_given_out_as_often() -> None:
    jobs = ["miner", "nurse", "nurse", "miner", "miner", "nurse"] * 40
    ill = ["lung", "back", "back", "lung", "lung", "back"] * 40
    group = np.repeat(np.arange(80), 3)
    sensitive = pd.DataFrame({"GroupID": group, "illness": ill}).groupby(["GroupID", "illness"]).size()
    pair = pd.DataFrame({"job": jobs, "GroupID": group}), sensitive.reset_index(name="Count")
    result = cl.attacks.anatomy_em(pair, truth=ill, starts=1)
    assert result.success == 1
    assert result.baseline == pytest.approx(2 / 3)
    assert result.whole_groups == 1


def test_being_wrong_more_often_than_chance_is_said() -> None:
    result = cl.attacks.anatomy_em(PAIR, truth=TRUTH, starts=1)
    unlucky = dataclasses.replace(result, success=0.2, interval=(0.17, 0.23))
    assert "mixed up the names of the values" in unlucky.verdict
    assert "mixed up" not in result.verdict


def test_large_groups_are_solved_nearly() -> None:
    frame = people(rows=800)
    group = np.repeat(np.arange(20), 40)
    lines = pd.DataFrame({"GroupID": group, "illness": frame["illness"]})
    pair = frame[QUASI].assign(GroupID=group), lines.groupby(["GroupID", "illness"]).size().reset_index(name="Count")
    result = cl.attacks.anatomy_em(pair, truth=frame["illness"], starts=1)
    assert result.sizes == (40, 40)
    assert result.success > 0.6
    assert result.baseline < 0.5


def test_one_group_of_everybody_is_no_trouble() -> None:
    pair = (
        RELATED[QUASI].assign(GroupID=0),
        RELATED["illness"].value_counts().reset_index(name="Count").assign(GroupID=0),
    )
    result = cl.attacks.anatomy_em(pair, truth=RELATED["illness"], starts=1)
    assert (result.groups, result.sizes) == (1, (1200, 1200))
    assert result.baseline == pytest.approx(0.25)


def test_long_numeric_columns_are_cut_and_unique_ones_left_out() -> None:
    frame = RELATED.assign(salary=np.arange(len(RELATED)) * 7 % 1201, name=[f"p{i}" for i in range(len(RELATED))])
    result = cl.attacks.anatomy_em(released(frame), truth=frame, starts=1)
    assert result.learned_from == ("job", "smoker", "age", "salary")
    only = frame[["name", "illness"]]
    nothing = cl.attacks.anatomy_em(released(only), truth=only, starts=1)
    assert nothing.learned_from == ()
    assert abs(nothing.success - 1 / 3) < 0.12


def alike() -> tuple[tuple[pd.DataFrame, pd.DataFrame], Any]:
    """Return two tables in which everybody looks the same and rows are sorted by the truth, and the truth."""
    ill = np.repeat(["a", "b"], 600)
    group = np.tile(np.arange(600), 2)
    lines = pd.DataFrame({"GroupID": group, "illness": ill}).sort_values(["GroupID", "illness"])
    return (pd.DataFrame({"job": ["same"] * 1200, "GroupID": group}), lines), ill


@pytest.mark.parametrize("attack", [cl.attacks.anatomy_em, cl.attacks.anatomy_definetti])
def test_the_order_of_rows_tells_nothing_even_if_they_are_sorted_by_the_truth(attack: Any) -> None:
    pair, ill = alike()
    assert abs(attack(pair, truth=ill).success - 0.5) < 0.15


def test_results_say_what_an_attacker_learned_and_never_about_whom() -> None:
    result = cl.attacks.anatomy_em(released(RELATED), truth=RELATED, starts=2)
    found = result.to_dict()
    assert found["schema"] == "cloister.attack/1"
    assert set(found["scores"]) == {"posterior", "product", "calibrated"}
    report = result.report()
    texts = [json.dumps(found), repr(result), result.verdict, str(result), str(result.summary())]
    texts += [report.to_markdown(), report.to_html(), json.dumps(report.to_dict())]
    for text in texts:
        assert not any(word in text for word in (*ILLNESSES, "job 1"))
    assert set(found["group_scores"]) == {"posterior", "product", "calibrated"}
    assert "worst" not in found
    assert "differential privacy" in str(result.mitigation)
    assert "promised" in result.plot().to_svg()


def test_charts_show_honesty_with_counts_and_intervals() -> None:
    result = cl.attacks.anatomy_em(released(RELATED), truth=RELATED, starts=1)
    headings, rows = result.reliability().to_table()
    assert headings == ("claimed probability", "right", "from", "to", "count")
    assert sum(int(row[4]) for row in rows) == len(RELATED)  # type: ignore[call-overload]
    assert len(rows) == len(result.calibration.bins)
    assert "decides" in result.plot_coverage().to_svg()
    shares = [share for _, share, _ in result.coverage]
    assert shares == sorted(shares, reverse=True)


def test_the_interval_counts_groups_since_pairs_are_right_together() -> None:
    frame = people(rows=400, related=False)
    result = cl.attacks.anatomy_em(released(frame, l=2), truth=frame, starts=1)
    assert result.whole_groups == pytest.approx(result.success)
    low, high = result.interval
    assert low < result.success < high
    assert high - low > 2 * 1.6 * (result.success * (1 - result.success) / 200) ** 0.5


def test_a_seed_warns_and_the_default_is_fresh() -> None:
    pair, ill = alike()
    with pytest.warns(SeededRandomnessWarning):
        cl.attacks.anatomy_em(pair, truth=ill, starts=1, random_state=1)
    found = [cl.attacks.anatomy_em(pair, truth=ill, starts=1).guesses for _ in range(2)]
    assert not found[0].equals(found[1])


BAD_COUNTS = TABLES.sensitive.set_column(2, "Count", pa.array([0.5] * len(TABLES.sensitive)))


def one_value() -> tuple[pd.DataFrame, pd.DataFrame]:
    return pd.DataFrame({"job": ["a", "b"], "GroupID": [1, 1]}), pd.DataFrame(
        {"GroupID": [1, 1], "illness": ["x", "x"]}
    )


@pytest.mark.parametrize(
    ("release", "truth", "error", "fix"),
    [
        (RELATED, RELATED, ParameterTypeError, "two tables"),
        ("release.csv", TRUTH, ParameterTypeError, "two tables"),
        (PAIR, None, ParameterError, "give truth="),
        (PAIR, TRUTH[:5], DataError, "true value of every"),
        (PAIR, TRUTH[::-1], DataError, "original order"),
        (PAIR, ["unheard of"] * len(TRUTH), DataError, "original order"),
        (PAIR, RELATED[["job"]], UnknownColumnError, "job"),
        (PAIR, 7, ParameterTypeError, "list of its values"),
        (PAIR, [1, "a", None] * 400, ParameterTypeError, "one value for every"),
        ((TABLES.quasi.slice(0, 100), TABLES.sensitive), TRUTH[:100], DataError, "whole"),
        ((TABLES.quasi, TABLES.sensitive.slice(0, 100)), TRUTH, DataError, "whole"),
        ((TABLES.quasi.slice(0, 0), TABLES.sensitive), [], DataError, "with data"),
        ((TABLES.quasi.drop_columns(["GroupID"]), TABLES.sensitive), TRUTH, UnknownColumnError, "job"),
        ((TABLES.quasi.select(["GroupID"]), TABLES.sensitive), TRUTH, ParameterError, "table of quasi-identifiers"),
        ((TABLES.quasi, TABLES.quasi), TRUTH, ParameterError, "one sensitive column"),
        (one_value(), ["x", "x"], DataError, "another sensitive column"),
        ((TABLES.quasi, BAD_COUNTS), TRUTH, DataError, "count="),
    ],
    ids=[
        "frame", "path", "no truth", "short", "reversed", "unknown values", "no column", "number", "mixed",
        "part of quasi", "part of sensitive", "empty", "no group", "no quasi", "no sensitive", "one value", "counts",
    ],
)  # fmt: skip
def test_bad_tables_are_refused_with_what_to_do(release: Any, truth: Any, error: type[Exception], fix: str) -> None:
    with pytest.raises(error, match=fix):
        cl.attacks.anatomy_em(release, truth=truth)


@pytest.mark.parametrize(
    ("setting", "fix"),
    [
        ({"method": "exakt"}, "exact"),
        ({"objective": "mode"}, "posterior"),
        ({"starts": 0}, "starts"),
        ({"alpha": -1}, "alpha"),
        ({"tolerance": 0}, "tolerance"),
        ({"bins": 1}, "bins"),
        ({"confidence": 1}, "confidence"),
    ],
    ids=str,
)
def test_bad_settings_are_refused(setting: Any, fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        cl.attacks.anatomy_em(PAIR, truth=TRUTH, **setting)


def test_no_smoothing_at_all_works() -> None:
    assert cl.attacks.anatomy_em(PAIR, truth=TRUTH, alpha=0, beta=0, starts=2).success > 0.8
    with pytest.raises(ParameterError, match="beta"):
        cl.attacks.anatomy_definetti(PAIR, truth=TRUTH, beta=0)


@pytest.mark.slow
@pytest.mark.parametrize(("l", "least"), audited([(2, 0.7122), (3, 0.5405), (4, 0.4355)], but=[(3, 0.5405)]))
def test_adult_reaches_the_published_success(shared_data: Path, l: int, least: float) -> None:  # noqa: E741
    frame = pd.read_csv(shared_data / "adult" / "adult.csv", na_values="?", keep_default_na=True).dropna()
    frame = frame[["workclass", "relationship", "sex", "salary-class", "occupation"]].rename(
        columns={"occupation": "illness"}
    )
    assert len(frame) == 30_162
    release = released(frame, l=l)
    assert cl.attacks.anatomy_em(release, truth=frame, starts=3).success > least


def test_a_sensitive_column_in_both_tables_is_refused() -> None:
    quasi = pd.DataFrame({"illness": ["a", "b"], "GroupID": [0, 0]})
    with pytest.raises(ParameterError, match="quasi-identifiers first"):
        cl.attacks.anatomy_em((quasi, quasi), truth=["a", "b"])
