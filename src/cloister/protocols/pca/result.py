"""What a distributed PCA returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from cloister.accounting.events import Event
from cloister.core.result import Result
from cloister.core.whole_rows import Floats
from cloister.errors import ParameterError
from cloister.plotting import Figure
from cloister.protocols.transcripts import Transcript

__all__ = ["DistributedComponents"]


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
