"""Full-domain anonymization: the best of all generalizations with one level per quasi-identifier."""

from cloister.anonymize.algorithms.lattice.nodes import DEFAULT_NODE_LIMIT, GeneralizationLattice
from cloister.anonymize.algorithms.lattice.optimal import optimal

__all__ = ["DEFAULT_NODE_LIMIT", "GeneralizationLattice", "optimal"]
