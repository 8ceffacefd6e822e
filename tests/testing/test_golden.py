from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.errors import GoldenMismatchError, ParameterError, SourceNotFoundError
from cloister.testing import Golden, check_exactly, check_golden, load_golden, load_goldens
from cloister.testing.zoo.additive import truncated_laplace

FOLDER = Path(__file__).parents[1] / "golden" / "testing"


def randomized_response_epsilon(p: float, second: float) -> float:
    truth, coin = Fraction(str(p)), Fraction(str(second))

    def law(bit: int) -> dict[int, Fraction]:
        one = (1 - truth) * coin + truth * bit
        return {1: one, 0: 1 - one}

    return check_exactly(law, [(0, 1)], epsilon=1).tight_epsilon


def redraw_epsilon(scale: str) -> float:
    pairs = [(Fraction(low), Fraction(low + 1)) for low in range(10)]
    return check_exactly(truncated_laplace(Fraction(scale)), pairs, epsilon=1, densities=True).tight_epsilon


FUNCTIONS: dict[str, Any] = {
    "randomized_response_epsilon": randomized_response_epsilon,
    "redrawn_laplace": redraw_epsilon,
}


@pytest.mark.parametrize("golden", load_goldens(FOLDER), ids=str)
def test_worked_examples(golden: Golden) -> None:
    check_golden(golden, FUNCTIONS[golden.name])


GOOD = 'source = "S"\nstatus = "confirmed"\ntolerance = 1e-3\nexpected = 1.5\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "example.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (GOOD.replace('source = "S"\n', ""), 'write source = "..."'),
        (GOOD.replace('"S"', '" "'), 'write source = "..."'),
        (GOOD.replace('status = "confirmed"\n', ""), "write status"),
        (GOOD.replace("confirmed", "likely"), '"confirmed" or "corrected"'),
        (GOOD.replace("confirmed", "corrected"), "add derivation"),
        (GOOD.replace("tolerance = 1e-3\n", ""), "tolerance = 0 for exact"),
        (GOOD.replace("1e-3", "-1e-3"), "tolerance = 0 for exact"),
        (GOOD.replace("expected = 1.5\n", ""), r"\[\[cases\]\]"),
        (GOOD + "[[cases]]\nexpected = 1\n", r"\[\[cases\]\]"),
        (GOOD.replace("expected = 1.5", "cases = []"), "add a case"),
        (GOOD.replace("expected = 1.5", "[[cases]]\nname = 'x'"), "in every case"),
        (GOOD.replace("expected = 1.5", "[[cases]]\nexpects = 1\nexpected = 2"), "use only"),
        (GOOD + "loose = true\n", "use only"),
        ("not toml", "correct the file"),
    ],
)
def test_an_incomplete_file_is_refused(tmp_path: Path, text: str, fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        load_golden(written(tmp_path, text))


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="check the folder"):
        load_goldens(tmp_path)
    with pytest.raises(SourceNotFoundError, match="check the path"):
        load_golden(tmp_path / "none.toml")


def test_a_corrected_example_states_its_derivation(tmp_path: Path) -> None:
    text = GOOD.replace("confirmed", "corrected") + 'derivation = "by hand"\nprinted = 1.6\n'
    golden = load_golden(written(tmp_path, text))
    assert golden.derivation == "by hand"
    check_golden(golden, lambda: 1.5)


def test_the_tolerance_may_be_tightened_never_loosened(tmp_path: Path) -> None:
    golden = load_golden(written(tmp_path, GOOD))
    check_golden(golden, lambda: 1.5009)
    with pytest.raises(GoldenMismatchError, match="never edit the expected value"):
        check_golden(golden, lambda: 1.5009, tolerance=1e-6)
    with pytest.raises(ParameterError, match="leave tolerance out"):
        check_golden(golden, lambda: 1.5, tolerance=0.1)


@pytest.mark.parametrize(
    ("expected", "right", "wrong"),
    [
        ("[1, 2.5]", np.array([1, 2.5]), [1, 2.6]),
        ("[1, 2]", (1, 2), [1, 2, 3]),
        ("[1, 2]", [1, 2], "12"),
        ("{a = 1, b = [1]}", {"a": 1, "b": [1]}, {"a": 1, "b": [2]}),
        ("{a = 1}", {"a": 1}, {"a": 1, "c": 2}),
        ("{a = 1}", {"a": 1}, 1),
        ("'yes'", "yes", "no"),
        ("'1/3'", Fraction(1, 3), Fraction(1, 2)),
        ("true", True, 1),
        ("inf", float("inf"), 1e308),
        ("1", np.int64(1), None),
        ("1", 1, "1"),
    ],
)
def test_values_are_compared_deeply(tmp_path: Path, expected: str, right: Any, wrong: Any) -> None:
    golden = load_golden(written(tmp_path, GOOD.replace("1.5", expected)))
    check_golden(golden, lambda: right)
    with pytest.raises(GoldenMismatchError, match="the result"):
        check_golden(golden, lambda: wrong)


def test_cases_share_inputs(tmp_path: Path) -> None:
    cases = "[inputs]\na = 1\n[[cases]]\nname = 'two'\ninputs = {b = 1}\nexpected = 2\n"
    golden = load_golden(written(tmp_path, GOOD.replace("expected = 1.5\n", "") + cases))
    check_golden(golden, lambda a, b: a + b)
    with pytest.raises(GoldenMismatchError, match=r"example \(two\): the result is 0, expected 2"):
        check_golden(golden, lambda a, b: a - b)
