"""What an attack on a synthetic table found: on the people in it, on others, and the difference.

Giomi, Boenisch, Wehmeyer and Tasnadi (2022) compare an attack on rows that the synthetic table was made from with the
same attack on control rows that had no part in it. What succeeds on both is knowledge about everybody, for which a
good synthetic table exists; what succeeds on the former only is about the people in the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.confidence import binomial_interval
from cloister.attacks.result import AttackResult, percent
from cloister.core import validation
from cloister.report import Facts, Section

__all__ = ["SyntheticAttackResult", "most_exposed", "scored"]

_NAMES = 8
_WORST = 100
_LEAST_RULED_OUT = 0.25
_UNCONTROLLED = " There were no control rows, so this may be knowledge about everybody rather than about these people."
_UNTOLD = "There are too few rows to tell whether this attack works"
ADVICE = (
    "make the synthetic table with a differential privacy guarantee, or a smaller epsilon",
    "look for rows that were copied, and for columns with nearly unique values",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticAttackResult(AttackResult):
    """The outcome of an attack on a synthetic table; the control is the same attack on rows that had no part in it.

    Attributes:
        kind: which kind of the attack.
        residual_risk: of the cases in which the attack fails on control rows, the share in which it succeeds on rows
            of the original: ``(success - control) / (1 - control)``; None without a control.
        residual_interval: a confidence interval of it.
        control_trials: how many trials the control had.
        left_out: columns of the original that were not compared because the synthetic or the control table lacks them.
    """

    schema: ClassVar[str] = "cloister.synthetic_attack/1"

    kind: str
    residual_risk: float | None = None
    residual_interval: tuple[float, float] | None = None
    control_trials: int = 0
    left_out: tuple[str, ...] = ()

    @property
    def succeeded(self) -> bool:
        """Return whether the attack is, at the stated confidence, better on these people than on others.

        Without a control, whether it is better than guessing. An attack that is worse than guessing but better on
        people in the data than on others does tell them apart.
        """
        compared = self.baseline if self.control_interval is None else self.control_interval[1]
        return self.interval[0] > compared

    @property
    def is_telling(self) -> bool:
        """Return whether the outcome says something: the attack succeeded, or a residual risk of 25 % is ruled out.

        Without a control it is the risk beyond guessing. It is not ruled out where there are too few rows, or where
        the attack is right about nearly everybody. A control that may be off by 25 points tells nothing either.
        """
        return self.succeeded or self._largest_risk() < _LEAST_RULED_OUT

    def _largest_risk(self) -> float:
        if self.residual_interval is None or self.control is None or self.control_interval is None:
            return _residual(self.interval[1], self.baseline)
        return max(self.residual_interval[1], self.control_interval[1] - self.control)

    @property
    def verdict(self) -> str:
        """Return a few sentences for a custodian."""
        return self._told("right") + self._unseen()

    def _unseen(self) -> str:
        return f" Not compared, because not in every table: {_listed(self.left_out)}." if self.left_out else ""

    def _told(self, what: str) -> str:
        rates = f"{what} in {percent(self.success)} of cases, guessing in {percent(self.baseline)}"
        if self.control is None:
            found = "The attack found no more than guessing" if self.is_telling else _UNTOLD
            return f"{'The attack finds more than guessing' if self.succeeded else found}: {rates}.{_UNCONTROLLED}"
        rates += f", the same attack on people who had no part in the table in {percent(self.control)}."
        if self.succeeded:
            return f"The synthetic table gives its people away: {rates}{self._remark()}"
        found = "This attack found nothing about the people in the table" if self.is_telling else _UNTOLD
        return f"{found}: {rates}{self._remark()} Others may find more."

    def _remark(self) -> str:
        told = self._residual()
        return f" Residual risk {told}." if told else ""

    def _residual(self) -> str:
        """Return the residual risk in words: below 0 it is none."""
        if self.residual_risk is None or self.residual_interval is None:
            return ""
        low, high = map(percent, self.residual_interval)
        return f"{percent(max(0.0, self.residual_risk))}, between {low} and {high}"

    def facts(self) -> list[tuple[str, str]]:
        """Return what is told beside what every attack tells."""
        told = self._residual()
        facts = [("kind", self.kind), *([("residual risk", told)] if told else [])]
        return [*facts, ("columns left out", _listed(self.left_out))] if self.left_out else facts

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        return (*AttackResult.summary(self), *self.facts())

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker; never what was learned about anybody."""
        between = self.residual_interval
        return {
            **AttackResult.to_dict(self),
            "kind": self.kind,
            "residual_risk": self.residual_risk,
            "residual_interval": None if between is None else list(between),
            "control_trials": self.control_trials,
            "is_telling": self.is_telling,
            "left_out": list(self.left_out),
        }

    def sections(self, *, level: int = 1) -> tuple[Section, ...]:
        """Return what a report says about this attack."""
        from cloister.attacks.reporting import section_of

        return (section_of(self, level=level, further=(Facts(self.facts()),)),)


def scored(
    hits: float,
    trials: int,
    *,
    control: tuple[float, int] | None,
    confidence: object,
    alike: tuple[float, float] = (1.0, 1.0),
) -> dict[str, Any]:
    """Return the fields that every attack on a synthetic table reports, with exact (Clopper-Pearson) intervals.

    Args:
        hits: how many trials succeeded, ties counting half.
        trials: how many there were.
        control: the same for the control.
        confidence: of the intervals.
        alike: how many trials stand or fall together on average, in the attack and in the control: so many count as
            one in the intervals.
    """
    level = float(validation.check_confidence(confidence))
    fields: dict[str, Any] = {
        "success": hits / trials,
        "interval": _interval(hits, trials, level, alike[0]),
        "confidence": level,
        "trials": trials,
    }
    if control is None:
        return fields
    found, others = control
    # Both ends hold at once if each interval is wrong half as often.
    (low, high), (least, most) = (
        _interval(count, size, (1 + level) / 2, many)
        for count, size, many in ((hits, trials, alike[0]), (found, others, alike[1]))
    )
    return fields | {
        "control": found / others,
        "control_interval": _interval(found, others, level, alike[1]),
        "control_trials": others,
        "residual_risk": _residual(hits / trials, found / others),
        "residual_interval": (max(0.0, _residual(low, most)), max(0.0, _residual(high, least))),
    }


def most_exposed(places: NDArray[np.int64], scores: NDArray[np.float64]) -> tuple[tuple[int, float], ...]:
    """Return the positions of the most exposed people with their scores, none of those with a score of 0."""
    order = np.argsort(-scores, kind="stable")[:_WORST]
    return tuple((int(places[place]), float(scores[place])) for place in order if scores[place] > 0)


def _listed(names: Sequence[str]) -> str:
    """Return names of columns in words, the first ones if there are many."""
    shown = ", ".join(f'"{name}"' for name in names[:_NAMES])
    return shown if len(names) <= _NAMES else f"{shown} and {len(names) - _NAMES} more"


def _interval(hits: float, trials: int, confidence: float, alike: float) -> tuple[float, float]:
    """Return a Clopper-Pearson interval, of fewer trials where some stand or fall together."""
    effective = max(1, int(trials / max(alike, 1.0)))
    scaled = hits * effective / trials
    whole = round(scaled, 9)
    low = binomial_interval(int(whole // 1), effective, confidence=confidence)[0]
    high = binomial_interval(int(-(-whole // 1)), effective, confidence=confidence)[1]
    return low, high


def _residual(success: float, control: float) -> float:
    return (success - control) / (1 - control) if control < 1 else 0.0
