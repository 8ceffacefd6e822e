"""Algorithms of outside providers: registered, checked, published, and allowed by owners for their datasets."""

from cloister.hub.services.algorithms.allowing import allow, disallow, list_allowed, list_to_allow
from cloister.hub.services.algorithms.checking import CHECK, start_check
from cloister.hub.services.algorithms.isolating import require_isolation
from cloister.hub.services.algorithms.publishing import OFFERED_STEPS, take_step
from cloister.hub.services.algorithms.reading import describe, describe_version, list_algorithms
from cloister.hub.services.algorithms.registering import Registered, add_version, register
from cloister.hub.services.algorithms.sources import Sources, find_version, full_name, open_sources
from cloister.hub.services.algorithms.usage import usage

__all__ = [
    "CHECK",
    "OFFERED_STEPS",
    "Registered",
    "Sources",
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
