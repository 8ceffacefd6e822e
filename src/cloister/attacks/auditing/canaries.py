"""Runs with canaries: what is needed to audit a mechanism, queries, an estimator or a synthesizer in one run.

Each runner tosses a fair coin per canary, puts those that won into the data, runs what is audited once, scores every
canary by the output and hands both to `cloister.attacks.audit_one_run`. The claim is about rows that are added or
removed; a promise about replaced rows or about persons with several rows is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cloister.accounting.budget import Budget
from cloister.attacks.auditing.features import plain
from cloister.attacks.auditing.one_run import OneRunDetails, audit_one_run
from cloister.attacks.result import AttackResult
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, ApproxDP, PureDP
from cloister.core.random import RandomState, bits, permutation, random_source
from cloister.core.validation import check_count
from cloister.data.mixed_rows import nearest_rows, number_rows, read_mixed_rows
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import DataError, ParameterError, ParameterTypeError
from cloister.queries import PrivateTable
from cloister.synth.base import Synthesizer

__all__ = ["audit_estimator_once", "audit_mechanism_once", "audit_queries_once", "audit_synthesizer_once"]

Scores = NDArray[np.float64]


def audit_mechanism_once(
    mechanism: Any,
    *,
    canaries: int = 1_000,
    score: Callable[[Any], Any] | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> AttackResult[OneRunDetails]:
    """Audit a mechanism for vectors in one run: each canary adds 1 to a coordinate of its own.

    Args:
        mechanism: an object with ``release(vector)``, or a function of a vector of zeros and ones. A canary changes
            one coordinate by 1, so the sensitivity of the mechanism must be stated for that.
        canaries: how many, and so how long the vector is.
        score: from the output to one number per canary; without it, the output is a vector and speaks for itself.
        epsilon: the claim; without it, what the mechanism's own guarantee says, if it has one.
        delta: the claim, likewise.
        confidence: the probability that the bound is not above the true epsilon.
        random_state: of the coins; an integer is for tests.
    """
    count = check_count(canaries, name="canaries", at_least=1)
    included = bits(random_source(random_state), count)
    output = (getattr(mechanism, "release", None) or mechanism)(included.astype(np.int64))
    seen = _numbers(output if score is None else score(output), count)
    claim = _claim(getattr(mechanism, "guarantee", None), epsilon, delta)
    return audit_one_run(included, seen, **claim, confidence=confidence)


def audit_queries_once(
    ask: Callable[[PrivateTable], Any] | None = None,
    *,
    epsilon: Number,
    delta: Number = 0,
    canaries: int = 1_000,
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> AttackResult[OneRunDetails]:
    """Audit answers of a `PrivateTable` in one run: each canary is one row, in a group of its own.

    Args:
        ask: what is asked of a table with the one column "canary", of which every canary has a value of its own;
            returns one number per canary. Without it, the histogram of that column at the given epsilon.
        epsilon: the claim: what all answers together cost.
        delta: the claim.
        canaries: how many.
        confidence: the probability that the bound is not above the true epsilon.
        random_state: of the coins; an integer is for tests.
    """
    count = check_count(canaries, name="canaries", at_least=1)
    included = bits(random_source(random_state), count)
    names = [f"c{place:06d}" for place in range(count)]
    schema = Schema.from_dict({"columns": {"canary": {"kind": "nominal", "categories": names}}})
    rows = pa.table({"canary": pa.array([names[place] for place in np.flatnonzero(included)], pa.string())})
    # The budget is not what is audited here, and must not run out.
    private = PrivateTable(
        open_table(rows, schema=schema), budget=Budget(epsilon=Fraction(10**6), delta=Fraction(1, 2))
    )
    answer = _histogram(private, names, epsilon) if ask is None else ask(private)
    return audit_one_run(included, _numbers(answer, count), epsilon=epsilon, delta=delta, confidence=confidence)


def audit_estimator_once(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    canaries: tuple[Any, Any],
    score: Callable[[Any, Any, Any], Any] | None = None,
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> AttackResult[OneRunDetails]:
    """Audit a private estimator in one fit, with rows of which each is in by a fair coin.

    Args:
        estimator: not fitted; a copy of it is, and no ledger is charged.
        X: rows that are always in, as an array.
        y: their targets.
        canaries: features and targets of the rows that are in or not. The more unusual they are, the more a fit shows.
        score: ``score(model, X, y)`` returns one number per canary, larger if it looks more as if it had been in;
            without it, minus the loss of the model's prediction.
        confidence: the probability that the bound is not above the true epsilon.
        random_state: of the coins; an integer is for tests.
    """
    from sklearn.base import clone

    extra, targets = np.asarray(canaries[0]), np.asarray(canaries[1])
    if extra.ndim != 2 or len(extra) != len(targets) or not len(extra):
        raise ParameterError(
            "The canaries are not rows with one target each.", fix="give canaries=(X, y), at least one row."
        )
    _check_rows(estimator)
    included = bits(random_source(random_state), len(extra))
    made = clone(estimator).set_params(ledger=None, dataset=None)
    rows = np.concatenate([np.asarray(X), extra[included]])
    labels = np.concatenate([np.asarray(y), targets[included]])
    made.fit(rows, labels)
    seen = _numbers((score or _fit_of)(made, extra, targets), len(extra))
    return audit_one_run(included, seen, **_claim(made.guarantee_, None, None), confidence=confidence)


def audit_synthesizer_once(
    synthesizer: Synthesizer,
    table: Any,
    *,
    canaries: Any = 200,
    rows: int | None = None,
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> AttackResult[OneRunDetails]:
    """Audit a synthesizer with one fit, and another one without any canary to compare it with.

    A canary's score is how many more copies of it, and how much nearer rows, the synthetic table has than one that was
    made without any canary.

    Args:
        synthesizer: fitted or not; it is not changed, and no ledger is charged.
        table: the rows, as for `fit`.
        canaries: how many rows of the table, chosen at random, are canaries; or a table of canaries of its own.
        rows: how many synthetic rows are drawn; without it, ten for each row of the data.
        confidence: the probability that the bound is not above the true epsilon.
        random_state: of the coins and the choice of canaries; an integer is for tests.

    Raises:
        DataError: if there are too few rows.
    """
    if not isinstance(synthesizer, Synthesizer):
        raise ParameterTypeError("This is not a synthesizer.", fix="give for example cl.synth.SpanningTree(epsilon=1).")
    _check_rows(synthesizer)
    source = random_source(random_state)
    opened = table if isinstance(table, Table) else open_table(table, schema=synthesizer.schema)
    shadow = replace(synthesizer, ledger=None, dataset=None, analyst=None, progress=None, random_state=None)
    shadow.schema = opened.schema if synthesizer.schema is None else synthesizer.schema
    others, marked = _split_canaries(opened, canaries, source)
    included = bits(source, len(marked))
    count = check_count(10 * (len(others) + len(marked)) if rows is None else rows, name="rows", at_least=1)
    shown = []
    # The second table is made without any canary: what it has of a canary all the same is common, and is taken
    # off.
    for part in (pa.concat_tables([others, marked.filter(pa.array(included))]), others):
        shadow.fit(open_table(part, schema=shadow.schema))
        shown.append(_likeness(marked, shadow.sample(count)))
    claim = _claim(shadow.guarantee_, None, None)
    return audit_one_run(included, shown[0] - shown[1], **claim, confidence=confidence)


def _split_canaries(table: Table, canaries: Any, source: Any) -> tuple[pa.Table, pa.Table]:
    """Return the rows that are always in, and the canaries."""
    rows = table.to_arrow()
    if not isinstance(canaries, int):
        marked = (canaries if isinstance(canaries, Table) else open_table(canaries)).to_arrow()
        return rows, marked.select(rows.column_names).cast(rows.schema)
    count = check_count(canaries, name="canaries", at_least=1)
    if len(rows) < 2 * count:
        raise DataError(
            f"There are too few rows for {count} canaries.", fix=f"ask for at most {max(1, len(rows) // 2)} canaries."
        )
    order = permutation(source, len(rows))
    return rows.take(pa.array(order[count:])), rows.take(pa.array(order[:count]))


def _likeness(canaries: pa.Table, made: Table) -> Scores:
    """Return for each canary the logarithm of its copies, less the distance of the nearest row."""
    names = list(made.columns)
    first, second = read_mixed_rows([open_table(canaries.select(names), schema=made.schema), made], names)
    kinds, others = number_rows([first, second])
    copies = np.bincount(others, minlength=int(max(kinds.max(), others.max())) + 1)[kinds]
    return np.asarray(np.log1p(copies) - nearest_rows(first, second)[0][:, 0])


def _histogram(private: PrivateTable, names: list[str], epsilon: Number) -> list[float]:
    answer = private.histogram("canary", epsilon=epsilon).to_arrow().to_pydict()
    count = next(name for name in answer if name != "canary")
    found = dict(zip(answer["canary"], answer[count], strict=True))
    return [float(found[name]) for name in names]


def _fit_of(model: Any, X: Any, y: Any) -> Scores:
    """Return minus the loss of each prediction."""
    if hasattr(model, "predict_proba"):
        place = {label: number for number, label in enumerate(model.classes_)}
        chosen = np.array([place[label] for label in np.asarray(y).tolist()])
        return np.asarray(np.log(np.maximum(model.predict_proba(X)[np.arange(len(chosen)), chosen], 1e-300)))
    predicted = model.predict(X)
    if hasattr(model, "classes_"):
        return np.asarray(predicted == y, dtype=np.float64)
    return np.asarray(-((predicted - np.asarray(y, dtype=np.float64)) ** 2))


def _check_rows(subject: Any) -> None:
    if subject.unit != "row" or Adjacency(subject.adjacency) is not Adjacency.ADD_REMOVE:
        raise ParameterError(
            "Canaries are rows that are in or not, but the promise is about persons or replaced rows.",
            fix='audit one with unit="row" and adjacency="add_remove".',
        )


def _claim(guarantee: Any, epsilon: Number | None, delta: Number | None) -> dict[str, Any]:
    """Return the claim that was given, or else the one that a guarantee makes."""
    stated: dict[str, Any] = {}
    if isinstance(guarantee, PureDP | ApproxDP):
        stated = {"epsilon": guarantee.epsilon, "delta": guarantee.delta if isinstance(guarantee, ApproxDP) else 0}
    given = {name: value for name, value in (("epsilon", epsilon), ("delta", delta)) if value is not None}
    return {"epsilon": None, "delta": 0, **stated, **given}


def _numbers(output: Any, count: int) -> Scores:
    """Return one number per canary."""
    held = plain(output)
    try:
        found = np.asarray(getattr(held, "value", held), dtype=np.float64).ravel()
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.shape != (count,):
        raise ParameterError(
            "The output is not one number per canary.", fix="give score=, which returns a number for each canary."
        )
    return found
