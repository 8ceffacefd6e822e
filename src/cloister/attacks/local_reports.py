"""Guessing senders' values from their local reports, as well as anybody can.

A collector who keeps the reports of single people, and knows how frequent each value is, guesses for each the value
that is likeliest given the report (Bayes). Nobody does better on average. Under epsilon-LDP the chance to be right
about a value of share s is at most ``s exp(epsilon) / (1 + s (exp(epsilon) - 1))``, so that the best guess is right at
most so often for the most frequent value. Fresh reports of one unchanged value add up: epsilon grows with each. A
device that replays its first report gives nothing further away.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.details import AttackDetails, Row
from cloister.attacks.result import AttackResult
from cloister.core import exact, random, validation
from cloister.core.confidence import Floats, binomial_interval
from cloister.core.exact import Number
from cloister.core.wordings import percent
from cloister.errors import ParameterError, ParameterTypeError
from cloister.local.frequency.support import FrequencyProtocol
from cloister.local.reports import Reports

__all__ = ["LocalReportsDetails", "guess_from_reports", "most_right"]

_CHUNK = 2**22
_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalReportsDetails(AttackDetails):
    """What guessing from local reports knows; with several reports each, the control guesses from the first one.

    Attributes:
        epsilon: the epsilon of all reports of one person together.
        bound: the most that the best guess can be right, on average, under that epsilon.
        reports_each: how many reports each person sent.
    """

    epsilon: float
    bound: float
    reports_each: int

    def judge(self, result: AttackResult, /) -> bool:
        """Return whether the reports help to guess, at the stated confidence; the bound says how much they may."""
        return result.interval[0] > result.baseline

    def conclude(self, result: AttackResult, /) -> str:
        """Return how much reports help, beside what epsilon allows."""
        rates = f"right in {percent(result.success)} of cases, without reports in {percent(result.baseline)}"
        allowed = f"epsilon {self.epsilon:.4g} allows {percent(self.bound)}"
        what = "Reports help to guess" if result.succeeded else "Reports hardly help to guess"
        once = "" if result.control is None else f" From one report it was {percent(result.control)}."
        return f"{what}: {rates}; {allowed}.{once}"

    def compare(self, result: AttackResult, /) -> dict[str, float]:
        """Return the success beside guessing, one report, and the most that epsilon allows."""
        once = {} if result.control is None else {"control": result.control}
        most = {"most that epsilon allows": self.bound}
        return {"this attack": result.success, "guessing": result.baseline, **once, **most}

    def tell(self, _: AttackResult, /) -> Iterator[Row]:
        """Return the most that can be right."""
        allowed = f"{percent(self.bound)}, by epsilon {self.epsilon:.4g} for all reports of a person"
        yield "most that can be right", allowed


def most_right(*, epsilon: float, share: float) -> float:
    """Return how often the best guess is right at most, for an epsilon and the share of the most frequent value.

    >>> round(most_right(epsilon=1, share=0.5), 4), most_right(epsilon=0, share=0.25)
    (0.7311, 0.25)
    """
    return share / (share + (1 - share) * math.exp(-epsilon))


def guess_from_reports(
    protocol: FrequencyProtocol,
    *,
    truth: Any,
    reports: Reports | Sequence[Reports] | None = None,
    repeats: int = 1,
    memoized: bool = False,
    shares: Mapping[Any, object] | None = None,
    confidence: Number = 0.95,
    random_state: random.RandomState = None,
) -> AttackResult[LocalReportsDetails]:
    """Return how often the likeliest value, given a person's reports, is the person's value.

    Args:
        protocol: what the reports are made with, for one value of a public domain.
        truth: the true value of every person, which the devices perturb; the guesses are scored by it.
        reports: reports that were sent, one for each person in order, or a list of such for several times; by default
            they are made here.
        repeats: how often everybody reports the same value, where reports are made here.
        memoized: whether devices replay their first report, in place of making a fresh one each time.
        shares: how frequent each value is, as far as the collector knows; by default as in the truth, which is what an
            estimate from all reports tells the collector.
        confidence: the confidence of the interval of the success.
        random_state: where the noise of reports that are made here comes from.

    >>> from cloister.local import DirectEncoding
    >>> protocol = DirectEncoding(domain=["no", "yes"], epsilon=1)
    >>> result = guess_from_reports(protocol, truth=["no", "yes"] * 5000)
    >>> 0.70 < result.success < 0.76, round(result.bound, 4)
    (True, 0.7311)
    """
    if not isinstance(protocol, FrequencyProtocol):
        raise ParameterTypeError(
            "This attack is for reports of one value of a public domain.",
            fix="give a protocol such as DirectEncoding, OptimizedUnaryEncoding or OptimizedLocalHashing.",
        )
    codes, _ = protocol.encode(truth)
    if not len(codes):
        raise ParameterError("There are no people.", fix="give the true value of at least one person.")
    level = float(validation.check_confidence(confidence))
    times = validation.check_count(repeats, name="repeats", at_least=1)
    sent = (
        _make_reports(protocol, truth, 1 if memoized else times, random_state)
        if reports is None
        else _list_reports(reports)
    )
    each = times if reports is None else len(sent)
    payloads = [_align_payload(protocol, part, len(codes)) for part in (sent[:1] if memoized else sent)]
    prior = _prior(protocol, codes, shares)
    likely, certainty = _guesses(protocol, payloads, prior)
    hits = int((likely == codes).sum())
    epsilon = len(payloads) * float(protocol.epsilon)
    first = None if len(payloads) == 1 else float((_guesses(protocol, payloads[:1], prior)[0] == codes).mean())
    order = np.argsort(-certainty, kind="stable")[:_SHOWN]
    return AttackResult(
        attack="guessing from local reports",
        assumption=_assumption(each, memoized=memoized),
        success=hits / len(codes),
        baseline=float((codes == prior.argmax()).mean()),
        interval=binomial_interval(hits, len(codes), confidence=level),
        confidence=level,
        trials=len(codes),
        queries=each * len(codes),
        control=first,
        mitigation=(
            "keep sums of reports, not single reports with names",
            "let devices replay one report for an unchanged value, or spread one epsilon over all times",
        ),
        worst=tuple((int(place), float(certainty[place])) for place in order),
        details=LocalReportsDetails(
            epsilon=epsilon,
            bound=most_right(epsilon=epsilon, share=float(prior.max())),
            reports_each=each,
        ),
    )


def _assumption(each: int, *, memoized: bool) -> str:
    if each == 1:
        return "keeps everybody's report with the name, and knows how frequent each value is"
    kind = "replayed" if memoized else "fresh"
    return f"keeps {each:,} {kind} reports of everybody's unchanged value, and knows how frequent each value is"


def _make_reports(
    protocol: FrequencyProtocol, truth: Any, times: int, random_state: random.RandomState
) -> list[Reports]:
    source = random.random_source(random_state)
    return [protocol.randomize(truth, random_state=source) for _ in range(times)]


def _list_reports(reports: Reports | Sequence[Reports]) -> list[Reports]:
    parts = [reports] if isinstance(reports, Reports) else list(reports)
    if not parts or not all(isinstance(part, Reports) for part in parts):
        raise ParameterTypeError("These are not reports.", fix="give protocol.randomize(...), or a list of such.")
    return parts


def _align_payload(protocol: FrequencyProtocol, reports: Reports, people: int) -> NDArray[Any]:
    found = protocol.read(reports).payload
    if len(found) != people:
        raise ParameterError(
            f"There are {people:,} people and {len(found):,} reports.",
            fix="give one report for every person, in order.",
        )
    return found


def _prior(protocol: FrequencyProtocol, codes: NDArray[np.int64], shares: Mapping[Any, object] | None) -> Floats:
    if shares is None:
        return np.bincount(codes, minlength=len(protocol.domain)) / len(codes)
    places = protocol.domain.codes(list(shares))
    found = np.zeros(len(protocol.domain))
    found[places] = [float(exact.number(share, name="each share")) for share in shares.values()]
    if found.min() < 0 or not found.sum() > 0:
        raise ParameterError("The shares are negative, or all zero.", fix="give how frequent each value is.")
    return np.asarray(found / found.sum(), dtype=np.float64)


def _guesses(protocol: FrequencyProtocol, payloads: Sequence[Any], prior: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Return for each person the likeliest value, and its probability; some people at a time."""
    with np.errstate(divide="ignore"):
        start = np.log(prior)
    people, size = len(payloads[0]), max(1, _CHUNK // len(prior))
    likely, certainty = np.empty(people, dtype=np.int64), np.empty(people)
    for first in range(0, people, size):
        part = slice(first, first + size)
        score = start + sum(protocol.log_likelihoods(payload[part]) for payload in payloads)
        likely[part] = score.argmax(axis=1)
        certainty[part] = 1 / np.exp(score - score.max(axis=1, keepdims=True)).sum(axis=1)
    return likely, certainty
