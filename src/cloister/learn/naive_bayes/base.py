"""What naive Bayes models have in common: scores that are logarithms of probabilities, up to a constant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cloister.learn.base import PrivateClassifier
from cloister.learn.rows import Floats

__all__ = ["PrivateNaiveBayes"]


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateNaiveBayes(PrivateClassifier):
    """The base of naive Bayes models."""

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of the probability of each class, for each row; costs nothing."""
        from scipy.special import logsumexp

        scores = self._scores(self._encoded(X))
        return np.asarray(scores - logsumexp(scores, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, for each row; costs nothing."""
        return np.exp(self.predict_log_proba(X))
