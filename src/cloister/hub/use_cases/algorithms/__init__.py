"""Algorithms of outside providers: registered, checked, published, and allowed by owners for their datasets."""

from cloister.hub.use_cases.algorithms.allowances import allow, disallow, list_allowed, list_to_allow
from cloister.hub.use_cases.algorithms.catalogue import describe, describe_version, list_algorithms, usage
from cloister.hub.use_cases.algorithms.registration import Registered, add_version, register
from cloister.hub.use_cases.algorithms.sandbox_checks import CHECK, require_isolation, start_check
from cloister.hub.use_cases.algorithms.versions import (
    OFFERED_STEPS,
    AlgorithmSources,
    find_version,
    full_name,
    open_sources,
    take_step,
)

__all__ = [
    "CHECK",
    "OFFERED_STEPS",
    "AlgorithmSources",
    "Registered",
    "add_version",
    "allow",
    "describe",
    "describe_version",
    "disallow",
    "find_version",
    "full_name",
    "list_algorithms",
    "list_allowed",
    "list_to_allow",
    "open_sources",
    "register",
    "require_isolation",
    "start_check",
    "take_step",
    "usage",
]
