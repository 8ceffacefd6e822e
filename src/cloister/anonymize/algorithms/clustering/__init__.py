"""Local recoding: classes of rows that are most alike, each released as what its rows have in common.

The loss of a class is minimized directly, in three steps that are described in the modules:

1. cells with at least k rows stay exact; the rows of the others are gathered into classes, cheapest combinations of
   levels first (`_agglomeration`);
2. single rows are exchanged between classes while that lowers the loss (`_exchange`), among them rows that large cells
   can spare: rows with equal quasi-identifiers need not be in the same class;
3. where models beyond k-anonymity are asked for, classes are taken only when they satisfy them, and what is left over
   is merged with the class where it costs least (`_merges`).

The result does not depend on chance or on the order of rows. It is a heuristic: the problem is NP-hard (Meyerson and
Williams 2004).
"""

from cloister.anonymize.algorithms.clustering.algorithm import clustering

__all__ = ["clustering"]
