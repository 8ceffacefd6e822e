from __future__ import annotations

import inspect
from typing import Any

import pytest

from cloister import attacks
from cloister.attacks.release_attacks import PARAMETERS, Given, ReleaseAttack, release_attacks
from cloister.core.provenance import CERTIFIED_KINDS

OFFERED = dict(release_attacks.items())


@pytest.mark.parametrize("name", OFFERED)
def test_what_an_attack_takes_are_parameters_of_it(name: str) -> None:
    attack = OFFERED[name]
    known = inspect.signature(attack.run).parameters
    assert attack.kind in CERTIFIED_KINDS
    assert set(attack.takes) <= set(PARAMETERS)
    assert {*attack.takes, *attack.needs, *attack.choices} <= set(known)
    assert all(attack.default_of(name) in choice.allowed for name, choice in attack.choices.items())
    assert {name for name, parameter in known.items() if parameter.default is parameter.empty} <= set(attack.takes)


@pytest.mark.parametrize("name", OFFERED)
def test_offered_attacks_are_public(name: str) -> None:
    assert OFFERED[name].run in [getattr(attacks, public) for public in attacks.__all__]


def _try(release: Any, auxiliary: Any = None, *, sensitive: str = "illness", confidence: float = 0.5) -> Any:
    return release, auxiliary, sensitive, confidence


TRIAL = ReleaseAttack(
    name="a-trial",
    kind="anonymized table",
    run=_try,
    takes=("release", "auxiliary", "sensitive"),
    needs=("auxiliary",),
    summary="Try.",
    example="data.csv",
)


def test_what_is_not_given_is_left_to_the_attack() -> None:
    assert TRIAL.run_on({Given.RELEASE: 1, Given.CONTROL: 2}) == (1, None, "illness", 0.5)
    assert TRIAL.run_on({"release": 1, "original": 2, "sensitive": "job"}, confidence=0.9) == (1, 2, "job", 0.9)


def test_needed_is_what_has_no_default_and_what_files_do_not_say() -> None:
    assert [name for name in TRIAL.takes if TRIAL.is_needed(name)] == ["release", "auxiliary"]
    assert TRIAL.keep_accepted({"confidence": 0.9, "random_state": 1}) == {"confidence": 0.9}
    assert TRIAL.words == "a trial"
    assert TRIAL.takes_given(Given.ORIGINAL)
    assert not TRIAL.takes_given(Given.SECRET)
