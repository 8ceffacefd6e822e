"""Fake reports: how far they can move an estimate, and which of them can be seen.

Nobody can check a report against its sender's value; that is the point of local privacy. So people, or programs, may
send what they like, as long as it is in the output space. An estimate divides supports by ``p - q``, and by as much a
report that always supports a value weighs more than a person (Cheu, Smith and Ullman 2021; Cao, Jia and Gong 2021 name
it the maximal gain attack). The smaller epsilon, the larger the weight.

`poisoning_bound` says before anything is published how much so many fake reports can change any count: a number to hold
against the effect that one wants to claim. `check_reports` tests whether reports look as if devices had followed the
protocol, see `plausibility`. It finds crude attacks. It cannot find fake people who follow the protocol with a value of
their choice: they look like honest people with that value, each counts as one person, and only knowing who may report
(one-time tokens, accounts) keeps their number small.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any, ClassVar

import numpy as np

from cloister.core.result import Result
from cloister.core.validation import check_count, check_probability
from cloister.errors import ParameterError, ParameterTypeError
from cloister.local.estimates import enough
from cloister.local.frequency.direct import DirectEncoding
from cloister.local.frequency.histogram import STEPS, SummationHistogramEncoding
from cloister.local.frequency.pram import Pram
from cloister.local.frequency.randomized_response import RandomizedResponse
from cloister.local.frequency.rappor import Rappor
from cloister.local.frequency.rappor_decoding import bit_gains
from cloister.local.frequency.subset import SubsetSelection
from cloister.local.frequency.support import FrequencyProtocol, SupportProtocol
from cloister.local.heavy_hitters import HeavyHitters
from cloister.local.output_space import Integers
from cloister.local.plausibility import Finding, findings_of
from cloister.local.plausibility_numbers import CheckedNumber
from cloister.local.protocol import Protocol

__all__ = ["PoisoningBound", "ReportCheck", "check_reports", "poisoning_bound"]

_FALSE_ALARM = "1/1000000"
_UNSEEN = (
    "Fake people who follow the protocol with a value of their choice cannot be told from honest ones, and neither can "
    "few fake reports among many."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoisoningBound:
    """How far fake reports can move the estimated count of any one value.

    Attributes:
        protocol: the name of the protocol.
        fake_users: how many reports are fake, at most.
        gain: by how much one fake report can raise a count; an honest person raises it by 1.
        loss: by how much one fake report can lower it.
        at_once: how many values one fake report can raise together.
    """

    protocol: str
    fake_users: int
    gain: float
    loss: float
    at_once: int

    @property
    def up(self) -> float:
        """Return by how much all of them together can raise a count."""
        return self.fake_users * self.gain

    @property
    def down(self) -> float:
        """Return by how much all of them together can lower a count."""
        return self.fake_users * self.loss

    def __str__(self) -> str:
        return (
            f"{self.fake_users:,} fake reports can move a count by +{self.up:,.0f} or -{self.down:,.0f}: "
            f"each weighs up to {max(self.gain, self.loss):.3g} people"
        )

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        many = f"one fake report can raise {self.at_once:,} value{'s' if self.at_once > 1 else ''} at once"
        honest = f"fake people who follow the protocol move a count by {self.fake_users:,} at most, on average"
        return (("bound", str(self)), ("together", many), ("by the rules", honest))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "schema": "cloister.poisoning_bound/1",
            "protocol": self.protocol,
            "fake_users": self.fake_users,
            "gain": self.gain,
            "loss": self.loss,
            "at_once": self.at_once,
            "up": self.up,
            "down": self.down,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCheck(Result):
    """Whether reports look like the work of honest devices.

    Attributes:
        findings: the outcome of each test.
        reports: the number of reports.
        protocol: the name of the protocol.
        false_alarm: how often honest reports raise any alarm, at most.
    """

    schema: ClassVar[str] = "cloister.report_check/1"

    findings: tuple[Finding, ...]
    reports: int
    protocol: str
    false_alarm: float

    @property
    def alarms(self) -> tuple[Finding, ...]:
        """Return the tests that honest reports would hardly ever fail."""
        limit = self.false_alarm / len(self.findings)
        return tuple(finding for finding in self.findings if finding.chance <= limit)

    @property
    def is_plausible(self) -> bool:
        """Return whether no test raised an alarm; that does not prove that reports are honest."""
        return not self.alarms

    @property
    def verdict(self) -> str:
        """Return ``"plausible"`` or ``"implausible"``."""
        return "plausible" if self.is_plausible else "implausible"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return one sentence for each alarm."""
        return tuple(finding.problem for finding in self.alarms)

    def __str__(self) -> str:
        tested = f"{len(self.findings)} tests of {self.reports:,} reports, false alarms below {self.false_alarm:g}"
        return f"{self.verdict}: {' '.join(self.reasons) or 'nothing odd'} ({tested})"

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        alarmed = {finding.name for finding in self.alarms}
        lines = tuple(
            (finding.name, finding.problem if finding.name in alarmed else "as honest devices would")
            for finding in self.findings
        )
        return (("verdict", self.verdict), *lines, ("limits", _UNSEEN))

    def _fields(self) -> dict[str, Any]:
        return {
            "protocol": self.protocol,
            "reports": self.reports,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "false_alarm": self.false_alarm,
            "findings": [finding.to_dict() for finding in self.findings],
            "limits": _UNSEEN,
        }


def poisoning_bound(protocol: Protocol, *, fake_users: int) -> PoisoningBound:
    """Return how far fake reports can move the estimated count of any one value of a protocol.

    The bound is for raw counts, and the fake reports are among those that are counted.

    Raises:
        ParameterTypeError: if the protocol does not count values.

    >>> from cloister.local import DirectEncoding
    >>> print(poisoning_bound(DirectEncoding(domain=20, epsilon=1), fake_users=100))
    100 fake reports can move a count by +1,206 or -58: each weighs up to 12.1 people
    """
    count = check_count(fake_users, name="fake_users")
    gain, loss = _gains(protocol)
    return PoisoningBound(protocol=protocol.name, fake_users=count, gain=gain, loss=loss, at_once=_at_once(protocol))


def check_reports(protocol: Protocol, reports: Any, *, false_alarm: object = _FALSE_ALARM) -> ReportCheck:
    """Return whether reports look as if devices had followed the protocol, whatever people's values are.

    Args:
        protocol: what they were made with.
        reports: whatever holds reports.
        false_alarm: how often reports of honest devices may raise an alarm, at most.

    Raises:
        ForeignReportError: if reports were made with another protocol.
        MalformedReportError: if a report is not one that the protocol can make.
        ParameterTypeError: if nothing is known about the protocol's reports.
        TooFewReportsError: if there are none.

    >>> from cloister.local import OptimizedUnaryEncoding
    >>> protocol = OptimizedUnaryEncoding(domain=20, epsilon=1)
    >>> check_reports(protocol, protocol.randomize([3] * 1000)).verdict
    'plausible'
    """
    rate = check_probability(false_alarm, name="false_alarm")
    if not 0 < rate < 1:
        raise ParameterError("false_alarm must be above 0 and below 1.", fix="use for example false_alarm=1e-6.")
    if not isinstance(protocol, FrequencyProtocol | HeavyHitters | CheckedNumber):
        raise _unchecked()
    found = protocol.read(reports)
    enough(len(found))
    return ReportCheck(
        findings=findings_of(protocol, found.payload),
        reports=len(found),
        protocol=protocol.name,
        false_alarm=float(rate),
        guarantee=protocol.guarantee_of(found),
    )


@singledispatch
def _gains(_protocol: Protocol) -> tuple[float, float]:
    """Return by how much one report can raise, and lower, an estimated count."""
    raise _uncounted()


@_gains.register
def _(protocol: SupportProtocol) -> tuple[float, float]:
    p, q = map(float, protocol.probabilities)
    return (1 - q) / (p - q), q / (p - q)


@_gains.register
def _(protocol: RandomizedResponse) -> tuple[float, float]:
    p, q = map(float, protocol.probabilities)
    parts = [(1 - q) / (p - q), -q / (p - q)]
    parts += [1 - part for part in parts]
    return max(parts), -min(parts)


@_gains.register
def _(protocol: SummationHistogramEncoding) -> tuple[float, float]:
    field = protocol.output_space.fields[0]
    reach = field.high / STEPS if isinstance(field, Integers) else np.inf
    return reach, reach


@_gains.register
def _(protocol: Pram) -> tuple[float, float]:
    matrix = np.array([[float(entry) for entry in row] for row in protocol.matrix])
    back = np.linalg.inv(matrix)
    return float(back.max()), float(-back.min())


@_gains.register
def _(protocol: Rappor) -> tuple[float, float]:
    own, other = map(float, protocol.probabilities)
    if_one, if_zero = (1 - other) / (own - other), -other / (own - other)
    best = worst = 0.0
    for gains in bit_gains(protocol.filters):
        values = gains * if_one, gains * if_zero
        best = max(best, float(np.maximum(*values).sum(axis=0).max()))
        worst = min(worst, float(np.minimum(*values).sum(axis=0).min()))
    return best, -worst


@_gains.register
def _(protocol: HeavyHitters) -> tuple[float, float]:
    p, q = map(float, protocol.probabilities)
    groups = len(protocol.lengths)
    return groups * (1 - q) / (p - q), groups * q / (p - q)


@singledispatch
def _at_once(protocol: Protocol) -> int:
    """Return how many values one report can raise together."""
    return len(protocol.domain) if isinstance(protocol, FrequencyProtocol) else 1


@_at_once.register(DirectEncoding)
@_at_once.register(RandomizedResponse)
@_at_once.register(Pram)
def _(_protocol: Protocol) -> int:
    return 1


@_at_once.register
def _(protocol: SubsetSelection) -> int:
    return protocol.size


@_at_once.register
def _(protocol: HeavyHitters) -> int:
    return protocol.candidates


def _uncounted() -> ParameterTypeError:
    return ParameterTypeError(
        "This protocol does not count values.", fix="use a frequency protocol, such as DirectEncoding."
    )


def _unchecked() -> ParameterTypeError:
    return ParameterTypeError(
        "Nothing is known about what reports of this protocol must look like.",
        fix="use a frequency protocol, such as DirectEncoding, or Duchi, Piecewise or Hybrid for a number.",
    )
