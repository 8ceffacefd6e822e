"""The bug zoo: small mechanisms that are plainly broken, as published, each beside its corrected twin.

A checker that refutes the whole zoo and passes every twin can be trusted a little; one that refutes everything, or
nothing, is worthless. References E.. and L.. number the errors found in the literature that cloister was built from;
the sentence of each exhibit says where the mistake was printed.
"""

from __future__ import annotations

from cloister.testing.zoo.additive import ADDITIVE
from cloister.testing.zoo.exhibit import Exhibit, Way
from cloister.testing.zoo.local import LOCAL
from cloister.testing.zoo.queries import QUERIES, SELECTION

__all__ = ["EXHIBITS", "Exhibit", "Way"]

EXHIBITS: tuple[Exhibit, ...] = (*LOCAL, *ADDITIVE, *QUERIES, *SELECTION)
"""Every exhibit."""
