"""Probabilistic inference and skewness: classes that make a value likelier than it was.

Nobody needs certainty: whoever knows a class guesses its most frequent value (probabilistic inference), or learns that
a rare value is fifty times as likely as for anybody else (skewness; Li, Li and Venkatasubramanian 2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.models import Histogram
from cloister.anonymize.models.distances import equal
from cloister.attacks.tables.disclosure_result import DisclosureResult, exposed_rows, shows_one_value
from cloister.attacks.tables.prior import prior_of
from cloister.attacks.tables.reading import publish_groups
from cloister.attacks.tables.scoring import share_with_interval
from cloister.core import exact
from cloister.core.random import RandomState, permutation, random_source
from cloister.core.validation import check_count
from cloister.data.values import is_missing, text_of
from cloister.errors import ParameterError

__all__ = ["probabilistic_inference", "skewness"]


def probabilistic_inference(
    release: Any,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: str | None = None,
    original: Any = None,
    shuffles: int = 10,
    confidence: object = 0.95,
    random_state: RandomState = None,
) -> DisclosureResult:
    """Return how often the most frequent value of a person's class is theirs.

    The baseline guesses the most frequent value of the original. The control guesses by class too, after values were
    dealt out at random: what it gains beyond the baseline comes from classes being small, not from who is in them.

    Args:
        release: a `Release`, an `AnatomyRelease`, or a released table.
        quasi_identifiers: what the attacker knows, where neither release nor schema says it.
        sensitive: the column that the attacker wants to learn; the only sensitive one by default.
        original: the table that the release was made from, which says how common values are without the release; that
            of a release by default, and otherwise the released table itself.
        shuffles: how often values are dealt out at random for the control; 0 for no control.
        confidence: the confidence of the interval.
        random_state: deals the values out: None for the operating system; an integer is for tests only.
    """
    times = check_count(shuffles, name="shuffles")
    published = publish_groups(release, quasi_identifiers=quasi_identifiers, sensitive=sensitive)
    column, histogram = published.sensitive(sensitive), published.histogram(sensitive)
    posterior = histogram.largest / histogram.sizes
    total = int(histogram.sizes.sum())
    prior = prior_of(published, sensitive, original).largest
    return DisclosureResult(
        attack="probabilistic inference",
        assumption="knows each person's class and guesses its most frequent value",
        baseline=prior,
        queries=total,
        control=_shuffled(histogram, times, random_state),
        mitigation=("ask for t-closeness, or for entropy l-diversity with a larger l",),
        worst=exposed_rows(published, np.where(posterior > prior, posterior, 0.0)),
        column=column.name,
        achieved=f"guesses the {column.name} right of",
        shows_one_value=shows_one_value(histogram),
        largest_posterior=float(posterior.max()),
        prior=prior,
        classes=len(histogram.sizes),
        disclosed_classes=int((posterior > prior + 1e-12).sum()),
        **share_with_interval(float(histogram.largest.sum()), total, confidence=confidence),
    )


def skewness(
    release: Any,
    *,
    value: Any = None,
    factor: object = 2,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: str | None = None,
    original: Any = None,
    confidence: object = 0.95,
) -> DisclosureResult:
    """Return the share of people whose own value their class makes several times as likely as it is in the table.

    Args:
        release: a `Release`, an `AnatomyRelease`, or a released table.
        value: the value that must not become likelier; any by default. Only people who have it are attacked.
        factor: how many times as likely counts.
        quasi_identifiers: what the attacker knows, where neither release nor schema says it.
        sensitive: the column that the attacker wants to learn; the only sensitive one by default.
        original: the table that the release was made from, which says how common values are without the release; that
            of a release by default, and otherwise the released table itself.
        confidence: the confidence of the interval.
    """
    published = publish_groups(release, quasi_identifiers=quasi_identifiers, sensitive=sensitive)
    column, histogram = published.sensitive(sensitive), published.histogram(sensitive)
    least = float(exact.number(factor, name="factor"))
    if least <= 1:
        raise ParameterError("factor must be above 1.", fix="use for example factor=2: twice as likely.")
    chosen = np.ones(len(histogram.values), dtype=bool)
    if value is not None:
        names = [None if is_missing(item) else text_of(item) for item in column.values]
        chosen = histogram.values == (names.index(text_of(value)) if text_of(value) in names else -1)
    if not chosen.any():
        raise ParameterError(f'The value does not occur in "{column.name}".', fix="write it as the table does.")
    share = histogram.counts / histogram.sizes[histogram.classes]
    before = prior_of(published, sensitive, original).shares_of(column)[histogram.values]
    lift = share / before
    lifted = chosen & (lift >= least - 1e-12)
    strongest = np.zeros(len(histogram.sizes))
    np.maximum.at(strongest, histogram.classes[chosen], lift[chosen])
    part, whole = equal(histogram, column)
    top = int(np.flatnonzero(chosen)[np.argmax(lift[chosen])])
    return DisclosureResult(
        attack="skewness",
        assumption=f"knows each person's class and compares it with the whole table; {least:g} times as likely counts",
        baseline=0.0,
        queries=int(histogram.sizes.sum()),
        mitigation=("ask for t-closeness or beta-likeness: classes must look like the whole table",),
        worst=exposed_rows(published, np.where(strongest >= least - 1e-12, strongest, 0.0)),
        column=column.name,
        achieved=f"makes the {column.name} {least:g} times as likely for",
        shows_one_value=shows_one_value(histogram),
        largest_posterior=float(share[top]),
        prior=float(before[top]),
        classes=len(histogram.sizes),
        disclosed_classes=int((strongest >= least - 1e-12).sum()),
        facts=(("largest lift", float(lift[top])), ("largest distance from the table", float((part / whole).max()))),
        **share_with_interval(
            float(histogram.counts[lifted].sum()), int(histogram.counts[chosen].sum()), confidence=confidence
        ),
    )


def _shuffled(histogram: Histogram, times: int, random_state: RandomState) -> float | None:
    """Return how often the guess is right on average after values were dealt out at random."""
    if not times:
        return None
    source = random_source(random_state)
    values = np.repeat(histogram.values, histogram.counts)
    classes = np.repeat(histogram.classes, histogram.counts)
    shares = [_guessed(values[permutation(source, len(values))], classes, histogram) for _ in range(times)]
    return float(np.mean(shares))


def _guessed(values: NDArray[np.int64], classes: NDArray[np.int64], histogram: Histogram) -> float:
    width = len(histogram.overall)
    keys, counts = np.unique(classes * width + values, return_counts=True)
    best = np.zeros(len(histogram.sizes), dtype=np.int64)
    np.maximum.at(best, keys // width, counts)
    return float(best.sum() / len(values))
