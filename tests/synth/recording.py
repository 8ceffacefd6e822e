"""What a fit lets out: every call of noise with its exact numbers, recorded so that it can be drawn again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cloister.attacks import audit_dp
from cloister.core.random import random_source
from cloister.mechanisms.step_noise import LaplaceSteps

Release = tuple[LaplaceSteps, Any]


def recorded(fit: Callable[[], object]) -> list[Release]:
    """Return the noise and the exact numbers of each release of a fit without choices on the way."""
    found: list[Release] = []
    add = LaplaceSteps.add

    def recording(self: LaplaceSteps, values: Any, source: Any) -> Any:
        found.append((self, values.ravel().copy()))
        return add(self, values, source)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LaplaceSteps, "add", recording)
        fit()
    return found


def check_audit(fit: Callable[[Any, float], object], neighbors: tuple[Any, Any], *, samples: int = 40_000) -> None:
    """Raise unless a claim of epsilon 1 stands, and half of the noise is refuted.

    Args:
        fit: fits a table with an epsilon.
        neighbors: two tables.
        samples: how often everything that a fit releases is drawn again.
    """
    for noise_epsilon, confidence, verdict in ((1, 1 - 1e-9, "not refuted"), (2, 0.999, "refuted")):
        releases = {id(part): recorded(lambda part=part, e=noise_epsilon: fit(part, e)) for part in neighbors}
        here, there = (np.concatenate([values for _, values in releases[id(part)]]) for part in neighbors)
        scales = np.concatenate(
            [np.full(values.size, float(noise.scale)) for noise, values in releases[id(neighbors[0])]]
        )

        def drawn(part: Any, size: int, releases: Any = releases) -> Any:
            columns = [
                noise.add(np.tile(values, size), random_source()).reshape(size, -1)
                for noise, values in releases[id(part)]
            ]
            return np.concatenate(columns, axis=1)

        def evidence(outputs: Any, here: Any = here, there: Any = there, scales: Any = scales) -> Any:
            numbers = np.asarray(outputs, dtype=np.float64)
            return ((np.abs(numbers - there) - np.abs(numbers - here)) / scales).sum(axis=1).round(6)

        found = audit_dp(
            drawn,
            neighbors,
            epsilon=1,
            samples=samples,
            confidence=confidence,
            mode="statistical",
            vectorized=True,
            features={"evidence": evidence},
        )
        assert found.outcome == verdict, found
