"""Foreign algorithms for tests, with so much wall time that a busy machine does not matter."""

from __future__ import annotations

import re
from pathlib import Path

from cloister.hub.domain.algorithms import Artifact
from cloister.hub.sandbox.folders import k_means, read_folder

HOSTILE = Path(__file__).parents[1] / "hub" / "sandbox" / "hostile"


def with_wall(artifact: Artifact, seconds: float) -> Artifact:
    """Return the same algorithm with another wall time."""
    text = artifact.files["manifest.yaml"].decode()
    changed = re.sub(r"wall_seconds: [\d.]+", f"wall_seconds: {seconds}", text)
    return Artifact.from_files({**artifact.files, "manifest.yaml": changed.encode()})


def unhurried_k_means() -> Artifact:
    """Return the example with a minute for each block."""
    return with_wall(k_means(), 60)


def hostile(*, wall: float = 60) -> Artifact:
    """Return the algorithm that tries what it must not."""
    return with_wall(read_folder(HOSTILE), wall)
