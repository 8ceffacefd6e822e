"""What an attack on a release in two tables reports: how often it is right, and whether it knows when.

Beyond what every attack has, a report says how reliable the attacker's claims are, how they score, and what happens if
the attacker speaks only when sure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cloister.attacks.anatomy._assignments import Floats, Indices
from cloister.attacks.anatomy._guesses import KINDS, AnatomyGuesses
from cloister.attacks.anatomy._two_tables import PublishedAnatomy
from cloister.attacks.calibration import Calibration, calibration_of, coverage_of
from cloister.attacks.details import HELD, AttackDetails, Row, fact
from cloister.attacks.result import AttackResult
from cloister.core.confidence import binomial_bounds
from cloister.core.wordings import percent
from cloister.report import Block, Chart, TableBlock, Text

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = ["AnatomyDetails", "Run", "score_guesses"]


_WORST = 10
_SURE = 0.9
_SWAPPED = " It is wrong too often for chance: it found who goes together, and mixed up the names of the values."
_MITIGATION = (
    (
        "publish statistics, a model or synthetic rows under differential privacy instead: where quasi-identifiers and "
        "sensitive values go together, no release of exact columns and shuffled values withstands this attack"
    ),
    "if two tables must be published, generalize or leave out the quasi-identifiers that tell most, and attack again",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One start of the attack.

    Attributes:
        objective: the logarithm of how probable the start made what is published; the largest one is the answer.
        success: the share of people it is right about; known to the custodian, never used to choose.
        iterations: how many steps or sweeps it took.
        converged: whether it stopped by itself.
    """

    objective: float
    success: float
    iterations: int
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AnatomyDetails(AttackDetails):
    """What an attack on a release in two tables knows. The baseline is what the release promises.

    Attributes:
        method: how the attack learns.
        groups: how many groups there are.
        sizes: how many people are in the smallest and in the largest group.
        without_groups: the success of the learned model when it does not look at a person's group.
        whole_groups: the share of groups in which everybody's value was found.
        claim: which kind of probability the attacker claims.
        scores: for each kind of probability, how well it fits what happened.
        group_scores: the same for the claim that everybody in a group is right; the posterior only where it is exact.
        coverage: by threshold, the share of people for whom the attacker claims as much, and is right.
        runs: every start; the answer is that of the largest objective.
        learned_from: the quasi-identifiers that were learned from.
        title: the name of the attack, for charts.
        guesses: the value that the attacker says each record has, in the custodian's order; custodian only.
        certainty: the probability that goes with it; custodian only.
    """

    method: str
    groups: int
    sizes: tuple[int, int]
    without_groups: float
    whole_groups: float
    claim: str
    scores: Mapping[str, Calibration] = field(repr=False)
    group_scores: Mapping[str, Calibration] = field(repr=False)
    coverage: tuple[tuple[float, float, float | None], ...] = field(repr=False)
    runs: tuple[Run, ...] = field(repr=False, metadata=fact(write=lambda runs: [list(astuple(run)) for run in runs]))
    learned_from: tuple[str, ...]
    title: str = field(repr=False, metadata=HELD)
    guesses: pa.Array = field(repr=False, compare=False, metadata=HELD)
    certainty: Floats = field(repr=False, compare=False, metadata=HELD)

    @property
    def calibration(self) -> Calibration:
        """Return how well the claimed probabilities fit what happened."""
        return self.scores[self.claim]

    def conclude(self, result: AttackResult, /) -> str:
        """Return for how many people the attacker is right, beside what the release promises."""
        promised = f"where the release promises {percent(result.baseline)}."
        rates = f"right for {percent(result.success)} of the people, {promised}"
        if result.succeeded:
            return f"An attacker who knows only the two published tables is {rates}{self._describe_sure()}"
        swapped = _SWAPPED if result.interval[1] < result.baseline else ""
        return f"This attack found no more than the release promises: {rates}{swapped} Others may find more."

    def _describe_sure(self) -> str:
        sure = next((line for line in self.coverage if line[0] == _SURE), None)
        if sure is None or sure[2] is None:
            return ""
        share, right = percent(sure[1]), percent(sure[2])
        return f" About {share} of them it is at least {percent(_SURE)} sure, and then right in {right} of cases."

    def compare(self, result: AttackResult, /) -> dict[str, float]:
        return {
            "this attack": result.success,
            "promised": result.baseline,
            "without the groups": self.without_groups,
        }

    def tell(self, _: AttackResult, /) -> Iterator[Row]:
        """Return rows about the learned model, the groups, the starts, and how honest the attacker's claims are."""
        least, most = self.sizes
        size = f"{least}" if least == most else f"{least} to {most}"
        found = [run.success for run in self.runs]
        honesty = f"Brier score {self.calibration.brier:.4f}, {self.calibration.expected_error:.3f} off on average"
        yield "without the groups", f"the learned model alone is right for {percent(self.without_groups)}"
        yield "groups", f"{self.groups:,} of {size} people; everybody found in {percent(self.whole_groups)} of them"
        yield "starts", f"{len(found)}; right for {percent(min(found))} to {percent(max(found))}"
        yield "honesty", honesty

    def reliability(self) -> Figure:
        """Return a chart of how often claims of each probability were right, with counts and 95% intervals."""
        from cloister.plotting import reliability_diagram

        bins = self.calibration.bins
        return reliability_diagram(
            [found.claimed for found in bins],
            [found.observed for found in bins],
            [found.interval for found in bins],
            [found.count for found in bins],
            title=f"Does the attacker know when it is right? {self.title}",
            x="claimed probability",
            y="right",
            subtitle=f"{self.claim} probabilities of {self._people:,} people, with their number; 95% intervals",
        )

    def plot_coverage(self) -> Figure:
        """Return a chart of how many people the attacker decides about, and is right, by how sure it must be."""
        from cloister.plotting import lines

        series = {
            "decides": [(threshold, share) for threshold, share, _ in self.coverage],
            "is right": [(threshold, right) for threshold, _, right in self.coverage if right is not None],
        }
        return lines(
            {name: points for name, points in series.items() if points},
            title=f"If it only speaks when it is sure: {self.title}",
            x="least claimed probability",
            y="share",
            subtitle=f"of {self._people:,} people; right among those it decides about",
        )

    @property
    def _people(self) -> int:
        return len(self.guesses)

    def illustrate(self, _: AttackResult, /) -> tuple[Block, ...]:
        """Return how reliable the attacker's claims are, their scores, and what happens if it speaks only when sure."""
        asked = "**Does the attacker know when it is right?** Claims on the diagonal come true as often as they say."
        chart = Chart(self.reliability(), caption="Claimed probabilities beside how often they were right.")
        return (Text(asked), chart, _tabulate_scores(self), _tabulate_coverage(self))


def score_guesses(
    published: PublishedAnatomy,
    truth: Indices,
    answers: AnatomyGuesses,
    *,
    attack: str,
    method: str,
    claim: str,
    runs: tuple[Run, ...],
    confidence: float,
) -> AttackResult[AnatomyDetails]:
    """Return the result of answers; the truth is used here and nowhere else.

    People of one group are right or wrong together, so the interval takes groups, not people, for independent trials.
    """
    puzzle = published.puzzle
    right = answers.guesses == truth
    success = float(right.mean())
    low, high = binomial_bounds(success * puzzle.groups, puzzle.groups, alpha=1 - confidence)
    wrong = np.bincount(puzzle.group, ~right, minlength=puzzle.groups)
    claimed = answers.claims[claim]
    position = np.arange(puzzle.rows) if published.positions is None else published.positions
    return AttackResult(
        attack=attack,
        assumption="knows the two published tables, and nobody's value",
        success=success,
        baseline=published.promise,
        interval=(float(low), float(high)),
        confidence=confidence,
        trials=puzzle.rows,
        queries=2,
        mitigation=_MITIGATION,
        worst=_worst(claimed, right, position),
        details=AnatomyDetails(
            title=attack,
            method=method,
            groups=puzzle.groups,
            sizes=puzzle.sizes,
            without_groups=float((answers.alone == truth).mean()),
            whole_groups=float((wrong == 0).mean()),
            claim=claim,
            scores={kind: calibration_of(answers.claims[kind], right) for kind in KINDS},
            group_scores={kind: calibration_of(found, wrong == 0) for kind, found in answers.joint.items()},
            coverage=coverage_of(claimed, right),
            runs=runs,
            learned_from=puzzle.columns,
            guesses=puzzle.values.take(pa.array(_in_order(answers.guesses, position))),
            certainty=_in_order(claimed, position),
        ),
    )


def _worst(claimed: Floats, right: Any, position: Indices) -> tuple[tuple[int, float], ...]:
    """Return the records that the attacker is most sure of, and right about."""
    found = np.flatnonzero(right)
    order = found[np.lexsort((position[found], -claimed[found]))][:_WORST]
    return tuple((int(position[row]), float(claimed[row])) for row in order)


def _in_order(found: Any, position: Indices) -> Any:
    ordered = np.empty_like(found)
    ordered[position] = found
    return ordered


_EXPLAINED = {
    "posterior": "posterior of the model",
    "product": "product of single probabilities",
    "calibrated": "mean of single probabilities",
}


def _tabulate_scores(details: AnatomyDetails) -> TableBlock:
    rows = [
        [_EXPLAINED[kind] + (" (claimed)" if kind == details.claim else ""), *_numbers(found)]
        for kind, found in details.scores.items()
    ]
    rows += [[f"a whole group: {_EXPLAINED[kind]}", *_numbers(found)] for kind, found in details.group_scores.items()]
    return TableBlock(
        ["probabilities", "Brier", "Brier, in 10 bins", "CAL", "REF"],
        rows,
        align=["left", "right", "right", "right", "right"],
        caption="Brier scores, 0 is perfect. In bins, the score is CAL (dishonesty) plus REF (vagueness).",
    )


def _numbers(found: Calibration) -> list[str]:
    parts = (found.brier, found.brier_quantized, found.calibration, found.refinement)
    return [f"{part:.4f}" for part in parts]


def _tabulate_coverage(details: AnatomyDetails) -> TableBlock:
    rows = [
        [percent(threshold), percent(share), "" if right is None else percent(right)]
        for threshold, share, right in details.coverage
    ]
    return TableBlock(
        ["at least this sure", "of people", "right about them"],
        rows,
        align=["right", "right", "right"],
        caption="An attacker who speaks only when sure.",
    )
