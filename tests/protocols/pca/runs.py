"""Owners, and runs of which everything is known."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.budget import Budget
from cloister.core.random import RandomSource, random_source
from cloister.crypto.paillier import PaillierPrivateKey
from cloister.protocols import InProcessChannel, Transcript, run
from cloister.protocols.pca._blinded_scatter import BlindedScatterPlan, plan_blinded_scatter
from cloister.protocols.pca._moments import MomentsPlan, plan_moments
from cloister.protocols.pca._parties import DataUser, Owner, Proxy
from cloister.protocols.pca._plans import FixedPoint, NoiseSharing
from cloister.testing import samplers

KEY = PaillierPrivateKey.generate(bits=1024, insecure_for_tests=True)

TOY = ([[1, 2], [3, 4]], [[5, 6]])


def sharing(
    epsilon: Any = None, *, owners: int = 2, delta: Any = Fraction(1, 10**6), colluding: int = 1
) -> NoiseSharing:
    budget = None if epsilon is None else Budget(epsilon=Fraction(epsilon), delta=delta)
    return NoiseSharing(budget=budget, owners=owners, colluding=colluding)


def whole(norm: Any = 8, digits: int | None = 0, columns: int = 2) -> FixedPoint:
    return FixedPoint.of(data_norm=norm, fraction_bits=digits, columns=columns)


def scatter_plan(
    *, rows: int = 3, epsilon: Any = None, fixed: FixedPoint | None = None, columns: int = 2, owners: int = 2
) -> BlindedScatterPlan:
    return plan_blinded_scatter(
        whole=fixed or whole(columns=columns), columns=columns, rows=rows, sharing=sharing(epsilon, owners=owners)
    )


def moments_plan(
    *, epsilon: Any = None, fixed: FixedPoint | None = None, columns: int = 2, owners: int = 2
) -> MomentsPlan:
    return plan_moments(whole=fixed or whole(columns=columns), columns=columns, sharing=sharing(epsilon, owners=owners))


@dataclass
class Run:
    user: DataUser
    transcript: Transcript
    channel: InProcessChannel


def run_plan(plan: Any, tables: Any, *, source: RandomSource | None = None, key: PaillierPrivateKey = KEY) -> Run:
    names = [f"owner {place}" for place in range(len(tables))]
    drawn = random_source(source)
    common: dict[str, Any] = {"plan": plan, "key_bits": key.public.bits, "source": drawn}
    owners = [Owner(name, np.array(rows, dtype=np.float64), **common) for name, rows in zip(names, tables, strict=True)]
    user, channel = DataUser(names, plan=plan, key=key), InProcessChannel()
    transcript = run([user, *owners, Proxy(names, **common)], protocol="test", channel=channel)
    return Run(user, transcript, channel)


def people(rows: int, *, columns: int = 4) -> NDArray[np.float64]:
    """Return rows of norm at most 1, around a mean that is not 0, with variances that differ."""
    spread = np.linspace(0.3, 0.05, columns)
    drawn = np.clip(samplers.gaussian(1, (rows, columns)), -3, 3) * spread + 0.05
    return np.asarray(drawn / max(1.0, float(np.linalg.norm(drawn, axis=1).max())))


def angle(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """Return the largest angle between two subspaces, given by orthonormal rows; exact for small angles."""
    outside = right - (right @ left.T) @ left
    return float(np.linalg.norm(outside, 2))
