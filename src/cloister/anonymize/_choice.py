"""Which algorithm makes a release when nobody names one: of several, the one that loses least on this table.

Candidates show names of the hierarchies, so that nothing is lost by giving them. Full-domain recoding is one of them
and wins a tie; whoever insists on it says ``algorithm="optimal"``. The others recode class by class. Clustering, which
loses least for k-anonymity, is tried where it is quick.

Privacy: a choice that looks at the rows breaks no promise made here. Models such as k-anonymity are properties of the
released table, checked on it whatever led to it; they are not differential privacy. The release says that it was done.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from cloister.anonymize._suppression import suppress_failing
from cloister.anonymize.algorithms._base import AlgorithmOutcome, Task, check_options, entry_of, no_progress, values_of
from cloister.anonymize.regions import Regions, Values
from cloister.core.guarantees import KAnonymity
from cloister.core.wordings import percent
from cloister.errors import LatticeTooLargeError, UnsatisfiableError

__all__ = ["AlgorithmChoice", "choose", "run_algorithm"]

LOOKED = "The algorithm was chosen by looking at the rows: at what each candidate would lose on them."
USUAL_SUPPRESSION = Fraction(1, 20)
"""What full-domain recoding is tried with beside its own limit, to tell what a few rows would buy."""
_QUICK_ROWS = 40_000
"""How many rows clustering may have to group: about two seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmCandidate:
    """A way to make a release: what people call it, the algorithm, and what it is told."""

    name: str
    algorithm: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def fits(self, task: Task) -> bool:
        """Return whether the algorithm understands all that the task says."""
        entry = entry_of(self.algorithm)
        is_said = not set(self.options) & set(task.options)
        return is_said and set(task.options) <= entry.options and task.values in entry.values


@dataclass(frozen=True, eq=False, kw_only=True)
class AlgorithmChoice:
    """A release to be: how it was found, its checked classes, and why it was taken.

    Attributes:
        algorithm: the algorithm.
        options: what it was told.
        outcome: the classes, every one of which satisfies the models.
        sentence: what was chosen and what else would give; empty when the caller named the algorithm.
    """

    algorithm: str
    options: Mapping[str, Any]
    outcome: AlgorithmOutcome
    sentence: str = ""

    @property
    def loss(self) -> float:
        """Return the loss of precision (NCP)."""
        return Regions(partition=self.outcome.partition, values=self.outcome.values).loss()


_FULL_DOMAIN = AlgorithmCandidate(name="full-domain recoding (optimal)", algorithm="optimal")
_LOCAL = AlgorithmCandidate(name="local recoding (optimal)", algorithm="optimal", options={"recoding": "local"})
_MONDRIAN = AlgorithmCandidate(name="mondrian", algorithm="mondrian")
_TOP_DOWN = AlgorithmCandidate(name="top_down", algorithm="top_down")
_CLUSTERING = AlgorithmCandidate(name="clustering", algorithm="clustering")


def run_algorithm(task: Task, algorithm: str) -> AlgorithmChoice:
    """Return what one algorithm finds, with every class checked.

    Raises:
        UnsatisfiableError: if its classes do not satisfy the models within the suppression limit.
    """
    outcome = entry_of(algorithm).load(algorithm)(task)
    partition = suppress_failing(outcome.partition, task.checks, values=outcome.values, allowed=task.allowed)
    return AlgorithmChoice(algorithm=algorithm, options=task.options, outcome=replace(outcome, partition=partition))


def choose(task: Task) -> AlgorithmChoice:
    """Return the candidate that loses least, with one sentence about it and the others.

    Raises:
        UnsatisfiableError: if no candidate finds a release that satisfies the models within the suppression limit.
        LatticeTooLargeError: if full-domain recoding is all that was asked for and there are too many levels.
        ParameterError: if no candidate understands the options, or can show classes as wanted.
    """
    candidates = _candidates(task)
    found: list[tuple[str, AlgorithmChoice]] = []
    failures: list[UnsatisfiableError | LatticeTooLargeError] = []
    for place, candidate in enumerate(candidates):
        try:
            found.append((candidate.name, _try_candidate(task, candidate, place, len(candidates))))
        except (UnsatisfiableError, LatticeTooLargeError) as failure:
            failures.append(failure)
        else:
            # Nothing can lose less than nothing.
            if found[-1][1].loss == 0:
                break
    if not found:
        raise failures[0]
    if len(candidates) == 1:
        return found[0][1]
    # Of equals the first wins, and full-domain recoding is the first of all.
    name, best = min(found, key=lambda pair: pair[1].loss)
    others = sorted(((other, choice.loss) for other, choice in found if choice is not best), key=lambda pair: pair[1])
    if best.loss > 0:
        others += _hints(task)
    is_untried = best.loss > 0 and _CLUSTERING not in candidates and _CLUSTERING.fits(task)
    return _explain_choice(
        best, name, others, end="; clustering, which takes longer here, was not tried." * is_untried or "."
    )


def _candidates(task: Task) -> Sequence[AlgorithmCandidate]:
    """Return what is tried. Where clustering is quick, it always lost less than the others that go class by class."""
    if task.loss != "ncp":
        return (_FULL_DOMAIN,)
    if task.values is not Values.HIERARCHY:
        among = [_MONDRIAN]
    else:
        among = [_FULL_DOMAIN, _MONDRIAN, *([_CLUSTERING] if _is_quick(task) else [_LOCAL, _TOP_DOWN])]
    fitting = [candidate for candidate in among if candidate.fits(task)]
    if not fitting:
        # These say what no candidate understands.
        check_options("optimal", task.options, entry_of("optimal").options)
        values_of("optimal", task.values)
    return fitting


def _is_quick(task: Task) -> bool:
    """Return whether clustering has few rows to group, and nothing but their number to heed."""
    cells = task.cells
    counts_rows = all(isinstance(check.model, KAnonymity) and check.model.unit == "row" for check in task.checks)
    return counts_rows and int(cells.weights[cells.weights < task.k].sum()) <= _QUICK_ROWS


def _try_candidate(task: Task, candidate: AlgorithmCandidate, place: int, count: int) -> AlgorithmChoice:
    """Return what a candidate finds; what it reports is its part of the whole."""
    options = {**task.options, **candidate.options}
    part = replace(task, options=options, progress=lambda share, what: task.progress((place + share) / count, what))
    return run_algorithm(part, candidate.algorithm)


def _hints(task: Task) -> Iterator[tuple[str, float]]:
    """Yield what other settings than the given ones would lose; those that cannot be tried are passed over."""
    quiet = replace(task, progress=no_progress)
    settings = []
    if task.suppression_limit < USUAL_SUPPRESSION and _FULL_DOMAIN.fits(task):
        name = f"{_FULL_DOMAIN.name} with {percent(USUAL_SUPPRESSION)} of the rows left out"
        settings.append((name, "optimal", replace(quiet, suppression_limit=USUAL_SUPPRESSION)))
    if task.values is Values.HIERARCHY and _MONDRIAN.fits(task):
        settings.append(("sets and intervals (values: sets)", "mondrian", replace(quiet, values=Values.SETS)))
    for name, algorithm, changed in settings:
        with contextlib.suppress(UnsatisfiableError, LatticeTooLargeError):
            yield name, run_algorithm(changed, algorithm).loss


def _explain_choice(
    best: AlgorithmChoice, name: str, others: Sequence[tuple[str, float]], *, end: str
) -> AlgorithmChoice:
    """Return the choice with its sentence, and with all losses among the facts."""
    inside = " inside the hierarchies" if best.outcome.values is Values.HIERARCHY else ""
    told = [f"{other} {'' if place else 'would lose '}{percent(loss)}" for place, (other, loss) in enumerate(others)]
    sentence = f"Chosen for the least loss: {name}{inside} loses {percent(best.loss)} of the detail"
    facts = {"considered": {other: round(loss, 4) for other, loss in [(name, best.loss), *others]}}
    outcome = replace(best.outcome, notes=(*best.outcome.notes, LOOKED), facts={**best.outcome.facts, **facts})
    return replace(best, outcome=outcome, sentence="; ".join([sentence, *filter(None, [", ".join(told)])]) + end)
