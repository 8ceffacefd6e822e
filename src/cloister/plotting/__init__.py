"""Charts of released numbers, as plain Vega-Lite.

Each function takes plain data (labels, numbers, margins of error) and returns a `Figure`. Nothing here reads protected
data, adds noise or spends budget: what is drawn has been released already, and drawing it costs nothing. A chart of
anything else would publish it.

Making a figure needs no other package; turning it into an image needs the extra ``plot``.
"""

from cloister.plotting.bars import bars_with_errors, grouped_bars_with_errors, points_with_errors, small_shares
from cloister.plotting.figure import Figure
from cloister.plotting.heatmaps import heatmap
from cloister.plotting.histograms import histogram_of_samples
from cloister.plotting.lines import lines, reliability_diagram

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
