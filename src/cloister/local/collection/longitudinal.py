"""The same question again and again: a declared number of reports that share one budget.

T reports of one person about values that may depend on each other cost the sum of their epsilons. T is declared when
the person enrols, each report gets epsilon / T, and the device refuses the next one after T. A person who always has
the same value pays as much as one whose value changes, and nobody learns when it changed beyond what epsilon allows;
where values change rarely, `cloister.local.collection.memoized` is more accurate and leaks the changes.

Two guarantees are to be told apart: per report (one point in time, "event level") and per person (all T together).
`RepeatedQuestion.guarantee` is the person's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from cloister.core import exact
from cloister.core.guarantees import LocalDP
from cloister.core.random import RandomState, caveats_of, random_source
from cloister.core.validation import check_count
from cloister.errors import BudgetExceededError, ParameterTypeError
from cloister.local.collection.promises import promised
from cloister.local.collection.questions import check_state, fingerprint_of, one_value, protocol_by_size, protocol_for
from cloister.local.draws import Draws, SourceDraws
from cloister.local.output_space import Payload
from cloister.local.protocol import FOLLOWED, Protocol, check_local_epsilon
from cloister.local.reports import Report

__all__ = ["RepeatedDevice", "RepeatedQuestion"]

_STATE = "cloister.repeated_device/1"


class RepeatedQuestion:
    """One question, asked a declared number of times of each person.

    Attributes:
        epsilon: what one person pays for all reports together.
        times: how many reports a person makes at most.
        protocol: what makes each report, with epsilon / times.

    >>> question = RepeatedQuestion(["no", "yes"], epsilon=2, times=4)
    >>> question.guarantee.brief(), question.report_guarantee.brief()
    ('epsilon = 2 per person', 'epsilon = 0.5 per report')
    """

    def __init__(
        self,
        question: object,
        *,
        epsilon: object,
        times: int,
        protocol: Callable[..., Protocol] = protocol_by_size,
    ) -> None:
        """Agree on what is asked, how often, and at what price in all.

        Args:
            question: a public domain, or what makes a protocol when called with ``epsilon=``.
            epsilon: what one person pays for all reports together.
            times: how many reports a person makes at most, declared before the first.
            protocol: the class for a domain; by default the recommended one.
        """
        self.times = check_count(times, name="times", at_least=1)
        self.epsilon = check_local_epsilon(epsilon)
        self.protocol = protocol_for(question, epsilon=self.epsilon / self.times, kind=protocol)

    @property
    def guarantee(self) -> LocalDP:
        """Return what is promised about all reports of one person together."""
        assumptions = (FOLLOWED, f"a person makes at most {self.times} reports")
        return LocalDP(epsilon=self.epsilon, unit="person", assumptions=assumptions)

    @property
    def report_guarantee(self) -> LocalDP:
        """Return what is promised about one report alone: the weaker, event-level reading."""
        return self.protocol.guarantee

    def epsilon_of(self) -> Fraction:
        """Return the epsilon of all reports of one person, by the actual law of the device."""
        return self.times * self.protocol.epsilon_of()

    def enroll(self) -> RepeatedDevice:
        """Return the device of a new person."""
        return RepeatedDevice(self)

    def resume(self, state: Mapping[str, Any]) -> RepeatedDevice:
        """Return the device of a person who enrolled before, from what its ``to_dict`` stored last.

        An old copy of the state must not be restored: reports would be made again that were paid once.

        Raises:
            ForeignReportError: if it is the state of another question.
        """
        return RepeatedDevice.from_dict(self, state)

    def estimate(self, reports: Any) -> Any:  # whatever holds reports of one time; an estimate of the protocol's kind
        """Return what the reports of one time say; the guarantee is that of a person, over all times."""
        found = self.protocol.estimate(reports)
        note = f"each single report alone: epsilon = {float(self.protocol.epsilon):g}"
        guarantee = replace(self.guarantee, caveats=found.guarantee.caveats)
        return promised(found, guarantee, note)

    def to_dict(self) -> dict[str, Any]:
        """Return the public record that devices get."""
        record = {
            "schema": "cloister.repeated_question/1",
            "epsilon": exact.text(self.epsilon),
            "times": self.times,
            "protocol": self.protocol.to_dict(),
        }
        return {**record, "fingerprint": fingerprint_of(record)}

    @property
    def fingerprint(self) -> str:
        """Return the hash of the record."""
        return str(self.to_dict()["fingerprint"])


class RepeatedDevice:
    """One person's side of a repeated question: makes reports, and counts them.

    Attributes:
        question: what was agreed on.
        made: how many reports were made.
    """

    def __init__(self, question: RepeatedQuestion, *, made: int = 0) -> None:
        self.question = question
        self.made = check_count(made, name="made")

    @property
    def left(self) -> int:
        """Return how many reports may still be made."""
        return max(0, self.question.times - self.made)

    def report(self, value: object, *, random_state: RandomState = None) -> Report:
        """Return the report of the value at this time; it counts before it is made.

        Raises:
            BudgetExceededError: if all declared reports were made.
        """
        source = random_source(random_state)
        row = self.perturb(one_value(self.question.protocol, value), SourceDraws(source))
        return Report(self.question.protocol, row, caveats_of(source))

    def perturb(self, codes: NDArray[Any], draws: Draws) -> Payload:
        """Return the report of one code, counted first."""
        if len(codes) != 1:
            raise ParameterTypeError("A device reports one value at a time.", fix="give the code of one value.")
        if not self.left:
            raise BudgetExceededError(
                requested=self.question.protocol.epsilon,
                remaining=Fraction(0),
                whose=f": all {self.question.times} reports that this person agreed to were made",
                fix="send nothing more; a new agreement needs a new budget, which adds to this one.",
            )
        self.made += 1
        return self.question.protocol.perturb(codes, draws)

    def to_dict(self) -> dict[str, Any]:
        """Return the device's state for storage; it holds no value. An old copy must not be restored after a report."""
        return {"schema": _STATE, "question": self.question.fingerprint, "made": self.made}

    @classmethod
    def from_dict(cls, question: RepeatedQuestion, state: Mapping[str, Any]) -> RepeatedDevice:
        """Return the device whose state was stored.

        Raises:
            ForeignReportError: if it is the state of another question.
        """
        values = check_state(state, schema=_STATE, fingerprint=question.fingerprint)
        return cls(question, made=values.get("made"))  # type: ignore[arg-type]  # the constructor checks it

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.left} of {self.question.times} reports left)"
