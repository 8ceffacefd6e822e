"""Permanent answers: each distinct true value is perturbed once and its report is replayed.

Replays add nothing to what the first report told about the value, so that a person whose value never changes pays
epsilon once, however often they report; each further distinct value costs epsilon again, up to a declared number
(Erlingsson, Pihur and Korolova 2014 for the permanent answers of RAPPOR; Ding, Kulkarni and Yekhanin 2017).

Privacy: claim ``distinct * epsilon``-LDP among people whose values repeat in the same pattern: given which of a
person's values are equal to each other, what is sent is a function of one epsilon-LDP report for each distinct value.
**The pattern itself is not protected.** A report that differs from the last one proves that the value changed, and has
probability 0 for whoever kept theirs: no epsilon covers that. The guarantee says so as an assumption. Where the time of
a change is sensitive (a pregnancy, a diagnosis), use `cloister.local.collection.longitudinal` instead.

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
from cloister.core.guarantees import SEEDED_RANDOMNESS, Caveat, LocalDP
from cloister.core.random import RandomState, caveats_of, random_source
from cloister.core.validation import check_count
from cloister.errors import BudgetExceededError, ParameterError, ParameterTypeError
from cloister.local.collection.debiasing import debiased, supporting
from cloister.local.collection.designs import changed
from cloister.local.collection.promises import promised
from cloister.local.collection.questions import check_state, fingerprint_of, one_value, protocol_by_size, protocol_for
from cloister.local.draws import Draws, SourceDraws
from cloister.local.frequency.direct import DirectEncoding
from cloister.local.frequency.support import FrequencyProtocol
from cloister.local.output_space import Payload, malformed
from cloister.local.protocol import FOLLOWED, Protocol, check_local_epsilon
from cloister.local.reports import Report, Reports

__all__ = ["CHANGES_SHOW", "MemoizedDevice", "MemoizedQuestion"]

CHANGES_SHOW = "it is no secret when a person's value changes or comes back: replayed reports show it"
"""What permanent answers assume."""

_STATE = "cloister.memoized_device/1"


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
        epsilon: object,
        distinct: int,
        protocol: Callable[..., Protocol] = protocol_by_size,
        instantaneous: object = None,
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
        self.distinct = self._bounded(check_count(distinct, name="distinct", at_least=1))
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
        pairs, where = np.unique(np.stack([people.ravel(), codes.ravel()]), axis=1, return_inverse=True)
        if np.bincount(pairs[0]).max(initial=0) > self.distinct:
            raise _exhausted(self)
        permanent = changed(self.permanent, pairs[1], draws)
        replays = permanent[np.ravel(where)].reshape(codes.shape)
        if self.instantaneous is not None:
            replays = np.stack([changed(self.instantaneous, row["y"].astype(np.int64), draws) for row in replays])
        return [Reports(self.protocol, row, caveats_of(source)) for row in replays]

    def estimate(self, reports: Any) -> Any:  # whatever holds reports of one time; an estimate of the protocol's kind
        """Return what the reports of one time say; the guarantee is that of a person, over all times."""
        found = self.protocol.read(reports)
        guarantee = replace(self.guarantee, caveats=found.caveats)
        if self.instantaneous is None:
            made = self.protocol.estimate(found)
        else:
            domain = supporting(self.permanent).domain.values
            made = debiased(found, domain=domain, probabilities=self.probabilities(), guarantee=guarantee)
        note = f"each single report alone: epsilon = {float(self.report_guarantee.epsilon):.4g}"
        return promised(made, guarantee, note)

    def probabilities(self) -> tuple[Fraction, Fraction]:
        """Return how often a sent report supports its sender's value, and any other, through both layers."""
        permanent, instantaneous = supporting(self.permanent), self.instantaneous
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
        return {**record, "fingerprint": fingerprint_of(record)}

    @property
    def fingerprint(self) -> str:
        """Return the hash of the record."""
        return str(self.to_dict()["fingerprint"])

    def _bounded(self, distinct: int) -> int:
        if isinstance(self.permanent, FrequencyProtocol):
            return min(distinct, len(self.permanent.domain))
        return distinct

    def _layer(self, epsilon: object) -> DirectEncoding:
        if not isinstance(self.permanent, DirectEncoding):
            raise ParameterError(
                "An instantaneous layer goes on top of direct encoding.",
                fix="give a public domain as the question, or leave out instantaneous=.",
            )
        return DirectEncoding(domain=len(self.permanent.domain), epsilon=epsilon)

    def _one_report_ratio(self) -> Fraction:
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

    def report(self, value: object, *, random_state: RandomState = None) -> Report:
        """Return the report of the value at this time: the permanent one, drawn when the value is new.

        Raises:
            BudgetExceededError: if the value would be one distinct value too many.
        """
        source = random_source(random_state)
        row = self.perturb(one_value(self.question.permanent, value), SourceDraws(source))
        self._caveats = self._caveats or caveats_of(source)
        return Report(self.question.protocol, row, self._caveats)

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
        return {"schema": _STATE, "question": self.question.fingerprint, "answers": answers, "secure": secure}

    @classmethod
    def from_dict(cls, question: MemoizedQuestion, state: Mapping[str, Any]) -> MemoizedDevice:
        """Return the device whose state was stored.

        Raises:
            ForeignReportError: if it is the state of another question.
        """
        values = check_state(state, schema=_STATE, fingerprint=question.fingerprint)
        device = cls(question)
        try:
            device._answers = {json.dumps(code): y for code, y in values["answers"]}
            question.permanent.output_space.parse(list(device._answers.values()))
            device._caveats = () if values["secure"] is True else (SEEDED_RANDOMNESS,)
        except (KeyError, TypeError, ValueError):
            raise malformed() from None
        return device

    def __repr__(self) -> str:
        return f"{type(self).__name__}(at most {self.question.distinct} distinct values)"

    def _permanent(self, codes: NDArray[Any], draws: Draws) -> Payload:
        space, key = self.question.permanent.output_space, json.dumps(codes[0].tolist())
        if key not in self._answers:
            if len(self._answers) >= self.question.distinct:
                raise _exhausted(self.question)
            self._answers[key] = space.show(self.question.permanent.perturb(codes, draws)[0])
        return space.parse([self._answers[key]])


def _exhausted(question: MemoizedQuestion) -> BudgetExceededError:
    return BudgetExceededError(
        requested=question.epsilon,
        remaining=Fraction(0),
        whose=f": all {question.distinct} distinct values that this person agreed to were reported",
        fix="report values that were reported before, or nothing more; declare a larger distinct= next time.",
    )
