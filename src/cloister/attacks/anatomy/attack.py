"""Find everybody's sensitive value from the two tables of an Anatomy release.

Anatomy (Xiao and Tao 2006) publishes exact quasi-identifiers and, group by group, the sensitive values in no order. It
promises that a guess is right at most once in l. That holds for who looks at one group by itself. Who looks at all of
them sees which quasi-identifiers keep company with which values, learns a naive Bayes model from that, and solves the
groups like puzzles (Kifer 2009 by sampling; expectation-maximization here as well). No Anatomy release of data whose
columns are related passes: publish under differential privacy instead.
"""

from __future__ import annotations

from typing import Any

from cloister.anonymize.anatomy import COUNT, GROUP
from cloister.attacks.anatomy._assignments import OBJECTIVES, Indices
from cloister.attacks.anatomy._expectation_maximization import METHODS, EMFit, fit, random_start, uniform_start
from cloister.attacks.anatomy._guesses import AnatomyGuesses, answers_of_chain, answers_of_fit
from cloister.attacks.anatomy._markov_chain import Chain, sample
from cloister.attacks.anatomy._two_tables import read_release, read_truth
from cloister.attacks.anatomy.anatomy_details import AnatomyDetails, Run, score_guesses
from cloister.attacks.release_attacks import AttackChoice, offer_attack
from cloister.attacks.result import AttackResult
from cloister.core import validation
from cloister.core.exact import Number
from cloister.core.provenance import TWO_TABLES
from cloister.core.random import RandomState, random_source

__all__ = ["anatomy_definetti", "anatomy_em"]

_SUMMARY = """Learn from the two tables of an anatomy release who has which sensitive value.

Released rows are in random order, and only whoever made the release knows whose they are: in Python,
cl.attacks.anatomy_em(release) needs no truth.
"""


@offer_attack(
    "anatomy-em",
    kind=TWO_TABLES,
    takes=("release", "truth"),
    needs=("truth",),
    choices={"method": AttackChoice(METHODS, "How the groups are used while learning.")},
    summary=_SUMMARY,
    example="out.quasi.csv out.sensitive.csv --truth truth.csv",
)
def anatomy_em(
    release: Any,
    *,
    truth: Any = None,
    method: str = "exact",
    objective: str | None = None,
    alpha: object = 1,
    beta: object = 1,
    starts: int = 5,
    iterations: int = 400,
    tolerance: object = 1e-6,
    bins: int = 20,
    group: str = GROUP,
    count: str = COUNT,
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> AttackResult[AnatomyDetails]:
    """Return how often an attacker is right who learns naive Bayes from the groups by expectation-maximization.

    Args:
        release: what ``cl.anonymize(..., algorithm="anatomy")`` returned, or its two tables, quasi-identifiers first.
        truth: a table with the sensitive column, or its values, in the order of the custodian's or of the released
            table; used for scoring only. A release that was made here knows it.
        method: ``exact`` uses that each group has exactly its values; ``restricted`` takes each person by itself;
            ``free`` ignores the groups while learning.
        objective: which assignment is the answer: the most probable one (``posterior``), or the one with the largest
            product of single probabilities (``marginals``). By default the first for ``exact``, else the second.
        alpha: what is added to the count of each value.
        beta: what is added to the count of each level with each value.
        starts: how many starts are tried; the first is uniform (but for ``free``), the others random. The most probable
            outcome is the answer.
        iterations: the most steps of a start.
        tolerance: a start ends when the logarithm of the posterior changes by less than this share.
        bins: into how many bins a numeric column is cut that has more different numbers.
        group: the column with the number of the group, if two tables are given.
        count: the column that says how often a value occurs in a group, if two tables are given.
        confidence: the confidence of the interval of the success.
        random_state: None for the operating system; an integer is for tests only.

    >>> import pandas as pd
    >>> quasi = pd.DataFrame({"smoker": [*"yynnynyynnyn"], "GroupID": [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]})
    >>> ill = [*"cffncnfnfncn"]
    >>> sensitive = pd.DataFrame({"GroupID": quasi["GroupID"], "illness": ill})
    >>> found = anatomy_em((quasi, sensitive), truth=ill, starts=1, tolerance=1e-12)
    >>> found.baseline, round(float(found.certainty[4]), 4)
    (0.5, 0.8557)
    """
    validation.check_choice(method, name="method", allowed=METHODS)
    wanted = objective or ("posterior" if method == "exact" else "marginals")
    validation.check_choice(wanted, name="objective", allowed=OBJECTIVES)
    number = validation.check_count(starts, name="starts", at_least=1)
    settings: dict[str, Any] = {
        "alpha": float(validation.check_non_negative(alpha, name="alpha")),
        "beta": float(validation.check_non_negative(beta, name="beta")),
        "iterations": validation.check_count(iterations, name="iterations", at_least=1),
        "tolerance": float(validation.check_positive(tolerance, name="tolerance")),
    }
    level = float(validation.check_confidence(confidence))
    source = random_source(random_state)
    published = read_release(release, group=group, count=count, bins=bins, source=source)
    true_values = read_truth(truth, published)
    puzzle = published.puzzle
    found = []
    for start in range(number):
        is_uniform = start == 0 and method != "free"
        begin = uniform_start(puzzle) if is_uniform else random_start(puzzle, source)
        learned = fit(puzzle, begin, method=method, **settings)
        answers = answers_of_fit(puzzle, learned, method=method, objective=wanted)
        found.append((answers, _run(learned, answers, true_values)))
    return score_guesses(
        published,
        true_values,
        _most_probable(found),
        attack=f"Anatomy EM ({method})",
        method=method,
        claim="posterior" if method == "exact" else "calibrated",
        runs=tuple(run for _, run in found),
        confidence=level,
    )


def anatomy_definetti(
    release: Any,
    *,
    truth: Any = None,
    beta: object = 1,
    chains: int = 1,
    sweeps: int = 200,
    burn_in: int = 100,
    bins: int = 20,
    group: str = GROUP,
    count: str = COUNT,
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> AttackResult[AnatomyDetails]:
    """Return how often an attacker is right who samples assignments of the values from their posterior.

    Args:
        release: what ``cl.anonymize(..., algorithm="anatomy")`` returned, or its two tables, quasi-identifiers first.
        truth: a table with the sensitive column, or its values, in the order of the custodian's or of the released
            table; used for scoring only. A release that was made here knows it.
        beta: what is added to the count of each level with each value.
        chains: how many chains are run; the one whose states are most probable on average is the answer.
        sweeps: how often a swap is proposed in every group, after the burn-in.
        burn_in: how often before.
        bins: into how many bins a numeric column is cut that has more different numbers.
        group: the column with the number of the group, if two tables are given.
        count: the column that says how often a value occurs in a group, if two tables are given.
        confidence: the confidence of the interval of the success.
        random_state: None for the operating system; an integer is for tests only.
    """
    number = validation.check_count(chains, name="chains", at_least=1)
    kept = validation.check_count(sweeps, name="sweeps", at_least=1)
    before = validation.check_count(burn_in, name="burn_in")
    added = float(validation.check_positive(beta, name="beta"))
    level = float(validation.check_confidence(confidence))
    source = random_source(random_state)
    published = read_release(release, group=group, count=count, bins=bins, source=source)
    true_values = read_truth(truth, published)
    found = []
    for _ in range(number):
        chain = sample(published.puzzle, source, beta=added, sweeps=kept, burn_in=before)
        answers = answers_of_chain(published.puzzle, chain, beta=added, sweeps=kept)
        found.append((answers, _run(chain, answers, true_values)))
    return score_guesses(
        published,
        true_values,
        _most_probable(found),
        attack="Anatomy deFinetti",
        method="sampling",
        claim="posterior",
        runs=tuple(run for _, run in found),
        confidence=level,
    )


def _run(outcome: EMFit | Chain, answers: AnatomyGuesses, truth: Indices) -> Run:
    return Run(
        objective=outcome.objective,
        success=float((answers.guesses == truth).mean()),
        iterations=outcome.iterations,
        converged=outcome.converged,
    )


def _most_probable(found: list[tuple[AnatomyGuesses, Run]]) -> AnatomyGuesses:
    """Return the answers of the start with the largest objective: an attacker has no truth to choose by."""
    return max(found, key=lambda pair: pair[1].objective)[0]
