"""Homogeneity and similarity: classes in which all people have the same value, or nearly the same.

Whoever knows a person's class knows the person's value where all members share it, however large the class is
(Machanavajjhala et al. 2007). Values may also differ and mean the same: three kinds of stomach disease, three low
salaries (Li, Li and Venkatasubramanian 2007).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.cells import Sensitive
from cloister.anonymize.models import Histogram
from cloister.attacks.release_attacks import offer_attack
from cloister.attacks.result import AttackResult
from cloister.attacks.tables._published_table import PublishedTable, publish_groups
from cloister.attacks.tables._scores import log_choose, share_of, share_with_interval
from cloister.attacks.tables.disclosure import DisclosureDetails, Prior, prior_of, rank_exposed_rows, shows_one_value
from cloister.core import exact
from cloister.core.exact import Number
from cloister.core.provenance import ANONYMIZED
from cloister.core.validation import check_count, check_probability
from cloister.core.wordings import percent
from cloister.data.values import is_missing, text_of
from cloister.errors import ParameterError, ParameterTypeError, SchemaError

__all__ = ["homogeneity", "similarity"]


@offer_attack(
    "homogeneity",
    kind=ANONYMIZED,
    takes=("release", "original", "quasi_identifiers", "sensitive"),
    summary="Read sensitive values off classes of RELEASE whose people share one.",
    example="protected.csv --quasi age,zip --sensitive illness",
)
def homogeneity(
    release: Any,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: str | None = None,
    original: Any = None,
    certainty: object = 1,
    confidence: Number = 0.95,
) -> AttackResult[DisclosureDetails]:
    """Return the share of people whose sensitive value their class gives away.

    The control is what classes of the same sizes would give away if values were dealt out to them at random.

    Args:
        release: a `Release`, an `AnatomyRelease`, or a released table.
        quasi_identifiers: what the attacker knows, where neither release nor schema says it.
        sensitive: the column that the attacker wants to learn; the only sensitive one by default.
        original: the table that the release was made from, which says how common values are without the release; that
            of a release by default, and otherwise the released table itself.
        certainty: the share of a class that a value needs to count as given away.
        confidence: the confidence of the interval.

    >>> import pyarrow as pa
    >>> rows = pa.table({"zip": ["130**"] * 2 + ["148**"] * 2, "illness": ["flu", "cold", "cancer", "cancer"]})
    >>> homogeneity(rows, quasi_identifiers=["zip"], sensitive="illness").success
    0.5
    """
    published = publish_groups(release, quasi_identifiers=quasi_identifiers, sensitive=sensitive)
    column, histogram = published.sensitive(sensitive), published.histogram(sensitive)
    limit = float(check_probability(certainty, name="certainty"))
    prior = prior_of(published, sensitive, original).largest
    return _measure_disclosure(
        published,
        histogram,
        column.name,
        prior=prior,
        attack="homogeneity",
        learned=column.name,
        assumption=f"knows the class of each person by {', '.join(published.quasi)} and reads what its members share",
        mitigation=(_remedy(column.name, limit, prior),),
        certainty=limit,
        confidence=confidence,
    )


def _remedy(name: str, certainty: float, prior: float) -> str:
    """Say what keeps beliefs below a limit: equal t-closeness adds t to a share, frequency l-diversity allows 1/l."""
    if not 0 < certainty < 1:
        return f'ask for l-diversity or t-closeness of "{name}", not for k-anonymity alone'
    # People type these numbers in with two digits, so that both are rounded to the safe side of the limit.
    least = np.floor(100 / certainty + 1e-9) / 100 + 0.01
    diverse = f"frequency l-diversity with l = {least:.2f} (--l {least:.2f} --l-kind frequency)"
    room = np.floor(100 * (certainty - prior) - 1e-9) / 100
    close = f"equal t-closeness with t = {room:.2f} (--t {room:.2f}), or for " if room > 0 else ""
    return f'ask for {close}{diverse} of "{name}"; distinct l-diversity lets one value prevail'


def similarity(
    release: Any,
    *,
    categories: Any = None,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: str | None = None,
    original: Any = None,
    certainty: object = 1,
    confidence: Number = 0.95,
) -> AttackResult[DisclosureDetails]:
    """Return the share of people of whom a class gives away what kind of value they have.

    Args:
        release: a `Release`, an `AnatomyRelease`, or a released table.
        categories: what counts as similar: a mapping from values to categories; a level of the column's hierarchy; or,
            for numbers, the edges of intervals, each including its lower end. By default the lowest level of the
            hierarchy above the values, and for numbers ten equal intervals.
        quasi_identifiers: what the attacker knows, where neither release nor schema says it.
        sensitive: the column that the attacker wants to learn; the only sensitive one by default.
        original: the table that the release was made from, which says how common values are without the release; that
            of a release by default, and otherwise the released table itself.
        certainty: the share of a class that a category needs to count as given away.
        confidence: the confidence of the interval.
    """
    published = publish_groups(release, quasi_identifiers=quasi_identifiers, sensitive=sensitive)
    column = published.sensitive(sensitive)
    rule = _default_edges(column) if categories is None and not column.attribute.has_hierarchy else categories
    kinds = _kinds(column, rule)
    return _measure_disclosure(
        published,
        _merge_values(published.histogram(sensitive), kinds),
        column.name,
        prior=_largest_kind(prior_of(published, sensitive, original), rule),
        attack="similarity",
        learned=f"kind of {column.name}",
        assumption="knows each person's class and asks what kind of value its members share",
        mitigation=(
            "ask for t-closeness with a hierarchical or ordered distance",
            "count diversity over categories rather than values",
        ),
        certainty=float(check_probability(certainty, name="certainty")),
        confidence=confidence,
    )


def _measure_disclosure(
    published: PublishedTable,
    histogram: Histogram,
    name: str,
    *,
    prior: float,
    attack: str,
    learned: str,
    assumption: str,
    mitigation: tuple[str, ...],
    certainty: float,
    confidence: Number,
) -> AttackResult[DisclosureDetails]:
    posterior = histogram.largest / histogram.sizes
    given = posterior >= certainty - 1e-12
    known = prior >= certainty - 1e-12
    # Where the whole table says one value that surely already, only classes that are sure of another one tell
    # anything.
    if known and certainty < 1:
        given, known = _find_unexpected(histogram, certainty), False
    learns = "learns the" if certainty >= 1 else f"is at least {percent(certainty)} sure of the"
    return AttackResult(
        attack=attack,
        assumption=assumption,
        baseline=float(known),
        queries=int(histogram.sizes.sum()),
        control=_by_chance(histogram) if certainty >= 1 else None,
        mitigation=mitigation,
        worst=rank_exposed_rows(published, np.where(given, posterior, 0.0)),
        **share_with_interval(float(histogram.sizes[given].sum()), int(histogram.sizes.sum()), confidence=confidence),
        details=DisclosureDetails(
            column=name,
            achieved=f"{learns} {learned} of",
            certainty=certainty,
            shows_one_value=shows_one_value(published.histogram(name)),
            largest_posterior=float(posterior.max()),
            prior=prior,
            classes=len(histogram.sizes),
            disclosed_classes=int(given.sum()),
            facts=(("mean belief", share_of(float(histogram.largest.sum()), int(histogram.sizes.sum()))),),
        ),
    )


def _find_unexpected(histogram: Histogram, certainty: float) -> NDArray[np.bool_]:
    """Return the classes that make an attacker sure of a value which the whole table does not already say."""
    rare = histogram.overall[histogram.values] < certainty * histogram.overall.sum()
    sure = histogram.counts >= (certainty - 1e-12) * histogram.sizes[histogram.classes]
    found = np.zeros(len(histogram.sizes), dtype=np.bool_)
    found[histogram.classes[rare & sure]] = True
    return found


def _by_chance(histogram: Histogram) -> float:
    """Return the expected share of people in classes of one value, if values were dealt out at random."""
    sizes, rows = np.unique(histogram.sizes, return_counts=True)
    counts = histogram.overall[histogram.overall > 0].astype(np.float64)
    total = float(histogram.sizes.sum())
    chance = np.array([_all_same(counts, float(size), total) for size in sizes])
    return float((chance * sizes * rows).sum() / total)


def _all_same(counts: NDArray[np.float64], size: float, total: float) -> float:
    """Return the chance that as many rows, drawn without replacement, have one value."""
    enough = counts[counts >= size]
    return float(np.exp(log_choose(enough, size) - log_choose(np.array([total]), size)).sum())


def _merge_values(histogram: Histogram, kinds: NDArray[np.int64]) -> Histogram:
    """Return the counts of categories instead of values."""
    width = int(kinds.max()) + 1
    keys = histogram.classes * width + kinds[histogram.values]
    found, inverse = np.unique(keys, return_inverse=True)
    counts = np.bincount(inverse.reshape(-1), weights=histogram.counts).astype(np.int64)
    overall = np.bincount(kinds, weights=histogram.overall, minlength=width).astype(np.int64)
    return Histogram(
        classes=found // width, values=found % width, counts=counts, sizes=histogram.sizes, overall=overall
    )


def _largest_kind(prior: Prior, categories: Any) -> float:
    """Return the share of the most frequent category of the original; values that no category names are their own."""
    if isinstance(categories, Mapping):
        told = {text_of(value): category for value, category in categories.items()}
        names = [text_of(value) for value in prior.column.values if not is_missing(value)]
        categories = {name: told.get(name, f"value {name}") for name in names}
    elif not prior.column.attribute.has_hierarchy and not isinstance(categories, Sequence | np.ndarray):
        return prior.largest
    elif isinstance(categories, Sequence | np.ndarray) and any(isinstance(item, str) for item in prior.column.values):
        raise ParameterError(
            f'"{prior.column.name}" holds numbers in the release, but not in the original.',
            fix="open the original with the column as numbers.",
        )
    counts = np.bincount(_kinds(prior.column, categories), weights=prior.counts)
    return float(counts.max() / counts.sum())


def _kinds(column: Sensitive, categories: Any) -> NDArray[np.int64]:
    """Return the category of each value."""
    if isinstance(categories, Mapping):
        return _map_categories(column, categories)
    is_level = isinstance(categories, int) and not isinstance(categories, bool)
    if is_level or (categories is None and column.attribute.has_hierarchy):
        level = check_count(1 if categories is None else categories, name="the level", at_least=0)
        if not column.attribute.has_hierarchy or level > column.attribute.height:
            raise SchemaError(
                f'"{column.name}" has no hierarchy with such a level.',
                fix=f'give one: schema.with_hierarchy("{column.name}", ...), or categories={{value: category}}.',
            )
        return column.attribute.ancestors[level].astype(np.int64)
    return _intervals(column, categories)


def _map_categories(column: Sensitive, categories: Mapping[Any, Any]) -> NDArray[np.int64]:
    told = {text_of(value): str(category) for value, category in categories.items()}
    if any(not is_missing(value) and text_of(value) not in told for value in column.values):
        raise ParameterError(
            f'categories leaves values of "{column.name}" out.', fix="map every value of the column to a category."
        )
    names = ["" if is_missing(value) else told[text_of(value)] for value in column.values]
    return np.unique(np.array(names), return_inverse=True)[1].reshape(-1).astype(np.int64)


def _numbers(column: Sensitive) -> NDArray[np.float64]:
    numbers = column.attribute.positions
    if numbers is None or not column.attribute.is_numeric:
        raise SchemaError(
            f'"{column.name}" has neither a hierarchy nor numbers, so nothing says which values are similar.',
            fix="give categories={value: category}.",
        )
    return numbers


def _default_edges(column: Sensitive) -> NDArray[np.float64]:
    """Return the inner edges of ten equal intervals."""
    numbers = _numbers(column)
    return np.linspace(float(np.nanmin(numbers)), float(np.nanmax(numbers)), 11)[1:-1]


def _intervals(column: Sensitive, edges: Any) -> NDArray[np.int64]:
    numbers = _numbers(column)
    if isinstance(edges, np.ndarray):
        edges = edges.tolist()
    if isinstance(edges, str) or not isinstance(edges, Sequence) or not len(edges):
        raise ParameterTypeError("categories is no mapping, level or list of edges.", fix="write categories=[0, 10].")
    cuts = np.sort([float(exact.number(edge, name="each edge")) for edge in edges])
    return np.where(np.isnan(numbers), len(cuts) + 1, np.searchsorted(cuts, numbers, side="right")).astype(np.int64)
