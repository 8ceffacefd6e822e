"""A random source that gives prepared words, to reach the branches that chance never takes."""

from __future__ import annotations

import numpy as np

from cloister.core.random import Words


class PreparedWords:
    """Gives the prepared words in order, then zeros."""

    is_secure = False

    def __init__(self, *words: int) -> None:
        self._words = list(words)

    def random_bytes(self, count: int) -> bytes:
        return self.words((count + 7) // 8).tobytes()[:count]

    def words(self, count: int) -> Words:
        taken, self._words = self._words[:count], self._words[count:]
        return np.array(taken + [0] * (count - len(taken)), dtype=np.uint64)
