"""Linkage: match released rows with people whose quasi-identifiers are known from elsewhere.

Three attackers, from the plainest to the most patient:

- *exact*: a person's candidates are the rows whose labels allow all that is known about the person; one of them is
  taken at random. Labels are read as hierarchies, intervals, sets and masked texts (Sweeney 2002).
- *distance*: the nearest row in standardized space is taken (Pagliuca and Seri 1999). It needs no truthful labels, so
  that it also works on noise and on means.
- *probabilistic*: agreement and disagreement of columns are weighed by how telling they are (Fellegi and Sunter 1969);
  the weights are learned from the two tables alone by EM, and texts may be misspelled.

The truth is used for scoring only. People who are not in the release are a control: whoever links them too, and often,
cannot know which links are right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.anatomy import GROUP, AnatomyRelease
from cloister.attacks.details import HELD, AttackDetails, Row, count, fact, join_names, keyed, number
from cloister.attacks.release_attacks import AttackChoice, offer_attack
from cloister.attacks.result import AttackResult
from cloister.attacks.tables._candidate_classes import fit_people, known_columns, people_of, unread_columns
from cloister.attacks.tables._published_table import PublishedTable, publish
from cloister.attacks.tables._record_links import Links, link_by_distance, link_exactly
from cloister.attacks.tables._scores import (
    check_truth,
    most_exposed,
    share_of,
    share_with_interval,
)
from cloister.attacks.tables.probabilistic_linkage import link_by_weight
from cloister.core.exact import Number
from cloister.core.provenance import ANONYMIZED
from cloister.core.random import RandomState, permutation, random_source
from cloister.core.validation import check_choice, check_count, check_probability
from cloister.core.wordings import join_words, percent
from cloister.data.sources import ensure_open
from cloister.data.table import Table
from cloister.errors import ParameterError

__all__ = ["LinkageDetails", "linkage"]

KINDS = ("exact", "distance", "probabilistic")
_MOST_PAIRS = 2 * 10**8


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkageDetails(AttackDetails):
    """What linkage found. Its control is how surely people are linked who are not in the release.

    Attributes:
        columns: what the attacker knows about people.
        expected_hits: how many people are linked to their own row on average, if all of them are in the release.
        unique_matches: how many people have exactly one candidate.
        largest_risk: the largest probability of a link.
        marketer_risk: the share of people who are linked rightly on average, if all of them are in the release.
        unlinked: how many people fit no row at all.
        unread: the known columns whose released labels contain none of the people's values: they could not be read, or
            the rows are of other people.
        claims: how many links the attacker is sure enough of to claim them.
        precision: the share of claims that are right, those about outsiders included; None without truth.
        recall: the share of the people in the release about whom a right claim is made; None without truth.
        tolerated: the largest probability that the release promises (one over k), where it does.
        nearest: by distance, (k, share of people whose own row is among the k nearest rows).
        weights: with weights, (column, what its agreement says in bits).
        is_scored: whether the truth was there, so that success counts right links rather than expecting them.
    """

    columns: tuple[str, ...] = field(metadata=fact("known columns", join_names))
    expected_hits: float = field(metadata=fact("expected hits", number(",.1f")))
    unique_matches: int = field(metadata=fact("unique matches", count))
    largest_risk: float = field(metadata=fact("largest risk", percent))
    marketer_risk: float = field(metadata=HELD)
    unlinked: int = field(metadata=fact("fit no row", count))
    unread: tuple[str, ...] = field(default=(), metadata=fact("columns that fit nobody", join_names))
    claims: int
    precision: float | None
    recall: float | None
    tolerated: float | None
    nearest: tuple[tuple[int, float], ...] = field(default=(), metadata=fact(write=keyed("k", "share")))
    weights: tuple[tuple[str, float], ...] = field(default=(), metadata=fact(write=dict))
    is_scored: bool = field(default=False, metadata=HELD)

    def judge(self, result: AttackResult, /) -> bool:
        """Return whether links are, at the stated confidence, right more often than by guessing and than promised."""
        return result.interval[0] > max(result.baseline, self.tolerated or 0)

    def conclude(self, result: AttackResult, /) -> str | None:
        """Return the usual verdict, unless nothing could be tried or links are as rare as was promised."""
        if self.unlinked == result.trials:
            labels = f"labels of {_columns(self.unread)}" if self.unread else "labels"
            return (
                f"Nothing could be tried: {self.unlinked:,} of {result.trials:,} people fit no row: {labels} could not "
                "be read, or the rows are of other people. This says nothing about the release."
            )
        if not result.succeeded and self.tolerated is not None and result.interval[0] > result.baseline:
            return (
                f"The attack stays within what was promised: right in {percent(result.success)} of cases, "
                f"{percent(self.tolerated)} allowed, guessing in {percent(result.baseline)}.{self.remark(result)} "
                "Others may find more."
            )
        return None

    def remark(self, result: AttackResult, /) -> str:
        """Return how many people fit one row only, what could not be read, and how outsiders are linked."""
        unique = (
            f" {self.unique_matches:,} of {result.trials:,} people fit one row only." if self.unique_matches else ""
        )
        if self.unread:
            unique += f" No label of {_columns(self.unread)} contains a value of anybody: it may not have been read."
        if result.control is None:
            return unique
        return f"{unique} People who are not in the release are linked with a confidence of {percent(result.control)}."

    def tell(self, _: AttackResult, /) -> Iterator[Row]:
        """Return how many claims are right and, by distance, how near people's own rows are."""
        if self.precision is not None:
            yield "precision of claims", f"{percent(self.precision)} of {self.claims:,}"
        yield from ((f"among the {k} nearest", percent(share)) for k, share in self.nearest)


@offer_attack(
    "linkage",
    kind=ANONYMIZED,
    takes=("release", "auxiliary", "quasi_identifiers"),
    needs=("auxiliary",),
    choices={"kind": AttackChoice(KINDS, "How people are compared with released rows.")},
    summary="Match the people of the original with the rows of RELEASE.",
    example="protected.csv --original visits.csv --schema s.yaml",
)
def linkage(
    release: Any,
    auxiliary: Any = None,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    kind: str = "exact",
    truth: Any = None,
    outsiders: Any = None,
    threshold: object = 0.5,
    nearest: int = 5,
    sample: int | None = None,
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> AttackResult[LinkageDetails]:
    """Return how often people are linked to their own released row.

    Args:
        release: a `Release`, an `AnatomyRelease`, or a released table.
        auxiliary: the people whom the attacker knows, one a row, with some of the quasi-identifiers; the original of a
            release by default: the attacker then knows everybody in it.
        quasi_identifiers: the columns of the release that can be known, where neither release nor schema says it.
        columns: which of them this attacker knows; all that both tables have by default.
        kind: ``exact``, ``distance`` or ``probabilistic``.
        truth: for each person the position of their row in the custodian's table (the original of a release, otherwise
            the released table itself), -1 for somebody who is not in it; for scoring only. Known where the auxiliary
            is the original.
        outsiders: people who are not in the release, as a control; those with truth -1 by default.
        threshold: how sure the attacker must be of a link to claim it.
        nearest: up to how many nearest rows ``distance`` looks at.
        sample: link so many people only, chosen at random; ``distance`` and ``probabilistic`` choose some by themselves
            where there would be more than 200 million pairs.
        confidence: the confidence of the interval.
        random_state: chooses the sample: None for the operating system; an integer is for tests only.

    >>> import pyarrow as pa
    >>> released = pa.table({"age": ["[20, 30)", "[20, 30)", "[30, 40)"], "illness": ["flu", "cold", "flu"]})
    >>> result = linkage(released, pa.table({"age": [24, 35]}), quasi_identifiers=["age"], truth=[0, 2])
    >>> result.unique_matches, result.expected_hits
    (1, 1.5)
    """
    check_choice(kind, name="kind", allowed=KINDS)
    claimed = float(check_probability(threshold, name="threshold"))
    deepest = check_count(nearest, name="nearest", at_least=1)
    published = publish(release, quasi_identifiers=_without_group(release, quasi_identifiers))
    people, where = _people_and_truth(auxiliary, published, truth)
    names = known_columns(published, people, columns)
    chosen = _sample_people(len(where), published, kind, sample, random_state)
    linked = _link(published, people, names, kind=kind, positions=chosen, nearest=deepest, learned=None)
    where, is_scored = where[chosen], auxiliary is None or truth is not None
    rest = np.ones(len(chosen), dtype=bool) if not is_scored else where >= 0
    others = linked.only(~rest) if is_scored and not rest.all() else None
    if outsiders is not None:
        sampled = _sample_people(ensure_open(outsiders).count(), published, kind, sample, random_state)
        others = _link(
            published,
            ensure_open(outsiders),
            names,
            kind=kind,
            positions=sampled,
            nearest=deepest,
            learned=linked.learned,
        )
    if not rest.any():
        raise ParameterError(
            "By the truth given, nobody of the auxiliary table is in the release.",
            fix="give some people who are in it; others belong into outsiders=.",
        )
    inside = linked.only(rest)
    own = published.row_classes[where[rest]] if is_scored else None
    unread = unread_columns(published, people_of(people, names, positions=chosen), strict=kind == "distance")
    return _result(
        published,
        names,
        inside,
        own,
        others,
        kind=kind,
        claimed=claimed,
        confidence=confidence,
        positions=where[rest],
        unread=unread,
    )


def _result(
    published: PublishedTable,
    names: tuple[str, ...],
    links: Links,
    own: NDArray[np.int64] | None,
    others: Links | None,
    *,
    kind: str,
    claimed: float,
    confidence: Number,
    positions: NDArray[np.int64],
    unread: tuple[str, ...],
) -> AttackResult[LinkageDetails]:
    expected = links.risks
    hits = expected if own is None else links.right(own)
    # A threshold of zero must not claim a link for somebody who fits no row.
    sure = links.risks >= max(claimed, 1e-12)
    false = 0 if others is None else int((others.risks >= max(claimed, 1e-12)).sum())
    claims = int(sure.sum()) + false
    right = None if own is None else float(links.right(own)[sure].sum())
    control = None if others is None else float(others.risks.mean())
    return AttackResult(
        attack=f"{kind} linkage",
        assumption=f"knows {join_words(names)} of {len(hits):,} people and looks for their rows",
        baseline=1 / max(published.total, 1),
        queries=published.total,
        control=control,
        mitigation=(
            "generalize or suppress what others can know until every combination has several rows",
            "leave columns out that nobody needs",
        ),
        worst=() if own is None else tuple((int(positions[place]), score) for place, score in most_exposed(hits)),
        **share_with_interval(float(hits.sum()), len(hits), confidence=confidence),
        details=LinkageDetails(
            columns=names,
            expected_hits=float(expected.sum()),
            marketer_risk=float(expected.sum()) / len(hits),
            unique_matches=int((links.candidates == 1).sum()),
            claims=claims,
            precision=None if right is None or not claims else right / claims,
            recall=None if right is None else share_of(right, len(hits)),
            unlinked=int((links.candidates == 0).sum()),
            largest_risk=float(links.risks.max()),
            tolerated=_risk_limit(published),
            nearest=links.nearest(own) if own is not None else (),
            weights=() if links.learned is None else links.learned.weights(names),
            is_scored=own is not None,
            unread=unread,
        ),
    )


def _link(
    published: PublishedTable,
    table: Table,
    names: tuple[str, ...],
    *,
    kind: str,
    positions: NDArray[np.int64],
    nearest: int,
    learned: Any,
) -> Links:
    people = people_of(table, names, positions=positions)
    if kind == "distance":
        return link_by_distance(published, people, deepest=nearest)
    if kind == "probabilistic":
        return link_by_weight(published, people, learned=learned)
    return link_exactly(fit_people(published, people))


def _people_and_truth(auxiliary: Any, published: PublishedTable, truth: Any) -> tuple[Table, NDArray[np.int64]]:
    """Return the people, and for each the position of their row (only asked for scoring)."""
    if auxiliary is None:
        if published.release is None:
            raise ParameterError(
                "Nothing says whom the attacker knows.",
                fix="give an auxiliary table; only the original of a release is known by itself.",
            )
        original = published.release.original_with_roles
        return original, np.arange(original.count())
    people = ensure_open(auxiliary)
    count = people.count()
    if truth is None:
        return people, np.zeros(count, dtype=np.int64)
    return people, check_truth(truth, people=count, rows=len(published.row_classes))


def _sample_people(
    count: int, published: PublishedTable, kind: str, sample: int | None, random_state: RandomState
) -> NDArray[np.int64]:
    """Return the positions of the people to link."""
    most = count if sample is None else check_count(sample, name="sample", at_least=1)
    if kind != "exact":
        most = min(most, max(_MOST_PAIRS // max(len(published.sizes), 1), 1))
    if most >= count:
        return np.arange(count)
    return np.sort(permutation(random_source(random_state), count)[:most])


def _risk_limit(published: PublishedTable) -> float | None:
    """Return the largest risk that a release promises."""
    if published.release is None:
        return None
    sizes = [int(check.model.k) for check in published.release.checks if hasattr(check.model, "k")]
    return 1 / max(sizes) if sizes else None


def _without_group(release: Any, quasi: Sequence[str] | None) -> Sequence[str] | None:
    """Return the columns of an anatomy that can be known; its groups cannot."""
    if quasi is not None or not isinstance(release, AnatomyRelease):
        return quasi
    return [name for name in release.roles.quasi if name != GROUP]


def _columns(names: Sequence[str]) -> str:
    return f"the {'column' if len(names) == 1 else 'columns'} {join_words(names)}"
