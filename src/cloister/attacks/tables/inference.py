"""Inference: classes that make a value likelier than it was, or certain to somebody who knows a little besides.

Nobody needs certainty: whoever knows a class guesses its most frequent value (probabilistic inference), or learns that
a rare value is fifty times as likely as for anybody else (skewness; Li, Li and Venkatasubramanian 2007).

Background knowledge makes certain what was likely. A class with m values becomes certain after m - 1 of them are ruled
out. Somebody who knows j other members of a class knows the value of the rest once all members with other values are
among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.cells import Sensitive
from cloister.anonymize.models import Histogram
from cloister.anonymize.models.distances import equal
from cloister.attacks.release_attacks import offer_attack
from cloister.attacks.result import AttackResult
from cloister.attacks.tables._published_table import publish_groups
from cloister.attacks.tables._scores import log_choose, share_of, share_with_interval
from cloister.attacks.tables.disclosure import DisclosureDetails, prior_of, rank_exposed_rows, shows_one_value
from cloister.core import exact
from cloister.core.exact import Number
from cloister.core.provenance import ANONYMIZED
from cloister.core.random import RandomState, permutation, random_source
from cloister.core.validation import check_count
from cloister.data.values import is_missing, text_of
from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["background_knowledge", "probabilistic_inference", "skewness"]


@offer_attack(
    "probabilistic-inference",
    kind=ANONYMIZED,
    takes=("release", "original", "quasi_identifiers", "sensitive"),
    summary="Guess sensitive values by how often they occur in a class of RELEASE.",
    example="protected.csv --quasi age,zip --sensitive illness",
)
def probabilistic_inference(
    release: Any,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: str | None = None,
    original: Any = None,
    shuffles: int = 10,
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> AttackResult[DisclosureDetails]:
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
    return AttackResult(
        attack="probabilistic inference",
        assumption="knows each person's class and guesses its most frequent value",
        baseline=prior,
        queries=total,
        control=_guess_shuffled(histogram, times, random_state),
        mitigation=("ask for t-closeness, or for entropy l-diversity with a larger l",),
        worst=rank_exposed_rows(published, np.where(posterior > prior, posterior, 0.0)),
        **share_with_interval(float(histogram.largest.sum()), total, confidence=confidence),
        details=DisclosureDetails(
            column=column.name,
            achieved=f"guesses the {column.name} right of",
            shows_one_value=shows_one_value(histogram),
            largest_posterior=float(posterior.max()),
            prior=prior,
            classes=len(histogram.sizes),
            disclosed_classes=int((posterior > prior + 1e-12).sum()),
        ),
    )


@offer_attack(
    "skewness",
    kind=ANONYMIZED,
    takes=("release", "original", "quasi_identifiers", "sensitive"),
    summary="Find classes of RELEASE in which a sensitive value is much more common than elsewhere.",
    example="protected.csv --quasi age,zip --sensitive illness",
)
def skewness(
    release: Any,
    *,
    value: Any = None,
    factor: object = 2,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: str | None = None,
    original: Any = None,
    confidence: Number = 0.95,
) -> AttackResult[DisclosureDetails]:
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
    return AttackResult(
        attack="skewness",
        assumption=f"knows each person's class and compares it with the whole table; {least:g} times as likely counts",
        baseline=0.0,
        queries=int(histogram.sizes.sum()),
        mitigation=("ask for t-closeness or beta-likeness: classes must look like the whole table",),
        worst=rank_exposed_rows(published, np.where(strongest >= least - 1e-12, strongest, 0.0)),
        **share_with_interval(
            float(histogram.counts[lifted].sum()), int(histogram.counts[chosen].sum()), confidence=confidence
        ),
        details=DisclosureDetails(
            column=column.name,
            achieved=f"makes the {column.name} {least:g} times as likely for",
            shows_one_value=shows_one_value(histogram),
            largest_posterior=float(share[top]),
            prior=float(before[top]),
            classes=len(histogram.sizes),
            disclosed_classes=int((strongest >= least - 1e-12).sum()),
            facts=(
                ("largest lift", float(lift[top])),
                ("largest distance from the table", float((part / whole).max())),
            ),
        ),
    )


def _guess_shuffled(histogram: Histogram, times: int, random_state: RandomState) -> float | None:
    """Return how often the guess is right on average after values were dealt out at random."""
    if not times:
        return None
    source = random_source(random_state)
    values = np.repeat(histogram.values, histogram.counts)
    classes = np.repeat(histogram.classes, histogram.counts)
    shares = [_guess_rate(values[permutation(source, len(values))], classes, histogram) for _ in range(times)]
    return float(np.mean(shares))


def _guess_rate(values: NDArray[np.int64], classes: NDArray[np.int64], histogram: Histogram) -> float:
    width = len(histogram.overall)
    keys, counts = np.unique(classes * width + values, return_counts=True)
    best = np.zeros(len(histogram.sizes), dtype=np.int64)
    np.maximum.at(best, keys // width, counts)
    return float(best.sum() / len(values))


def background_knowledge(
    release: Any,
    *,
    excluded: int | Sequence[Any] = 0,
    neighbors: int = 0,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: str | None = None,
    original: Any = None,
    confidence: Number = 0.95,
) -> AttackResult[DisclosureDetails]:
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
    return AttackResult(
        attack="background knowledge",
        assumption=f"knows the class of each person and {_words(excluded, known)}",
        baseline=share_of(float((whole.counts * alone).sum()), int(whole.counts.sum())),
        queries=int(histogram.sizes.sum()),
        mitigation=("ask for a larger l: a class must keep several values after some are ruled out",),
        worst=rank_exposed_rows(published, certain),
        **share_with_interval(float((left.counts * chances).sum()), trials, confidence=confidence),
        details=DisclosureDetails(
            column=column.name,
            achieved=f"is certain about the {column.name} of",
            largest_posterior=max(float(share.max()), float(chances.max())),
            prior=share_of(float(whole.counts.max(initial=0)), int(whole.counts.sum())),
            shows_one_value=shows_one_value(histogram),
            classes=len(histogram.sizes),
            disclosed_classes=int((certain >= 1 - 1e-12).sum()),
            facts=_exclusions_needed(histogram),
        ),
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
        # All members with other values must be among those asked, and what is left of the asked comes from
        # those who share the value.
        logs = log_choose(same - 1, asked - others) - log_choose(sizes - 1, asked)
    return np.where(asked >= others, np.exp(np.where(asked >= others, logs, 0.0)), 0.0)


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
