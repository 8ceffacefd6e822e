"""Background knowledge: what classes give away to somebody who can rule values out, or knows other members.

A class with m values becomes certain after m - 1 of them are ruled out. Somebody who knows j other members of a class
knows the value of the rest once all members with other values are among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloister.anonymize.cells import Sensitive
from cloister.anonymize.models import Histogram
from cloister.attacks.tables.disclosure_result import DisclosureResult, exposed_rows, shows_one_value
from cloister.attacks.tables.prior import prior_of
from cloister.attacks.tables.reading import publish_groups
from cloister.attacks.tables.scoring import share_of, share_with_interval
from cloister.core.validation import check_count
from cloister.data.values import is_missing, text_of
from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["background_knowledge"]


def background_knowledge(
    release: Any,
    *,
    excluded: int | Sequence[Any] = 0,
    neighbors: int = 0,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: str | None = None,
    original: Any = None,
    confidence: object = 0.95,
) -> DisclosureResult:
    """Return the share of people whose value becomes certain by what the attacker knows besides.

    Args:
        release: a `Release`, an `AnatomyRelease`, or a released table.
        excluded: values that the attacker rules out (people who have one of them are not attacked, since the knowledge
            would be wrong), or how many of the other values of a class.
        neighbors: the values of how many other members of the class the attacker knows, chosen at random.
        quasi_identifiers: what the attacker knows, where neither release nor schema says it.
        sensitive: the column that the attacker wants to learn; the only sensitive one by default.
        original: the table that the release was made from, which says how common values are without the release; that
            of a release by default, and otherwise the released table itself.
        confidence: the confidence of the interval.
    """
    known = check_count(neighbors, name="neighbors")
    published = publish_groups(release, quasi_identifiers=quasi_identifiers, sensitive=sensitive)
    column, histogram = published.sensitive(sensitive), published.histogram(sensitive)
    prior = prior_of(published, sensitive, original)
    if not isinstance(excluded, int) and known:
        raise ParameterError("Values and neighbors are ruled out together.", fix="give excluded= or neighbors=.")
    if isinstance(excluded, int):
        ruled_out = check_count(excluded, name="excluded")
        if ruled_out and known:
            raise ParameterError("Values and neighbors are ruled out together.", fix="give excluded= or neighbors=.")
        left, whole = histogram, prior.whole
        chances, alone = _certain(histogram, ruled_out, known), _certain(whole, ruled_out, known)
    else:
        left = _without(histogram, _codes(column, excluded))
        whole = _without(prior.whole, _codes(prior.column, excluded))
        chances, alone = _certain(left, 0, 0), _certain(whole, 0, 0)
    trials = int(left.counts.sum())
    if not trials:
        raise ParameterError("All values are ruled out, so nobody is left to attack.", fix="rule fewer values out.")
    members = left.add(left.counts.astype(np.float64))
    certain = left.add(left.counts * chances) / np.maximum(members, 1)
    share = left.counts / np.maximum(members, 1)[left.classes]
    return DisclosureResult(
        attack="background knowledge",
        assumption=f"knows the class of each person and {_words(excluded, known)}",
        baseline=share_of(float((whole.counts * alone).sum()), int(whole.counts.sum())),
        queries=int(histogram.sizes.sum()),
        mitigation=("ask for a larger l: a class must keep several values after some are ruled out",),
        worst=exposed_rows(published, certain),
        column=column.name,
        achieved=f"is certain about the {column.name} of",
        largest_posterior=max(float(share.max()), float(chances.max())),
        prior=share_of(float(whole.counts.max(initial=0)), int(whole.counts.sum())),
        shows_one_value=shows_one_value(histogram),
        classes=len(histogram.sizes),
        disclosed_classes=int((certain >= 1 - 1e-12).sum()),
        facts=_exclusions_needed(histogram),
        **share_with_interval(float((left.counts * chances).sum()), trials, confidence=confidence),
    )


def _words(excluded: Any, neighbors: int) -> str:
    if neighbors:
        return f"the values of {neighbors:,} other members of it"
    count = excluded if isinstance(excluded, int) else len(excluded)
    return f"rules {count:,} {'value' if count == 1 else 'values'} out"


def _exclusions_needed(histogram: Histogram) -> tuple[tuple[str, float], ...]:
    """Return how many values must be ruled out until a class is certain: at least, and on average over people."""
    needed = histogram.distinct - 1
    mean = float((needed * histogram.sizes).sum() / histogram.sizes.sum())
    return (("fewest exclusions to certainty", float(needed.min())), ("mean exclusions to certainty", mean))


def _certain(histogram: Histogram, excluded: int, neighbors: int) -> NDArray[np.float64]:
    """Return how likely the attacker becomes certain about somebody with the value of each line."""
    if not neighbors:
        return np.asarray(histogram.distinct[histogram.classes] - 1 <= excluded, dtype=np.float64)
    sizes, same = histogram.sizes[histogram.classes].astype(np.float64), histogram.counts.astype(np.float64)
    others, asked = sizes - same, np.minimum(float(neighbors), sizes - 1)
    with np.errstate(invalid="ignore"):
        logs = _log_choose(same - 1, asked - others) - _log_choose(sizes - 1, asked)
    return np.where(asked >= others, np.exp(np.where(asked >= others, logs, 0.0)), 0.0)


def _log_choose(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(special.gammaln(above + 1) - special.gammaln(below + 1) - special.gammaln(above - below + 1))


def _without(histogram: Histogram, codes: NDArray[np.int64]) -> Histogram:
    """Return the counts without some values; classes that lose all their members keep their number."""
    kept = ~np.isin(histogram.values, codes)
    overall = histogram.overall.copy()
    overall[codes] = 0
    return Histogram(
        classes=histogram.classes[kept],
        values=histogram.values[kept],
        counts=histogram.counts[kept],
        sizes=histogram.sizes,
        overall=overall,
    )


def _codes(column: Sensitive, excluded: Any) -> NDArray[np.int64]:
    if isinstance(excluded, str) or not isinstance(excluded, Sequence):
        raise ParameterTypeError(
            "excluded is no list of values.", fix='write excluded=["flu"], or how many: excluded=1.'
        )
    known = {text_of(value): code for code, value in enumerate(column.values) if not is_missing(value)}
    texts = [text_of(value) for value in excluded]
    if any(text not in known for text in texts):
        raise ParameterError(
            f'A value that is ruled out does not occur in "{column.name}".', fix="write values as the table does."
        )
    return np.array([known[text] for text in texts], dtype=np.int64)
