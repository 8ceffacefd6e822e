"""The second wall: paid work that fails ends as work about nobody, and nothing of the failure shows."""

from __future__ import annotations

import sys
import threading
import traceback
import warnings
from typing import Any

import numpy as np
import pytest

from cloister.accounting import failure_count, show_failures
from cloister.accounting.payment import finish

pytestmark = pytest.mark.hidden_failures


def fail() -> Any:
    raise ZeroDivisionError("Ada is 47")


def test_work_that_succeeds_is_not_done_again() -> None:
    before = failure_count()
    assert finish(lambda: "answer", nothing=fail) == "answer"
    assert failure_count() == before


@pytest.mark.parametrize("kind", [ZeroDivisionError, MemoryError, RecursionError, OSError, np.linalg.LinAlgError])
def test_work_that_fails_ends_as_work_about_nobody_and_is_counted(kind: type[Exception]) -> None:
    def work() -> str:
        raise kind("Ada is 47")

    before = failure_count()
    assert finish(work, nothing=lambda: "noise") == "noise"
    assert failure_count() == before + 1


def test_what_fails_about_nobody_is_told_without_the_failure_about_rows() -> None:
    def nothing() -> None:
        raise LookupError("the file is gone")

    with pytest.raises(LookupError) as told:
        finish(fail, nothing=nothing)
    assert told.value.__context__ is None
    assert told.value.__cause__ is None
    assert "Ada" not in "".join(traceback.format_exception(told.value))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_the_process_goes_through(kind: type[BaseException]) -> None:
    def work() -> None:
        raise kind

    before = failure_count()
    with pytest.raises(kind):
        finish(work, nothing=lambda: None)
    assert failure_count() == before


def test_warnings_of_the_work_are_dropped_also_where_they_are_errors() -> None:
    def work() -> float:
        warnings.warn("Ada is 47", UserWarning, stacklevel=1)
        return float(np.float64(1.0) / np.float64(0.0))

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("error")
        assert finish(work, nothing=lambda: 0.0) == np.inf
        assert warnings.filters[0][0] == "error"
    assert not seen


def test_the_owner_can_have_failures_and_warnings_shown() -> None:
    before = failure_count()
    with show_failures():
        with pytest.raises(ZeroDivisionError, match="Ada"):
            finish(fail, nothing=lambda: "noise")
        with pytest.warns(UserWarning, match="Ada"):
            finish(lambda: warnings.warn("Ada is 47", UserWarning, stacklevel=1), nothing=lambda: None)
    assert failure_count() == before
    assert finish(fail, nothing=lambda: "noise") == "noise"


def test_the_filters_of_warnings_are_put_back_by_the_last_of_several_threads() -> None:
    first_inside, second_inside, first_out = (threading.Event() for _ in range(3))

    def first() -> None:
        first_inside.set()
        assert second_inside.wait(60)

    def second() -> None:
        second_inside.set()
        assert first_out.wait(60)

    before = list(warnings.filters)
    one = threading.Thread(target=lambda: finish(first, nothing=lambda: None))
    other = threading.Thread(target=lambda: finish(second, nothing=lambda: None))
    one.start()
    assert first_inside.wait(60)
    other.start()
    one.join()
    assert warnings.filters[0][0] == "ignore"
    first_out.set()
    other.join()
    assert list(warnings.filters) == before


def test_nothing_of_the_failure_is_being_handled_while_nobody_is_worked_on() -> None:
    assert finish(fail, nothing=lambda: sys.exc_info()[1]) is None
