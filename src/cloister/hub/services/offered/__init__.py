"""Everything that this hub offers: importing this package fills the registry of services."""

from cloister.hub.services.offered import controlled, foreign, learning, queries, releases, risk, synthesis, trying
from cloister.hub.services.registry import algorithms

__all__ = ["algorithms", "controlled", "foreign", "learning", "queries", "releases", "risk", "synthesis", "trying"]
