"""What there is to audit: each registered algorithm with a small pair of neighbors and what it claims.

A subject draws one output on a dataset. For mechanisms that is the answer, for estimators and synthesizers all that a
saved model holds. The neighbors are small and differ in one row that is as far from the others as its bounds allow:
there, an algorithm that forgets a bound or a share of its noise shows it soonest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from cloister.accounting.conversions import zero_concentrated_to_approx
from cloister.core.documents import from_json
from cloister.core.guarantees import Adjacency, ApproxDP, Guarantee, PureDP, ZeroConcentratedDP
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import CloisterError, MissingExtraError
from cloister.mechanisms import mechanisms
from cloister.synth.base import synthesizers

__all__ = ["FAMILIES", "AuditSubject", "NotAuditedError", "claim_of", "subjects"]

FAMILIES = ("mechanism", "estimator", "synthesizer")
_DELTA = Fraction(1, 10**6)
_NAMES = ("a", "b", "c")
_OTHERS = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 0))
_ONE, _ANOTHER = (1, 1, 1), (0, 0, 0)

_MECHANISMS: dict[str, tuple[dict[str, Any], tuple[Any, Any]]] = {
    "approximate_laplace": ({"delta": _DELTA}, (1, 0)),
    "clamped_laplace": ({"bounds": (-20, 20)}, (1, 0)),
    "gaussian": ({"delta": _DELTA}, (1, 0)),
    "select": ({"candidates": ("x", "y"), "score_sensitivity": 1, "sensitivity": None}, ([1, 0], [0, 1])),
    "sparse_vector": ({"threshold": 1}, ([1] * 6, [0] * 6)),
    "truncated_laplace": ({"bounds": (0, 10)}, (1, 0)),
    "vector_laplace": ({"dimensions": 2}, ([1.0, 0.0], [0.0, 0.0])),
}
"""What a mechanism needs besides a sensitivity of 1 and an epsilon, and values that neighbors may have."""

_SYNTHESIZERS: dict[str, dict[str, Any]] = {
    "mwem": {"rounds": 2},
    "microaggregated_gaussian": {"k": 2, "adjacency": "replace"},
}
_ESTIMATORS: dict[str, dict[str, Any]] = {
    "kmeans": {"n_clusters": 2},
    "mlp": {"epochs": 2, "expected_rows": 6},
    "mlp_regressor": {"epochs": 2, "expected_rows": 6},
    "scaler": {"method": "standard"},
}


class NotAuditedError(CloisterError):
    """An algorithm cannot be audited here, for a reason that is told."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class AuditSubject:
    """Something to audit.

    Attributes:
        family: "mechanism", "estimator" or "synthesizer".
        name: under which it is registered.
        prepare: returns a function that draws one output on a dataset, the neighbors, and the promise.
    """

    family: str
    name: str
    prepare: Callable[[], tuple[Callable[[Any], Any], tuple[Any, Any], Guarantee]]


def subjects(epsilon: Fraction) -> Iterator[AuditSubject]:
    """Yield everything that is registered."""
    for name, kind in mechanisms.items():
        yield AuditSubject(family="mechanism", name=name, prepare=_later(_mechanism, name, kind, epsilon))
    for name, kind in _estimators():
        yield AuditSubject(family="estimator", name=name, prepare=_later(_estimator, name, kind, epsilon))
    for name, kind in synthesizers.items():
        yield AuditSubject(family="synthesizer", name=name, prepare=_later(_synthesizer, name, kind, epsilon))


def claim_of(guarantee: Guarantee) -> tuple[Fraction, Fraction]:
    """Return the epsilon and delta that a guarantee promises.

    Raises:
        NotAuditedError: if it promises something else.
    """
    if isinstance(guarantee, ZeroConcentratedDP):
        guarantee = zero_concentrated_to_approx(guarantee, delta=_DELTA)
    if isinstance(guarantee, ApproxDP):
        return guarantee.epsilon, guarantee.delta
    if isinstance(guarantee, PureDP):
        return guarantee.epsilon, Fraction(0)
    raise NotAuditedError(
        "It promises no differential privacy.", fix="attack what it releases: linkage, singling out, membership."
    )


def _later(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: function(*arguments)


def _estimators() -> Iterator[tuple[str, Any]]:
    try:
        from cloister.learn.catalog import load_all

        yield from load_all().items()
    except MissingExtraError:
        return


def _mechanism(name: str, kind: Any, epsilon: Fraction) -> tuple[Callable[[Any], Any], tuple[Any, Any], Guarantee]:
    given, values = _MECHANISMS.get(name, ({}, (1, 0)))
    if name == "randomized_response":
        made = kind(truth=_truthful(epsilon))
        values = (1, 0)
    elif name == "discrete_gaussian":
        made = kind(sensitivity=1, rho=_rho_for_epsilon(epsilon))
    else:
        options = {"sensitivity": 1, "epsilon": epsilon, **given}
        made = kind(**{key: value for key, value in options.items() if value is not None})
    return lambda value: _answer(made.release(value)), values, made.guarantee


def _answer(result: Any) -> Any:
    for name in ("above", "value"):
        if hasattr(result, name):
            found = getattr(result, name)
            return np.asarray(found).tolist() if name == "value" else "".join("01"[item] for item in found)
    return result


def _truthful(epsilon: Fraction) -> Fraction:
    """Return how often a two-coin response tells the truth outright so that it has at most this epsilon."""
    odds = math.exp(float(epsilon))
    # A little less than that, so that the rounding before cannot make the promise untrue.
    return Fraction((odds - 1) / (odds + 1)).limit_denominator(1000) * Fraction(999, 1000)


def _rho_for_epsilon(epsilon: Fraction) -> Fraction:
    """Return the rho that implies at most this epsilon at the delta used here."""
    slack = math.log(1 / _DELTA)
    return Fraction((math.sqrt(slack + float(epsilon)) - math.sqrt(slack)) ** 2).limit_denominator(10**6)


def _estimator(name: str, kind: Any, epsilon: Fraction) -> tuple[Callable[[Any], Any], tuple[Any, Any], Guarantee]:
    features = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 1.0]]
    facts: dict[str, Any] = {"bounds": ([0, 0], [1, 1])}
    if kind.encodes == "codes":
        features = [["xy"[int(item)] for item in row] for row in features]  # type: ignore[misc]
        facts = {"domain": [["x", "y"], ["x", "y"]]}
    target: list[Any] | None = None
    if kind.target == "classes":
        facts["classes"], target = ["no", "yes"], ["no", "yes", "no", "no", "yes"]
    elif kind.target == "number":
        facts["target_bounds"], target = (0, 1), [0.0, 1.0, 0.0, 0.0, 1.0]
    settings = {"epsilon": epsilon, **facts, **_ESTIMATORS.get(name, {})}

    def fitted(count: int, **more: Any) -> Any:
        return kind(**settings, **more).fit(np.array(features[:count]), None if target is None else target[:count])

    more: dict[str, Any] = {}
    try:
        made = fitted(5)
    except CloisterError:
        more = {"delta": float(_DELTA)}
        made = fitted(5, **more)

    def draw(count: int) -> Any:
        model = fitted(count, **more)
        return {attribute: getattr(model, attribute) for attribute in kind.learned}

    return draw, (5, 4), made.guarantee_


def _synthesizer(name: str, kind: Any, epsilon: Fraction) -> tuple[Callable[[Any], Any], tuple[Any, Any], Guarantee]:
    from cloister.synth.documents import document_of

    if name == "k_anonymous":
        raise NotAuditedError("It promises k-anonymity.", fix="attack what it releases instead.")
    made = kind(epsilon=epsilon, complete=True, **_SYNTHESIZERS.get(name, {}))
    is_replaced = Adjacency(made.adjacency) is Adjacency.REPLACE
    pair = (_table([*_OTHERS, _ONE]), _table([*_OTHERS, _ANOTHER] if is_replaced else list(_OTHERS)))

    def draw(table: Table) -> Any:
        learned = document_of(made.fit(table))["learned"]
        return {"rows": made.rows_, **{key: from_json(value) for key, value in learned.items()}}

    draw(pair[0])
    return draw, pair, made.guarantee_


def _table(rows: list[tuple[int, ...]]) -> Table:
    schema = Schema.from_dict({"columns": {name: {"kind": "numeric", "bounds": [0, 1]} for name in _NAMES}})
    columns = dict(zip(_NAMES, map(list, zip(*rows, strict=True)), strict=True))
    return open_table(pa.table(columns), schema=schema)
