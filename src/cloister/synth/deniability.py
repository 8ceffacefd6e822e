"""What plausible deniability, with a threshold that has noise, promises of each released record.

Bindschaedler, Shokri and Gunter (2017): a record y is made from a seed record d, and released only if at least k
records of the data could have made it about as likely, within a factor gamma. With the
threshold k + Lap(1 / epsilon0) the release of one record is (epsilon, delta)-DP with

    epsilon = epsilon0 + ln(1 + gamma / t),    delta = exp(-epsilon0 (k - t))

for every whole t from 1 to k - 1. Without noise on the threshold there is plausible deniability, but no differential
privacy. Each further record that is released costs the same again.
"""

from __future__ import annotations

from cloister.core import exact
from cloister.core.guarantees import Adjacency, ApproxDP
from cloister.core.validation import check_count, check_epsilon, check_positive
from cloister.errors import ParameterError

__all__ = ["plausible_deniability"]


def plausible_deniability(*, epsilon0: object, gamma: object, t: int, k: int) -> ApproxDP:
    """Return what is promised of one released record; several records compose like any other releases.

    Args:
        epsilon0: of the noise on the threshold, which has scale 1 / epsilon0.
        gamma: how much more or less likely another record may have made the released one; above 1.
        t: between 1 and k - 1; any one will do, larger ones have a smaller epsilon and a larger delta.
        k: how many records must be able to have made the released one.

    Returns:
        A guarantee with epsilon and delta rounded up.

    >>> plausible_deniability(epsilon0=1, gamma=2, t=10, k=30).brief()
    'epsilon = 1.18232, delta = 2.06115e-09 per row'
    """
    budget, factor = check_epsilon(epsilon0, name="epsilon0"), check_positive(gamma, name="gamma")
    if factor <= 1:
        raise ParameterError("gamma must be above 1.", fix="use for example gamma=2.")
    many = check_count(k, name="k", at_least=2)
    chosen = check_count(t, name="t", at_least=1)
    if chosen >= many:
        raise ParameterError("t must be below k.", fix=f"use a t from 1 to {many - 1}.")
    # Both numbers are rounded up, so that the promise is never stated too strong.
    return ApproxDP(
        epsilon=budget + exact.log_bounds(1 + factor / chosen)[1],
        delta=exact.exp_bounds(-budget * (many - chosen))[1],
        adjacency=Adjacency.ADD_REMOVE,
        assumptions=("one record is released; each further one costs the same again",),
    )
