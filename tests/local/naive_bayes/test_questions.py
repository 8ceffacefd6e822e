from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.errors import ParameterError
from cloister.local import DirectEncoding, OptimizedUnaryEncoding, SubsetSelection
from cloister.local.naive_bayes._questions import (
    BitQuestion,
    FeatureQuestion,
    JointQuestion,
    QuestionPlan,
    best_support_protocol,
)
from cloister.local.naive_bayes.features import LabeledPeople


def plan(sizes: list[int], epsilon: object, *, classes: int = 2, protocol: str = "auto") -> QuestionPlan:
    names = [f"f{place}" for place in range(len(sizes))]
    return QuestionPlan(names=names, sizes=sizes, classes=classes, epsilon=Fraction(str(epsilon)), protocol=protocol)


def joint(questions: tuple[FeatureQuestion, ...]) -> list[JointQuestion]:
    return [question for question in questions if isinstance(question, JointQuestion)]


@given(
    st.lists(st.integers(2, 9), min_size=1, max_size=8),
    st.integers(2, 4),
    st.sampled_from(["1/2", "1", "2", "5", "10", "20"]),
)
def test_every_feature_is_asked_and_all_have_as_many_sides_of_the_coin(
    sizes: list[int], classes: int, epsilon: str
) -> None:
    asked = plan(sizes, epsilon, classes=classes)
    for questions in (asked.single(), asked.best()):
        sides = dict.fromkeys(range(len(sizes)), 0.0)
        for question in questions:
            places = question.places if isinstance(question, JointQuestion) else (question.place,)  # type: ignore[attr-defined]
            for place in places:
                sides[place] += question.sides / len(places)
            assert question.protocol.epsilon == Fraction(epsilon)
        assert len(set(sides.values())) == 1
        assert all(len(question.protocol.domain) == question.coding.size for question in joint(questions))


def test_features_share_questions_only_where_epsilon_is_large() -> None:
    sizes = [2] * 36
    alone, together = joint(plan(sizes, 1, classes=3).best()), joint(plan(sizes, 5).best())
    assert [question.places for question in alone][:2] == [(), (0,)]
    assert len(alone) == 37
    assert [len(question.places) for question in together] == [4] * 9
    assert all(isinstance(question.protocol, DirectEncoding) for question in together)
    assert len(plan(sizes, 5).single()) == 37


def test_features_of_two_values_are_told_by_bits_where_epsilon_is_small() -> None:
    asked = plan([2, 3], 1).best()
    assert [type(question).__name__ for question in asked] == [
        "JointQuestion",
        "BitQuestion",
        "BitQuestion",
        "JointQuestion",
    ]
    assert [question.sides for question in asked] == [8, 1, 3, 4]
    assert not any(isinstance(question, BitQuestion) for question in plan([2, 3], 2).best())
    assert not any(isinstance(question, BitQuestion) for question in plan([2, 3], 1, classes=3).best())
    assert not any(isinstance(question, BitQuestion) for question in plan([2, 3], 1).single())


def test_bits_tell_the_feature_or_whether_it_differs_from_the_class() -> None:
    _, alone, differs = plan([2], 1).best()
    people = LabeledPeople((np.array([0, 0, 1, 1]),), np.array([0, 1, 0, 1]))
    assert alone.codes(people).tolist() == [0, 0, 1, 1]
    assert differs.codes(people).tolist() == [0, 1, 1, 0]


def test_joint_questions_have_a_smaller_expected_error_than_questions_of_one_feature() -> None:
    (question,) = joint(plan([4, 4, 4, 3, 3, 3], 10, classes=4).best())
    p, q = map(float, question.protocol.probabilities)
    together = 6 * (p - q) ** 2
    p, q = map(float, DirectEncoding(domain=16, epsilon=10).probabilities)
    assert together > 3 * (p - q) ** 2


def test_a_named_protocol_is_used_for_all_questions() -> None:
    questions = plan([3, 3], 5, protocol="optimized_unary_encoding").best()
    assert [type(question.protocol) for question in questions] == [OptimizedUnaryEncoding] * 3


def test_the_best_protocol_of_one_question_has_the_smallest_variance() -> None:
    for epsilon in (Fraction(1, 2), Fraction(2), Fraction(4)):
        for size in (2, 4, 12, 24):
            chosen = best_support_protocol(size, epsilon)
            others = [kind(domain=size, epsilon=epsilon) for kind in (DirectEncoding, OptimizedUnaryEncoding)]
            assert chosen.variance() <= min(other.variance() for other in others) * (1 + 1e-9)
    assert isinstance(best_support_protocol(24, Fraction(1)), SubsetSelection)
    assert isinstance(best_support_protocol(4, Fraction(4)), DirectEncoding)


def test_large_domains_are_not_told_by_subsets() -> None:
    assert not isinstance(best_support_protocol(5000, Fraction(1)), SubsetSelection)


def test_protocols_without_support_are_refused() -> None:
    with pytest.raises(ParameterError, match='use protocol="auto"'):
        plan([2], 1, protocol="summation_histogram_encoding").best()
    with pytest.raises(Exception, match="no local protocol"):
        plan([2], 1, protocol="nonsense").single()
