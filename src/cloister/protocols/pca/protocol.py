"""Distributed differentially private PCA through a proxy (DPDPCA), corrected.

Rows are split between owners: same columns, different people. Owners trust nobody with their rows. A data user, who
holds the key of an additive encryption, gets noisy moments; a proxy, who holds no key, adds up what the owners send.

- ``adjacency="add_remove"``: the number of rows, the sums and the products are released with noise (`_moments`).
- ``adjacency="replace"``: the number of rows is public, and the scatter is released with noise (`_blinded_scatter`).
  Its noise is three to four times as large, since a row moves the scatter around a mean farther than it moves products.

Noise is made by the owners in shares, so that neither proxy nor data user knows it
(`cloister.mechanisms.gaussian`).

Not promised: anything if the proxy and the data user work together, since the ciphertexts of one and the key of the
other are every owner's own numbers; or if somebody does not follow the protocol. A person with rows at several owners,
or several rows, is protected row by row.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from cloister.accounting.budget import Budget
from cloister.accounting.events import Event
from cloister.accounting.payment import pay
from cloister.core import validation
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, ApproxDP, Caveat, Guarantee, NoGuarantee
from cloister.core.random import RandomState, caveats_of, random_source
from cloister.core.result import Result
from cloister.core.whole_rows import Floats
from cloister.crypto.paillier import DEFAULT_KEY_BITS, PaillierPrivateKey
from cloister.errors import InternalError, ParameterError, ParameterTypeError, PrivacyParameterWarning
from cloister.plotting import Figure
from cloister.protocols.parties import Channel, Transcript, run
from cloister.protocols.pca._blinded_scatter import plan_blinded_scatter
from cloister.protocols.pca._moments import plan_moments
from cloister.protocols.pca._parties import PROXY, USER, DataUser, Owner, Proxy
from cloister.protocols.pca._plans import FixedPoint, NoiseSharing, PcaPlan, Released, as_rows

__all__ = ["SHORT_KEY", "DistributedComponents", "distributed_dp_pca"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistributedComponents(Result):
    """Principal components of rows of several owners.

    Attributes:
        components: the components, one in each row, orthonormal.
        explained_variance: the noisy variance along each of them.
        mean: the noisy mean, where it was released.
        n_rows: the noisy number of rows, or the public one.
        scatter: the noisy scatter matrix that all of this was computed from.
        noise_deviation: the standard deviation of the noise on an entry of what the scatter is computed from.
        event: what the run was for the accountants; None without noise.
        transcript: rounds, bytes, and who saw what.
    """

    schema: ClassVar[str] = "cloister.distributed_components/1"

    components: Floats
    explained_variance: Floats
    mean: Floats | None
    n_rows: float
    scatter: Floats = field(repr=False)
    noise_deviation: float
    event: Event | None = field(repr=False)
    transcript: Transcript = field(repr=False)

    def __str__(self) -> str:
        kept, width = self.components.shape
        return f"{kept} of {width} components, {self.guarantee.brief()}; {self.transcript}"

    def transform(self, rows: Any) -> Floats:  # rows of numbers
        """Return coordinates of rows along the components, from the noisy mean if there is one: costs nothing."""
        values = np.asarray(rows, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != self.components.shape[1]:
            raise ParameterError(
                "These rows have other columns than the components.",
                fix=f"give rows of {self.components.shape[1]} numbers.",
            )
        return np.asarray((values - (0.0 if self.mean is None else self.mean)) @ self.components.T)

    def plot(self) -> Figure:
        """Return a chart of the noisy variance along each component."""
        from cloister.plotting import bars_with_errors

        return bars_with_errors(
            [f"{place + 1}" for place in range(len(self.components))],
            self.explained_variance.tolist(),
            title="Variance along the components",
            x="Component",
            y="Variance",
            subtitle=self.guarantee.brief(),
        )

    def _fields(self) -> dict[str, Any]:
        return {
            "components": self.components.tolist(),
            "explained_variance": self.explained_variance.tolist(),
            "mean": None if self.mean is None else self.mean.tolist(),
            "n_rows": self.n_rows,
            "scatter": self.scatter.tolist(),
            "noise_deviation": self.noise_deviation,
            "event": None if self.event is None else self.event.to_dict(),
            "transcript": self.transcript.to_dict(),
        }


SHORT_KEY = Caveat("short_key", "the encryption key is too short to protect anything (it was for tests)")

_LARGEST_DELTA = Fraction(1, 10**6)
_RELATIONS = ("add_remove", "replace")


def distributed_dp_pca(
    owners: Mapping[str, Any] | Sequence[Any],  # arrays or data frames of numbers
    *,
    epsilon: Number | None,
    data_norm: object,
    delta: Number | None = None,
    n_components: int | None = None,
    adjacency: str = "add_remove",
    public_rows: int | Sequence[int] | None = None,
    max_colluding_owners: int = 1,
    fraction_bits: int | None = None,
    key_bits: int = DEFAULT_KEY_BITS,
    ledger: Any = None,  # a ledger, its address, or None
    dataset: str | None = None,
    analyst: str | None = None,
    channel: Channel | None = None,
    random_state: RandomState = None,
    unsafe_without_noise: bool = False,
    insecure_key_bits_for_tests: int | None = None,
) -> DistributedComponents:
    """Return principal components of the rows of several owners, none of whom shows rows to anybody.

    Args:
        owners: the rows of each owner, by name or in order: two-dimensional, all with the same columns.
        epsilon: what the run may cost.
        data_norm: the largest Euclidean norm of a row. Public; longer rows are shrunk.
        delta: None is a millionth, or a tenth of one over the public number of rows if that is less.
        n_components: how many components; None is one for each column.
        adjacency: "add_remove" releases a noisy number of rows; "replace" takes it for public.
        public_rows: under "replace" how many rows each owner has. Otherwise only about how many, if that is public.
        max_colluding_owners: how many owners may tell the data user their share of the noise, or be the data user.
        fraction_bits: how many binary digits of a number are kept; None is about 20 digits of the norm.
        key_bits: the length of the data user's key.
        ledger: what is charged before any row is used: a ledger or its address.
        dataset: the account of all these rows together in the ledger.
        analyst: who asks.
        channel: what carries messages; None is memory.
        random_state: None; an integer is for tests, and breaks the promise.
        unsafe_without_noise: computes exactly, with ``epsilon=None``. Encrypted all the same, but not private.
        insecure_key_bits_for_tests: a short key, which breaks the promise.

    Raises:
        ParameterError: if a parameter or a table is not usable.
        BudgetExceededError: if the ledger has less left than epsilon.
        ProtocolError: if the parties could not finish.

    >>> owners = {"east": [[0.6, 0.5], [-0.6, -0.5]] * 900, "west": [[0.5, 0.6], [-0.5, -0.6]] * 600}
    >>> result = distributed_dp_pca(owners, n_components=1, epsilon=2, data_norm=1, key_bits=2048)
    >>> abs(result.components).round(1).tolist(), result.guarantee.brief()
    ([[0.7, 0.7]], 'epsilon = 2, delta = 1e-06 per row')
    """
    tables = _tables(owners)
    columns = next(iter(tables.values())).shape[1]
    kept = _count_components(n_components, columns)
    relation = Adjacency(validation.check_choice(adjacency, name="adjacency", allowed=_RELATIONS))
    sizes, about = _public_rows(public_rows, owners=len(tables), exactly=relation is Adjacency.REPLACE)
    sharing = _sharing(epsilon, delta, about, len(tables), max_colluding_owners, exact=unsafe_without_noise)
    plan = _plan(
        relation,
        FixedPoint.of(data_norm=data_norm, fraction_bits=fraction_bits, columns=columns),
        columns=columns,
        rows=about,
        sharing=sharing,
    )
    source = random_source(random_state)
    key = _key(key_bits, insecure_key_bits_for_tests)
    common: dict[str, Any] = {"plan": plan, "key_bits": key.public.bits, "source": source}
    parties = [
        Owner(name, rows, public_rows=size, **common) for (name, rows), size in zip(tables.items(), sizes, strict=True)
    ]
    proxy, user = Proxy(tuple(tables), **common), DataUser(tuple(tables), plan=plan, key=key)
    guarantee = _guarantee(sharing, relation, key_bits=key.public.bits)
    # Paid before the first party looks at a row.
    _pay(guarantee, plan, ledger=ledger, dataset=dataset, analyst=analyst)
    transcript = run([user, *parties, proxy], protocol="distributed_dp_pca", channel=channel)
    if user.released is None:
        raise InternalError("the data user has nothing.")
    caveats = (*caveats_of(source), *(() if insecure_key_bits_for_tests is None else (SHORT_KEY,)))
    components, variances = _components(user.released, kept)
    return DistributedComponents(
        guarantee=guarantee.with_caveat(*caveats),
        components=components,
        explained_variance=variances,
        mean=user.released.mean,
        n_rows=user.released.count,
        scatter=user.released.scatter,
        noise_deviation=user.released.deviation,
        event=plan.event,
        transcript=transcript,
    )


# Reading parameters --------------------------------------------------------------------------------------------------


def _tables(owners: Any) -> dict[str, Floats]:  # whatever a caller gave
    if isinstance(owners, str | bytes) or not isinstance(owners, Mapping | Sequence):
        raise ParameterTypeError(
            "owners is not a list of tables, or tables by name.", fix='write {"east": rows, "west": rows}.'
        )
    named = owners if isinstance(owners, Mapping) else {f"owner {at}": rows for at, rows in enumerate(owners, 1)}
    if len(named) < 2:
        raise ParameterError("There must be at least two owners.", fix="for rows of one owner use cl.learn.PrivatePCA.")
    if not all(isinstance(name, str) and name and name not in (USER, PROXY) for name in named):
        raise ParameterError(
            f'An owner is a name other than "{USER}" and "{PROXY}".', fix="give each owner a name of its own."
        )
    tables = {name: as_rows(rows, name=name) for name, rows in named.items()}
    if len({rows.shape[1] for rows in tables.values()}) != 1:
        raise ParameterError("Owners have different numbers of columns.", fix="agree on the same columns first.")
    return tables


def _count_components(n_components: int | None, columns: int) -> int:
    if n_components is None:
        return columns
    kept = validation.check_count(n_components, name="n_components", at_least=1)
    if kept > columns:
        raise ParameterError(
            f"There are {columns} columns, so there cannot be {kept} components.",
            fix=f"use n_components of at most {columns}.",
        )
    return kept


def _public_rows(given: Any, *, owners: int, exactly: bool) -> tuple[list[int | None], int | None]:
    """Return how many rows each owner must have, if that is public, and how many there are about."""
    if isinstance(given, Sequence) and not isinstance(given, str):
        sizes = [validation.check_count(size, name="each of public_rows") for size in given]
        if len(sizes) == owners and (sum(sizes) >= 2 or not exactly):
            return (list(sizes) if exactly else [None] * owners), max(sum(sizes), 1)
    elif not exactly:
        about = None if given is None else validation.check_count(given, name="public_rows", at_least=1)
        return [None] * owners, about
    raise ParameterError(
        "public_rows does not say how many rows each owner has, two or more in all.",
        fix='write for example public_rows=[120, 80], or use adjacency="add_remove".',
    )


def _sharing(
    epsilon: Number | None, delta: Number | None, rows: int | None, owners: int, colluding: int, *, exact: bool
) -> NoiseSharing:
    trusted = validation.check_count(colluding, name="max_colluding_owners")
    if exact != (epsilon is None):
        raise ParameterError(
            "Either there is an epsilon, or the run is unsafe_without_noise.",
            fix="give epsilon=1; or, for results that nobody else will see, epsilon=None, unsafe_without_noise=True.",
        )
    if delta is None:
        slack = min(_LARGEST_DELTA, Fraction(1, 10 * (rows or 1)))
    else:
        slack = validation.check_delta(delta, allow_zero=False, rows=rows)
    budget = None if exact else Budget(epsilon=validation.check_epsilon(epsilon), delta=slack)
    return NoiseSharing(budget=budget, owners=owners, colluding=trusted)


def _plan(relation: Adjacency, whole: FixedPoint, *, columns: int, rows: int | None, sharing: NoiseSharing) -> PcaPlan:
    if relation is Adjacency.REPLACE and rows is not None:
        return plan_blinded_scatter(whole=whole, columns=columns, rows=rows, sharing=sharing)
    return plan_moments(whole=whole, columns=columns, sharing=sharing)


def _key(bits: int, insecure_bits: int | None) -> PaillierPrivateKey:
    if insecure_bits is None:
        return PaillierPrivateKey.generate(bits=bits)
    return PaillierPrivateKey.generate(bits=insecure_bits, insecure_for_tests=True)


# Promising and paying ------------------------------------------------------------------------------------------------


def _guarantee(sharing: NoiseSharing, relation: Adjacency, *, key_bits: int) -> Guarantee:
    if sharing.budget is None:
        return NoGuarantee(
            reason="the result is exact: encryption hid the rows on the way, and nothing hides them in it"
        )
    told = "no owner tells" if sharing.colluding == 0 else f"at most {sharing.colluding} of the owners tell"
    assumptions: tuple[str, ...] = (
        "the proxy and the data user do not work together, since together they can read what every owner sends",
        f"{told} the data user the noise that they added",
        "everybody follows the protocol",
        f"nobody breaks Paillier's encryption with {key_bits} bits",
        "data_norm is public",
    )
    if relation is Adjacency.REPLACE:
        assumptions += ("how many rows each owner has is public",)
    budget = sharing.budget
    return ApproxDP(epsilon=budget.amount, delta=budget.delta, adjacency=relation, assumptions=assumptions)


def _pay(guarantee: Guarantee, plan: PcaPlan, *, ledger: Any, dataset: str | None, analyst: str | None) -> None:
    if isinstance(guarantee, ApproxDP) and plan.event is not None:
        pay(guarantee, plan.event, ledger=ledger, dataset=dataset, analyst=analyst, purpose="distributed_dp_pca")
    elif ledger is not None or dataset is not None:
        raise ParameterError(
            "A run without noise cannot be paid for: it has no price.", fix="give an epsilon, or leave the ledger out."
        )


# Computing -----------------------------------------------------------------------------------------------------------


def _components(released: Released, kept: int) -> tuple[Floats, Floats]:
    """Return the first components, each with its largest entry positive, and the variances along them."""
    values, vectors = np.linalg.eigh(released.scatter)
    values, components = values[::-1][:kept], vectors.T[::-1][:kept]
    # Noise alone has a largest eigenvalue of about 2 deviations times sqrt(width). The warning reads only what was
    # released.
    if released.deviation and 2.5 * released.deviation * math.sqrt(len(released.scatter)) > values[0]:
        warnings.warn(
            "There are too few rows for this epsilon: noise alone would show as much variance as the first component.",
            PrivacyParameterWarning,
            stacklevel=3,
        )
    # The sign of an eigenvector is arbitrary: fixing it makes runs comparable.
    largest = components[np.arange(kept), np.abs(components).argmax(axis=1)]
    signed = components * np.where(largest < 0, -1.0, 1.0)[:, None]
    return np.asarray(signed), np.maximum(values, 0.0) / released.count
