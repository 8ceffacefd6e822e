from __future__ import annotations

from fractions import Fraction

import pytest

from cloister import errors


def test_an_error_says_what_is_wrong_and_what_to_type() -> None:
    error = errors.BudgetExceededError(requested=Fraction(1, 2), remaining=Fraction(1, 5))
    assert str(error) == (
        "This release needs epsilon 0.5, but only 0.2 is left.\n\n"
        "Fix: ask for epsilon <= 0.2, or have the data owner raise the budget."
    )
    assert (error.requested, error.remaining) == (Fraction(1, 2), Fraction(1, 5))


def test_following_the_advice_on_a_budget_works() -> None:
    error = errors.BudgetExceededError(requested=Fraction(1), remaining=Fraction(2, 3))
    assert "epsilon <= 0.666666," in error.fix
    tiny = errors.BudgetExceededError(requested=Fraction(1, 3), remaining=Fraction(1, 10**9))
    assert str(tiny).startswith("This release needs epsilon 0.333334, but only 1e-09 is left.")


def test_errors_export_themselves() -> None:
    values = errors.ParameterError("It is wrong.", fix="mend it.").to_dict()
    assert values == {
        "schema": "cloister.error/1",
        "error": "ParameterError",
        "problem": "It is wrong.",
        "fix": "mend it.",
    }


def test_unknown_columns_get_a_near_match_and_a_list() -> None:
    error = errors.UnknownColumnError("zipcode", ["zip_code", "age"])
    assert 'Did you mean "zip_code"?' in str(error)
    assert "zip_code, age" in error.fix
    assert errors.UnknownColumnError("x", [f"c{i}" for i in range(30)]).fix.endswith(", ....")


def test_a_missing_extra_says_what_to_install() -> None:
    error = errors.MissingExtraError(what="Plots", package="altair", extra="plot")
    assert str(error) == 'Plots need altair.\n\nFix: pip install "cloister[plot]"'
    assert isinstance(error, ImportError)


def test_internal_errors_ask_for_a_report() -> None:
    assert "report" in errors.InternalError("impossible").fix


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = (errors.__doc__ or "").split("::")[1]
    for name in errors.__all__:
        if name != "did_you_mean":
            assert name in drawn, name


@pytest.mark.parametrize(
    ("error", "base"),
    [(errors.ParameterError, ValueError), (errors.ParameterTypeError, TypeError), (errors.SchemaError, ValueError)],
)
def test_bad_parameters_are_also_the_builtin_errors(error: type[Exception], base: type[Exception]) -> None:
    assert issubclass(error, base)
    assert issubclass(error, errors.CloisterError)


def test_no_hint_without_a_near_name() -> None:
    assert errors.did_you_mean("age", ["postcode"]) == ""
