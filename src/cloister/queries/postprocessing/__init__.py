"""What may be done to released numbers for free: make them plausible, consistent, or closer to the truth.

Every function here is post-processing: it takes numbers that are out already, with public facts such as the scale of
their noise, and never the data. So it costs no budget and the guarantee of the numbers stays what it was. It changes
the error, though: clipping moves small counts upward, shrinkage moves all towards zero, and a margin of error stated
for the numbers before does not cover the numbers after.
"""

from __future__ import annotations

from cloister.queries.postprocessing.consistency import (
    ConsistentTable,
    consistent_table,
    mean_from_histogram,
    nonnegative,
    normalized,
    rounded,
    with_total,
)
from cloister.queries.postprocessing.estimates import (
    CombinedAnswer,
    combine,
    empirical_bayes,
    james_stein,
    posterior_mean,
    shrink_counts,
)

__all__ = [
    "CombinedAnswer",
    "ConsistentTable",
    "combine",
    "consistent_table",
    "empirical_bayes",
    "james_stein",
    "mean_from_histogram",
    "nonnegative",
    "normalized",
    "posterior_mean",
    "rounded",
    "shrink_counts",
    "with_total",
]
