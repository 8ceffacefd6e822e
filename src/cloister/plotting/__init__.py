"""Charts of released numbers, as plain Vega-Lite.

Each function takes plain data (labels, numbers, margins of error) and returns a `Figure`. Nothing here reads protected
data, adds noise or spends budget: what is drawn has been released already, and drawing it costs nothing. A chart of
anything else would publish it.

Making a figure needs no other package; turning it into an image needs the extra ``plot``.
"""

from cloister.plotting.bars import bars_with_errors, grouped_bars_with_errors
from cloister.plotting.figure import Figure
from cloister.plotting.grid import heatmap
from cloister.plotting.lines import lines
from cloister.plotting.points import points_with_errors
from cloister.plotting.reliability import reliability_diagram
from cloister.plotting.samples import histogram_of_samples
from cloister.plotting.small import small_shares

__all__ = [
    "Figure",
    "bars_with_errors",
    "grouped_bars_with_errors",
    "heatmap",
    "histogram_of_samples",
    "lines",
    "points_with_errors",
    "reliability_diagram",
    "small_shares",
]
