from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.queries.inference_control import Controls
from cloister.queries.inference_control._decisions import AnswerCandidate, Decider, replay
from cloister.queries.inference_control._linear_audit import Audit, Mask

ROWS = 30


def rows(first: int, last: int) -> Mask:
    return (np.arange(ROWS) >= first) & (np.arange(ROWS) < last)


def candidate(known: Mask, asked: Mask | None = None, present: Mask | None = None, **options: Any) -> AnswerCandidate:
    meant = known if asked is None else asked
    return AnswerCandidate(
        known=known,
        asked=meant,
        contributing=meant if present is None else meant & present,
        is_confidential=asked is not None,
        **{"values": "values of pay", **options},
    )


def decider(**controls: Any) -> Decider:
    return Decider(Controls(**{"min_size": 3, **controls}), [], {}, rows=ROWS)


@pytest.mark.parametrize(("size", "control"), [(2, "size"), (3, None), (27, None), (28, "size")])
def test_sizes(size: int, control: str | None) -> None:
    assert decider().refusal(candidate(rows(0, size))) == control


def test_a_control_that_is_off_refuses_nothing() -> None:
    judge = decider(min_size=None, audit=False)
    assert judge.refusal(candidate(rows(0, 1))) is None
    assert judge.refusal(candidate(rows(0, 0))) is None
    assert len(judge.sets) == 2


def test_a_refusal_that_could_be_foreseen_is_recorded_and_counts_for_nothing_else() -> None:
    judge = decider(max_overlap=2)
    assert judge.refusal(candidate(rows(0, 10))) is None
    for known in (rows(0, 2), rows(5, 15)):
        assert judge.refusal(candidate(known)) in ("size", "overlap")
    assert [sorted(item.kinds) for item in judge.sets[1:]] == [["refused"], ["refused"]]
    assert judge.refusal(candidate(rows(10, 20))) is None


def test_a_condition_on_confidential_columns_leaves_out_enough_of_those_that_may_be_meant() -> None:
    known = rows(0, 10)
    assert decider().refusal(candidate(known, rows(0, 3))) is None
    assert decider().refusal(candidate(known, rows(0, 7))) is None
    assert decider().refusal(candidate(known, rows(0, 2))) == "size"
    assert decider().refusal(candidate(known, rows(0, 8))) == "size"
    assert decider().refusal(candidate(rows(0, ROWS), rows(0, 7))) is None


def test_a_refusal_that_tells_about_values_counts_as_an_answer() -> None:
    """Whether a row meets a condition must not show in whether a question with it, and one without it, is refused."""
    for met in (True, False):
        judge = decider()
        with_target, without = rows(0, 10), rows(1, 10)
        condition = rows(1, 3) | (rows(0, 1) & met)
        assert judge.refusal(candidate(without, without & condition)) == "size"
        assert judge.refusal(candidate(with_target, with_target & condition)) == "audit"


def test_missing_values_that_leave_too_few_are_refused_and_recorded() -> None:
    judge = decider()
    assert judge.refusal(candidate(rows(0, 10), present=rows(0, 2))) == "size"
    assert [sorted(item.kinds) for item in judge.sets] == [["known"], ["refused"]]
    assert judge.refusal(candidate(rows(1, 10))) == "audit"


def test_rows_with_a_value_are_audited_like_rows_that_are_asked() -> None:
    """The sets differ in many rows, of which one has a value."""
    judge = decider()
    present = rows(0, 11)
    assert judge.refusal(candidate(rows(0, 10))) is None
    assert judge.refusal(candidate(rows(0, 20), present=present)) == "audit"
    assert decider(audit=False).refusal(candidate(rows(0, 20), present=present)) is None


def test_rows_with_a_value_are_audited_after_a_history_was_read_again() -> None:
    first = decider()
    assert first.refusal(candidate(rows(0, 20), present=rows(0, 11))) is None
    again = Decider(Controls(min_size=3), first.sets, {}, rows=ROWS)
    assert again.refusal(candidate(rows(0, 10))) == "audit"
    assert first.refusal(candidate(rows(0, 10))) == "audit"


def test_the_values_of_another_column_may_be_missing_elsewhere() -> None:
    judge = decider()
    assert judge.refusal(candidate(rows(0, 10))) is None
    assert judge.refusal(candidate(rows(0, 10), present=rows(0, 9), values="values of bonus")) is None
    assert judge.refusal(candidate(rows(0, 10), present=rows(0, 9), values="values of bonus")) is None
    assert judge.refusal(candidate(rows(0, 9), values="values of age")) == "audit"


def test_counts_of_known_columns_are_not_audited() -> None:
    judge = decider()
    assert judge.refusal(candidate(rows(0, 10), values=None)) is None
    assert judge.refusal(candidate(rows(0, 11), values=None)) is None
    assert judge.audits == {}
    assert judge.refusal(candidate(rows(0, 10))) is None
    assert [sorted(item.kinds) for item in judge.sets] == [["asked"], ["asked"], ["asked", "known", "values of pay"]]


def test_overlap_counts_all_questions_and_not_their_repetition() -> None:
    judge = decider(max_overlap=2, audit=False)
    assert judge.refusal(candidate(rows(0, 10), values=None)) is None
    assert judge.refusal(candidate(rows(8, 18))) is None
    assert judge.refusal(candidate(rows(7, 17))) == "overlap"
    assert judge.refusal(candidate(rows(8, 18))) is None
    known = rows(10, 30)
    assert judge.refusal(candidate(known, rows(12, 20))) == "overlap"


def test_decisions_continue_from_what_was_answered() -> None:
    first = decider(max_overlap=20)
    assert first.refusal(candidate(rows(0, 10))) is None
    audits = replay(first.sets, {"known": Audit.of(ROWS), "values of pay": Audit.of(ROWS)}, rows=ROWS)
    assert [audit.rank for audit in audits.values()] == [1, 1]
    again = Decider(Controls(min_size=3, max_overlap=5), first.sets, first.audits, rows=ROWS)
    assert again.refusal(candidate(rows(0, 11))) == "overlap"
    assert again.refusal(candidate(rows(5, 15))) is None
