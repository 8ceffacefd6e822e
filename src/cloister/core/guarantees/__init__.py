"""Guarantees as values: what is promised, to whom, under which assumptions, and what would break it.

A guarantee is frozen, knows its numbers exactly, and explains itself in one sentence. It does not know the object
that produced it: composition and the ledger work on guarantees and events alone.
"""

from cloister.core.guarantees.base import (
    DATA_DEPENDENT_BOUNDS,
    GUESSED_SCHEMA,
    IDEALIZED_FLOATS,
    SEEDED_RANDOMNESS,
    Adjacency,
    Caveat,
    Guarantee,
)
from cloister.core.guarantees.composite import AllOf, NoGuarantee, guarantee_from_dict
from cloister.core.guarantees.differential import (
    ApproxDP,
    DifferentialPrivacy,
    LocalDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from cloister.core.guarantees.syntactic import (
    AlphaKAnonymity,
    BetaLikeness,
    DeltaPresence,
    KAnonymity,
    KMap,
    LDiversity,
    PSensitivity,
    Syntactic,
    TCloseness,
)

__all__ = [
    "DATA_DEPENDENT_BOUNDS",
    "GUESSED_SCHEMA",
    "IDEALIZED_FLOATS",
    "SEEDED_RANDOMNESS",
    "Adjacency",
    "AllOf",
    "AlphaKAnonymity",
    "ApproxDP",
    "BetaLikeness",
    "Caveat",
    "DeltaPresence",
    "DifferentialPrivacy",
    "Guarantee",
    "KAnonymity",
    "KMap",
    "LDiversity",
    "LocalDP",
    "NoGuarantee",
    "PSensitivity",
    "PureDP",
    "RenyiDP",
    "Syntactic",
    "TCloseness",
    "ZeroConcentratedDP",
    "guarantee_from_dict",
]
