"""Fake reports: how far they can move an estimate, and which of them can be seen.

Nobody can check a report against its sender's value; that is the point of local privacy. So people, or programs, may
send what they like, as long as it is in the output space. An estimate divides supports by ``p - q``, and by as much a
report that always supports a value weighs more than a person (Cheu, Smith and Ullman 2021; Cao, Jia and Gong 2021 name
it the maximal gain attack). The smaller epsilon, the larger the weight.

`poisoning_bound` says before anything is published how much so many fake reports can change any count: a number to hold
against the effect that one wants to claim. `check_reports` tests whether reports look as if devices had followed the
protocol, see `_plausibility`. It finds crude attacks. It cannot find fake people who follow the protocol with a value
of their choice: they look like honest people with that value, each counts as one person, and only knowing who may
report (one-time tokens, accounts) keeps their number small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from cloister.core.result import Result
from cloister.core.validation import check_count, check_probability
from cloister.core.wordings import format_count
from cloister.errors import ParameterError
from cloister.local._plausibility import PlausibilityFinding, findings_of
from cloister.local.estimates import enough
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
        many = f"one fake report can raise {format_count(self.at_once, 'value')} at once"
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

    findings: tuple[PlausibilityFinding, ...]
    reports: int
    protocol: str
    false_alarm: float

    @property
    def alarms(self) -> tuple[PlausibilityFinding, ...]:
        """Return the tests that honest reports would hardly ever fail."""
        # The rate holds for all tests together, so that each one gets an equal part of it.
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
    gain, loss = protocol.poisoning_gains()
    at_once = protocol.values_raised
    return PoisoningBound(protocol=protocol.name, fake_users=count, gain=gain, loss=loss, at_once=at_once)


def check_reports(protocol: Protocol, reports: Any, *, false_alarm: object = _FALSE_ALARM) -> ReportCheck:
    """Return whether reports look as if devices had followed the protocol, whatever people's values are.

    Args:
        protocol: what they were made with.
        reports: whatever holds reports.
        false_alarm: how often reports of honest devices may raise an alarm, at most.

    Raises:
        ForeignReportError: if reports were made with another protocol.
        MalformedReportError: if a report is not one that the protocol can make.
        TooFewReportsError: if there are none.

    >>> from cloister.local import OptimizedUnaryEncoding
    >>> protocol = OptimizedUnaryEncoding(domain=20, epsilon=1)
    >>> check_reports(protocol, protocol.randomize([3] * 1000)).verdict
    'plausible'
    """
    rate = check_probability(false_alarm, name="false_alarm")
    if not 0 < rate < 1:
        raise ParameterError("false_alarm must be above 0 and below 1.", fix="use for example false_alarm=1e-6.")
    found = protocol.read(reports)
    enough(len(found))
    return ReportCheck(
        findings=findings_of(protocol, found.payload),
        reports=len(found),
        protocol=protocol.name,
        false_alarm=float(rate),
        guarantee=protocol.guarantee_of(found),
    )
