from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from cloister.anonymize.hidden_rules import hide_rules
from cloister.anonymize.transactions import AssociationRule, Transactions, mine_rules
from cloister.errors import CloisterError, DataError, ParameterError, ParameterTypeError
from cloister.testing import check_golden, load_golden

BASKETS = [{"milk", "bread"}, {"butter"}, {"beer", "diapers"}, {"milk", "bread", "butter"}, {"bread"}]
METHODS = ("decrease_consequent", "increase_antecedent", "block", "drop_item")
GOLDEN = Path(__file__).parents[1] / "golden" / "anonymize" / "rule_hiding" / "baskets.toml"
baskets = st.lists(st.sets(st.sampled_from("abcd")), min_size=1, max_size=12)
shares = st.fractions("1/20", 1, max_denominator=20)


def _example(*, baskets: list[list[str]]) -> dict[str, Any]:
    before = Transactions.from_sets(baskets)
    rule, side = AssociationRule.parse("milk => bread"), AssociationRule.parse("bread => milk")
    result = hide_rules(before, [rule], min_support=0.2, min_confidence=0.7)
    changed = [
        sorted(new) for old, new in zip(before.to_sets(), result.transactions.to_sets(), strict=True) if old != new
    ]
    return {
        "bread": before.support({"bread"}),
        "bread_and_butter": before.support({"bread", "butter"}),
        "confidence": before.confidence(rule),
        "hidden_confidence": result.transactions.confidence(rule),
        "side_effect_before": before.confidence(side),
        "side_effect_after": result.transactions.confidence(side),
        "changed": changed[0],
        "failure": result.hiding_failure,
    }


def test_the_worked_example() -> None:
    check_golden(load_golden(GOLDEN), _example)


def _mined_by_hand(
    sets: list[set[str]], support: Fraction, confidence: Fraction
) -> set[tuple[AssociationRule, Fraction, Fraction]]:
    def count(items: Any) -> int:
        return sum(set(items) <= row for row in sets)

    found = set()
    items = sorted(set().union(*sets))
    for size in range(2, len(items) + 1):
        for together in combinations(items, size):
            for left in (part for cut in range(1, size) for part in combinations(together, cut)):
                both = count(together)
                if both and both >= support * len(sets) and both >= confidence * count(left):
                    rule = AssociationRule(frozenset(left), frozenset(together) - set(left))
                    found.add((rule, Fraction(both, len(sets)), Fraction(both, count(left))))
    return found


@given(baskets, shares, shares)
def test_mining_finds_exactly_the_rules_by_definition(sets: Any, support: Fraction, confidence: Fraction) -> None:
    mined = mine_rules(Transactions.from_sets(sets), min_support=support, min_confidence=confidence)
    assert len({found.rule for found in mined}) == len(mined)
    assert {(found.rule, found.support, found.confidence) for found in mined} == _mined_by_hand(
        sets, support, confidence
    )


@given(baskets, shares, shares, st.sampled_from(METHODS))
def test_hiding_reports_what_is_really_found_afterwards(sets: Any, support: Any, confidence: Any, method: str) -> None:
    before = Transactions.from_sets([*sets, {"a", "b", "c", "d"}])
    rules = ["a => b", "c => a, d"]
    result = hide_rules(before, rules, method=method, min_support=support, min_confidence=confidence)
    found = {mined.rule for mined in mine_rules(result.transactions, min_support=support, min_confidence=confidence)}
    old = {mined.rule for mined in mine_rules(before, min_support=support, min_confidence=confidence)}
    wanted = set(map(AssociationRule.parse, rules))
    assert set(result.still_found) == wanted & found
    assert set(result.lost) == old - wanted - found
    assert set(result.ghosts) == found - old - wanted
    assert len(result.transactions) == len(before)
    assert 0 <= result.hiding_failure <= 1
    assert 0 <= result.lost_share <= 1
    if not wanted & old:
        assert result.entries_changed == 0


@given(baskets, shares, shares, st.sampled_from(["decrease_consequent", "block", "drop_item"]))
def test_one_rule_is_always_hidden_by_taking_away(sets: Any, support: Any, confidence: Any, method: str) -> None:
    before = Transactions.from_sets([*sets, {"a", "b"}])
    result = hide_rules(before, ["a => b"], method=method, min_support=support, min_confidence=confidence)
    assert result.hiding_failure == 0
    if method == "decrease_consequent":
        held = [set(row) for row in before.to_sets()]
        kept = [set(row) for row in result.transactions.to_sets()]
        assert all(new <= old and old - new <= {"b"} for old, new in zip(held, kept, strict=True))


def test_blocking_gives_intervals_that_hold_the_truth() -> None:
    before = Transactions.from_sets(BASKETS)
    rule = AssociationRule.parse("milk => bread")
    result = hide_rules(before, [rule], method="block", min_support=0.2, min_confidence=0.7)
    low, high = result.transactions.confidence_interval(rule)
    assert (low, high) == (Fraction(1, 2), Fraction(1))
    assert result.transactions.support_interval({"bread"}) == (2, 3)
    table = result.transactions.to_arrow()
    assert table["bread"].null_count == 1
    again = Transactions.from_table(table)
    assert again.confidence_interval(rule) == (low, high)
    assert result.lost == ()


def test_adding_lowers_confidence_and_says_when_it_cannot() -> None:
    before = Transactions.from_sets(BASKETS)
    result = hide_rules(before, ["milk => bread"], method="increase_antecedent", min_support=0.2, min_confidence=0.7)
    assert result.transactions.confidence(AssociationRule.parse("milk => bread")) == Fraction(2, 3)
    assert result.hiding_failure == 0
    always = Transactions.from_sets([{"a", "b"}, {"b"}])
    stuck = hide_rules(always, ["a => b"], method="increase_antecedent", min_support=0.5, min_confidence=0.7)
    assert stuck.hiding_failure == 1
    assert stuck.still_found == (AssociationRule.parse("a => b"),)


def test_dropping_an_item_prefers_the_one_that_fewest_rules_need() -> None:
    sets = [{"a", "b", "c"}] * 4 + [{"c", "d"}] * 4
    result = hide_rules(
        Transactions.from_sets(sets), ["a => b, c"], method="drop_item", min_support=0.2, min_confidence=0.7
    )
    assert result.transactions.items == ("a", "c", "d")
    assert result.entries_changed == 4
    again = hide_rules(
        Transactions.from_sets(sets), ["a => b", "c => b"], method="drop_item", min_support=0.2, min_confidence=0.5
    )
    assert again.hiding_failure == 0


def test_the_transactions_that_support_fewest_other_rules_are_changed() -> None:
    sets = [{"a", "b", "c", "d"}, {"a", "b", "c", "d"}, {"a", "b"}, {"a"}]
    result = hide_rules(Transactions.from_sets(sets), ["a => b"], min_support=0.25, min_confidence=0.75)
    assert result.transactions.to_sets()[2] == {"a"}
    assert result.entries_changed == 1


def test_the_result_promises_nothing_and_prints_its_side_effects() -> None:
    result = hide_rules(Transactions.from_sets(BASKETS), ["milk => bread"], min_support=0.2, min_confidence=0.7)
    assert not result.guarantee.holds
    assert "no protection" in result.guarantee.explain()
    assert str(result) == "1 of 1 rules hidden; 0 of 4 other rules lost, 1 ghosts; 1 of 9 entries changed"
    assert result.to_dict()["ghosts"] == ["bread, milk => butter"]
    assert result.dissimilarity == pytest.approx(1 / 9)
    assert "bread" not in repr(result.transactions)


def test_thresholds_are_exact() -> None:
    sets = [{"a", "b"}] * 7 + [{"a"}] * 3
    mined = mine_rules(Transactions.from_sets(sets), min_support=0.7, min_confidence=0.7)
    assert {str(found.rule) for found in mined} == {"a => b", "b => a"}
    assert str(mined[0]) == "a => b (support 0.7, confidence 0.7)"


def test_tables_of_truth_values() -> None:
    table = pa.table({"a": [True, False, None], "b": [True, True, True]})
    found = Transactions.from_table(table)
    assert found.support_interval({"a", "b"}) == (1, 2)
    assert found.to_arrow().equals(table)
    with pytest.raises(DataError, match="one true/false column"):
        Transactions.from_table(pa.table({"a": [1]}))


def test_confidence_without_anybody() -> None:
    rule = AssociationRule.parse("a => b")
    nobody = Transactions(["a", "b"], np.zeros((2, 2), dtype=bool))
    assert nobody.confidence_interval(rule) == (0, 0)
    unknown = Transactions(["a", "b"], np.zeros((1, 2), dtype=bool), np.ones((1, 2), dtype=bool))
    assert unknown.confidence_interval(rule) == (0, 1)


@pytest.mark.parametrize("text", ["", "a", "a =>", "a => a", "a => b => c"])
def test_broken_rules_are_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="milk"):
        AssociationRule.parse(text)


def test_one_item_needs_no_list() -> None:
    assert AssociationRule("milk", "bread") == AssociationRule.parse("milk => bread")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ({"method": "delete"}, "decrease_consequent"),
        ({"rules": []}, "min_confidence=0.7"),
        ({"min_confidence": 0}, "min_confidence=0.7"),
        ({"min_support": 0}, "min_support=0.01"),
        ({"min_support": 2}, "probability"),
        ({"rules": ["milk => bred"]}, 'Did you mean "bread"'),
        ({"longest": 1}, "longest"),
    ],
)
def test_broken_settings_are_refused(options: dict[str, Any], fix: str) -> None:
    settings: dict[str, Any] = {"rules": ["milk => bread"], "min_support": 0.2, "min_confidence": 0.7, **options}
    with pytest.raises(CloisterError, match=fix):
        hide_rules(Transactions.from_sets(BASKETS), settings.pop("rules"), **settings)


def test_broken_transactions_are_refused() -> None:
    with pytest.raises(ParameterTypeError, match="sets"):
        Transactions.from_sets(["milk"])
    with pytest.raises(ParameterTypeError, match="texts"):
        Transactions.from_sets([[1]])  # type: ignore[list-item]
    with pytest.raises(ParameterError, match="once"):
        Transactions(["a", "a"], np.zeros((1, 2), dtype=bool))
    with pytest.raises(ParameterError, match="from_sets"):
        Transactions(["a"], np.zeros((1, 2), dtype=bool))


def test_too_many_sets_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloister.anonymize.transactions._MOST_SETS", 5)
    with pytest.raises(ParameterError, match="raise min_support"):
        mine_rules(Transactions.from_sets([set("abcd")]), min_support=1, min_confidence=1)


def test_no_transactions_hold_no_rules() -> None:
    assert mine_rules(Transactions.from_sets([]), min_support=0.5, min_confidence=0.5) == ()


def test_the_only_rule_is_hidden() -> None:
    sets = [{"a", "b"}, {"a", "b"}, {"b"}, {"b"}]
    result = hide_rules(Transactions.from_sets(sets), ["a => b"], min_support=0.5, min_confidence=0.7)
    assert result.rules_before == 0
    assert result.lost_share == 0
    assert result.hiding_failure == 0
