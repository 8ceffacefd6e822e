"""The same question again and again: reports that share one budget, or permanent answers that are replayed.

`RepeatedQuestion`: T reports of one person about values that may depend on each other cost the sum of their epsilons. T
is declared when the person enrols, each report gets epsilon / T, and the device refuses the next one after T. A person
who always has the same value pays as much as one whose value changes, and nobody learns when it changed beyond what
epsilon allows; where values change rarely, `MemoizedQuestion` is more accurate and leaks the changes.

Two guarantees are to be told apart: per report (one point in time, "event level") and per person (all T together).
`RepeatedQuestion.guarantee` is the person's.

`MemoizedQuestion`: each distinct true value is perturbed once and its report is replayed. Replays add nothing to what
the first report told about the value, so that a person whose value never changes pays epsilon once, however often they
report; each further distinct value costs epsilon again, up to a declared number (Erlingsson, Pihur and Korolova 2014
for the permanent answers of RAPPOR; Ding, Kulkarni and Yekhanin 2017).

Privacy of permanent answers: claim ``distinct * epsilon``-LDP among people whose values repeat in the same pattern:
given which of a person's values are equal to each other, what is sent is a function of one epsilon-LDP report for each
distinct value. **The pattern itself is not protected.** A report that differs from the last one proves that the value
changed, and has probability 0 for whoever kept theirs: no epsilon covers that. The guarantee says so as an assumption.
Where the time of a change is sensitive (a pregnancy, a diagnosis), use `RepeatedQuestion` instead.

An instantaneous layer perturbs each replay once more, so that equal values no longer give equal reports, and one
report alone is worth less (the chained form of RAPPOR and of Arcolezi et al. 2022). It makes changes harder to see; it
does not hide them for ever, since many reports average it away.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.core.digests import digest_of
from cloister.core.exact import Number
from cloister.core.guarantees import SEEDED_RANDOMNESS, Caveat, LocalDP
from cloister.core.random import RandomState, caveats_of, random_source
from cloister.core.validation import check_count
from cloister.errors import BudgetExceededError, ParameterError, ParameterTypeError
from cloister.local._output_space import Payload, report_error
from cloister.local.collection._designs import perturb_codes
from cloister.local.collection._question_protocols import (
    check_state,
    one_value,
    protocol_by_size,
    protocol_for,
)
from cloister.local.draws import Draws, SourceDraws
from cloister.local.estimates import attach_guarantee
from cloister.local.frequency.randomized_response import DirectEncoding
from cloister.local.frequency.support import FrequencyProtocol, check_support_protocol, debias_supports
from cloister.local.protocol import FOLLOWED, Protocol, check_local_epsilon
from cloister.local.reports import LocalReport, Reports

__all__ = ["CHANGES_SHOW", "MemoizedDevice", "MemoizedQuestion", "RepeatedDevice", "RepeatedQuestion"]


_REPEATED_STATE = "cloister.repeated_device/1"


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
        epsilon: Number,
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
        return attach_guarantee(found, guarantee, note)

    def to_dict(self) -> dict[str, Any]:
        """Return the public record that devices get."""
        record = {
            "schema": "cloister.repeated_question/1",
            "epsilon": exact.text(self.epsilon),
            "times": self.times,
            "protocol": self.protocol.to_dict(),
        }
        return {**record, "fingerprint": digest_of(record)}

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

    def report(self, value: object, *, random_state: RandomState = None) -> LocalReport:
        """Return the report of the value at this time; it counts before it is made.

        Raises:
            BudgetExceededError: if all declared reports were made.
        """
        source = random_source(random_state)
        row = self.perturb(one_value(self.question.protocol, value), SourceDraws(source))
        return LocalReport(self.question.protocol, row, caveats_of(source))

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
        # Counted first: a device that fails in the middle must not make the same report a second time.
        self.made += 1
        return self.question.protocol.perturb(codes, draws)

    def to_dict(self) -> dict[str, Any]:
        """Return the device's state for storage; it holds no value. An old copy must not be restored after a report."""
        return {"schema": _REPEATED_STATE, "question": self.question.fingerprint, "made": self.made}

    @classmethod
    def from_dict(cls, question: RepeatedQuestion, state: Mapping[str, Any]) -> RepeatedDevice:
        """Return the device whose state was stored.

        Raises:
            ForeignReportError: if it is the state of another question.
        """
        values = check_state(state, schema=_REPEATED_STATE, fingerprint=question.fingerprint)
        return cls(question, made=values.get("made"))  # type: ignore[arg-type]  # the constructor checks it

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.left} of {self.question.times} reports left)"


CHANGES_SHOW = "it is no secret when a person's value changes or comes back: replayed reports show it"
"""What permanent answers assume."""

_MEMOIZED_STATE = "cloister.memoized_device/1"


class MemoizedQuestion:
    """One question whose answer is perturbed once for each distinct value and then replayed.

    Attributes:
        permanent: what makes the permanent report of a value.
        distinct: how many distinct values of one person are reported at most.
        instantaneous: what perturbs each replay once more, if anything does.

    >>> question = MemoizedQuestion(["no", "yes"], epsilon=1, distinct=2)
    >>> device = question.enroll()
    >>> device.report("yes").y == device.report("yes").y
    True
    >>> question.guarantee.brief()
    'epsilon = 2 per person'
    """

    def __init__(
        self,
        question: object,
        *,
        epsilon: Number,
        distinct: int,
        protocol: Callable[..., Protocol] = protocol_by_size,
        instantaneous: Number | None = None,
    ) -> None:
        """Agree on what is asked, and on how many distinct values of one person are ever reported.

        Args:
            question: a public domain, or what makes a protocol when called with ``epsilon=``.
            epsilon: what each distinct value costs.
            distinct: how many distinct values of one person are reported at most.
            protocol: the class for a domain; by default the recommended one.
            instantaneous: the epsilon of a second direct encoding of each replay; the permanent answers then are
                direct encoding as well.
        """
        self.epsilon = check_local_epsilon(epsilon)
        kind = protocol if instantaneous is None else DirectEncoding
        self.permanent = protocol_for(question, epsilon=self.epsilon, kind=kind)
        self.distinct = self._cap_distinct(check_count(distinct, name="distinct", at_least=1))
        self.instantaneous = None if instantaneous is None else self._layer(instantaneous)

    @property
    def protocol(self) -> Protocol:
        """Return the protocol of what is sent."""
        return self.permanent if self.instantaneous is None else self.instantaneous

    @property
    def guarantee(self) -> LocalDP:
        """Return what is promised about all reports of one person together, however many."""
        assumptions = (FOLLOWED, f"a person reports at most {self.distinct} distinct values", CHANGES_SHOW)
        return LocalDP(epsilon=self.distinct * self.epsilon, unit="person", assumptions=assumptions)

    @property
    def report_guarantee(self) -> LocalDP:
        """Return what is promised about one report alone: the weaker, event-level reading."""
        if self.instantaneous is None:
            return self.permanent.guarantee
        return LocalDP(epsilon=exact.log_bounds(self._one_report_ratio())[1], assumptions=(FOLLOWED,))

    def enroll(self) -> MemoizedDevice:
        """Return the device of a new person."""
        return MemoizedDevice(self)

    def resume(self, state: Mapping[str, Any]) -> MemoizedDevice:
        """Return the device of a person who enrolled before, from what its ``to_dict`` stored last.

        An old copy of the state must not be restored: values of which the copy knows nothing would be perturbed anew.

        Raises:
            ForeignReportError: if it is the state of another question.
        """
        return MemoizedDevice.from_dict(self, state)

    def randomize(self, values: Any, *, random_state: RandomState = None) -> list[Reports]:  # a table of values
        """Return the reports of many people at many times, as their devices would make them: for simulations.

        Args:
            values: one list for each time, with one value for each person.
            random_state: for tests only.
        """
        source = random_source(random_state)
        draws = SourceDraws(source)
        codes = np.stack([self.permanent.encode(row)[0] for row in values])
        if codes.ndim != 2:
            raise ParameterTypeError(
                "The values of a person are several numbers.", fix="simulate their devices one by one, with enroll."
            )
        people = np.broadcast_to(np.arange(codes.shape[1]), codes.shape)
        # Every person's distinct values are told once, whenever they come: the permanent answer is then looked up.
        pairs, where = np.unique(np.stack([people.ravel(), codes.ravel()]), axis=1, return_inverse=True)
        # The limit is checked for all people before anything is drawn, as their devices would refuse one by one.
        if np.bincount(pairs[0]).max(initial=0) > self.distinct:
            raise _no_values_left(self)
        permanent = perturb_codes(self.permanent, pairs[1], draws)
        replays = permanent[np.ravel(where)].reshape(codes.shape)
        if self.instantaneous is not None:
            replays = np.stack([perturb_codes(self.instantaneous, row["y"].astype(np.int64), draws) for row in replays])
        return [Reports(self.protocol, row, caveats_of(source)) for row in replays]

    def estimate(self, reports: Any) -> Any:  # whatever holds reports of one time; an estimate of the protocol's kind
        """Return what the reports of one time say; the guarantee is that of a person, over all times."""
        found = self.protocol.read(reports)
        guarantee = replace(self.guarantee, caveats=found.caveats)
        if self.instantaneous is None:
            made = self.protocol.estimate(found)
        else:
            domain = check_support_protocol(self.permanent).domain.values
            made = debias_supports(found, domain=domain, probabilities=self.probabilities(), guarantee=guarantee)
        note = f"each single report alone: epsilon = {float(self.report_guarantee.epsilon):.4g}"
        return attach_guarantee(made, guarantee, note)

    def probabilities(self) -> tuple[Fraction, Fraction]:
        """Return how often a sent report supports its sender's value, and any other, through both layers."""
        permanent, instantaneous = check_support_protocol(self.permanent), self.instantaneous
        (p, q) = permanent.probabilities
        if instantaneous is None:
            return p, q
        second, other = instantaneous.probabilities
        return p * second + (1 - p) * other, q * second + (1 - q) * other

    def to_dict(self) -> dict[str, Any]:
        """Return the public record that devices get."""
        record = {
            "schema": "cloister.memoized_question/1",
            "distinct": self.distinct,
            "permanent": self.permanent.to_dict(),
            "instantaneous": None if self.instantaneous is None else self.instantaneous.to_dict(),
        }
        return {**record, "fingerprint": digest_of(record)}

    @property
    def fingerprint(self) -> str:
        """Return the hash of the record."""
        return str(self.to_dict()["fingerprint"])

    def _cap_distinct(self, distinct: int) -> int:
        if isinstance(self.permanent, FrequencyProtocol):
            # Nobody can report more distinct values than there are, so that nobody is charged for more.
            return min(distinct, len(self.permanent.domain))
        return distinct

    def _layer(self, epsilon: Number) -> DirectEncoding:
        if not isinstance(self.permanent, DirectEncoding):
            raise ParameterError(
                "An instantaneous layer goes on top of direct encoding.",
                fix="give a public domain as the question, or leave out instantaneous=.",
            )
        return DirectEncoding(domain=len(self.permanent.domain), epsilon=epsilon)

    def _one_report_ratio(self) -> Fraction:
        # Both layers are direct encodings, so that a report has one of two probabilities: its own value's or another's.
        p, q = self.probabilities()
        return p / q


class MemoizedDevice:
    """One person's side of a memoized question.

    Its state tells the true values: it never leaves the device.
    """

    def __init__(self, question: MemoizedQuestion) -> None:
        self.question = question
        self._answers: dict[str, Any] = {}
        self._caveats: tuple[Caveat, ...] = ()

    def report(self, value: object, *, random_state: RandomState = None) -> LocalReport:
        """Return the report of the value at this time: the permanent one, drawn when the value is new.

        Raises:
            BudgetExceededError: if the value would be one distinct value too many.
        """
        source = random_source(random_state)
        row = self.perturb(one_value(self.question.permanent, value), SourceDraws(source))
        # A permanent answer that was drawn predictably stays predictable however often it is replayed.
        self._caveats = self._caveats or caveats_of(source)
        return LocalReport(self.question.protocol, row, self._caveats)

    def perturb(self, codes: NDArray[Any], draws: Draws) -> Payload:
        """Return the report of a code: its permanent one, and the instantaneous layer over it."""
        row = self._permanent(codes, draws)
        if self.question.instantaneous is None:
            return row
        return self.question.instantaneous.perturb(row["y"].astype(np.int64), draws)

    def to_dict(self) -> dict[str, Any]:
        """Return the device's state for storage on the device alone; it tells the true values."""
        answers = [[json.loads(key), y] for key, y in self._answers.items()]
        secure = not self._caveats
        return {"schema": _MEMOIZED_STATE, "question": self.question.fingerprint, "answers": answers, "secure": secure}

    @classmethod
    def from_dict(cls, question: MemoizedQuestion, state: Mapping[str, Any]) -> MemoizedDevice:
        """Return the device whose state was stored.

        Raises:
            ForeignReportError: if it is the state of another question.
        """
        values = check_state(state, schema=_MEMOIZED_STATE, fingerprint=question.fingerprint)
        device = cls(question)
        try:
            device._answers = {json.dumps(code): y for code, y in values["answers"]}
            question.permanent.output_space.parse(list(device._answers.values()))
            device._caveats = () if values["secure"] is True else (SEEDED_RANDOMNESS,)
        except (KeyError, TypeError, ValueError):
            raise report_error() from None
        return device

    def __repr__(self) -> str:
        return f"{type(self).__name__}(at most {self.question.distinct} distinct values)"

    def _permanent(self, codes: NDArray[Any], draws: Draws) -> Payload:
        # Codes are kept as text, since a key of the stored state must survive being written and read.
        space, key = self.question.permanent.output_space, json.dumps(codes[0].tolist())
        if key not in self._answers:
            # A new value is refused before it is perturbed: the refusal shows a change, which this question never
            # hides.
            if len(self._answers) >= self.question.distinct:
                raise _no_values_left(self.question)
            self._answers[key] = space.show(self.question.permanent.perturb(codes, draws)[0])
        return space.parse([self._answers[key]])


def _no_values_left(question: MemoizedQuestion) -> BudgetExceededError:
    return BudgetExceededError(
        requested=question.epsilon,
        remaining=Fraction(0),
        whose=f": all {question.distinct} distinct values that this person agreed to were reported",
        fix="report values that were reported before, or nothing more; declare a larger distinct= next time.",
    )
