"""Histograms of simulated draws, which show how far noise spreads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cloister.core import validation
from cloister.core.wordings import percent
from cloister.errors import ParameterError, ParameterTypeError
from cloister.plotting import _style as style, inputs
from cloister.plotting._style import Spec
from cloister.plotting.figure import Figure
from cloister.plotting.inputs import Items


def histogram_of_samples(
    samples: Mapping[str, Items],
    *,
    title: str,
    x: str,
    y: str = "Share of draws",
    legend: str = "",
    subtitle: str = "",
    bins: int = 40,
    bounds: tuple[object, object] | None = None,
) -> Figure:
    """Return the histograms of several named samples, one over the other, with the same bins.

    Whole numbers get bins of whole width, so that no bin holds more of them than its neighbor by accident.

    Args:
        samples: per name the draws; missing ones are left out.
        title: what the chart shows.
        x: the title of the axis with the draws.
        y: the title of the axis with the shares.
        legend: the title of the names.
        subtitle: for example "10,000 draws each".
        bins: about how many bins.
        bounds: (low, high) of the part to show; draws outside still count in the shares.
    """
    draws = _draws(samples)
    edges = _edges(draws, bins=validation.check_count(bins, name="bins", at_least=1), bounds=bounds)
    rows = [row for name, found in draws.items() for row in _outline(name, found, edges)]
    shares = style.quantity([1.0], title=y)
    shares["axis"]["format"] = "~%"
    encoding = {
        "x": {**style.quantity(edges.tolist(), title=x, zero=False, nice=False), "field": "x"},
        "y": {**shares, "field": "share", "stack": None},
        "color": style.colors(list(draws), title=legend, legend=len(draws) > 1),
        "tooltip": style.tooltip(series=legend, reads=y),
    }
    outline = {"strokeWidth": 1.8, "interpolate": "step-after"}
    mark = {"type": "area", "interpolate": "step-after", "fillOpacity": 0.25, "line": outline}
    return style.assemble({"mark": mark, "encoding": encoding}, rows=rows, title=title, subtitle=subtitle)


def _draws(samples: Mapping[str, Items]) -> dict[str, NDArray[np.float64]]:
    if not isinstance(samples, Mapping):
        raise ParameterTypeError(
            "samples is not a mapping.", fix='give names with their draws: {"epsilon = 0.1": [...]}.'
        )
    names = inputs.distinct_labels(samples, name="samples")
    if not names:
        raise ParameterError("There is nothing to draw: samples is empty.", fix="give at least one named sample.")
    return {name: _array(found) for name, found in zip(names, samples.values(), strict=True)}


def _array(found: Items) -> NDArray[np.float64]:
    """Return draws as an array; arrays of numbers, which are long, are not taken apart."""
    if isinstance(found, np.ndarray) and found.ndim == 1 and found.dtype.kind in "iuf":
        array: NDArray[np.float64] = found[~np.isnan(found)].astype(np.float64)
    else:
        array = np.array(inputs.present(inputs.numbers(found, name="samples")), dtype=np.float64)
    if not array.size:
        raise ParameterError("There is nothing to draw: a sample is empty.", fix="give at least one draw per name.")
    if np.isinf(array).any():
        raise ParameterError("samples holds an infinite number.", fix="leave infinite draws out.")
    return array


def _edges(
    draws: dict[str, NDArray[np.float64]], *, bins: int, bounds: tuple[object, object] | None
) -> NDArray[np.float64]:
    low, high = min(found.min() for found in draws.values()), max(found.max() for found in draws.values())
    if bounds is not None:
        low, high = (float(end) for end in validation.check_bounds(bounds))
    if all((found == np.rint(found)).all() for found in draws.values()) and high - low < 2**50:
        width = max(1, int(np.ceil((high - low + 1) / bins)))
        return np.arange(np.floor(low), high + width + 0.5, width) - 0.5
    spread = high - low or max(abs(low), 1.0) * 1e-3
    middle = low + (high - low) / 2
    return np.linspace(middle - spread / 2, middle + spread / 2, bins + 1)


def _outline(name: str, found: NDArray[np.float64], edges: NDArray[np.float64]) -> list[Spec]:
    """Return the steps of a histogram; the last edge repeats the last height to close it."""
    counts, _ = np.histogram(found, edges)
    shares = counts / found.size
    return [
        {"series": name, "x": edge, "share": share, "reads": percent(share)}
        for edge, share in zip(edges.tolist(), [*shares.tolist(), float(shares[-1])], strict=True)
    ]
