"""Reading an unpacked artifact from a folder, and the algorithms that come with cloister."""

from __future__ import annotations

from pathlib import Path

from cloister.errors import ArtifactError, SourceNotFoundError
from cloister.hub import examples
from cloister.hub.domain.algorithms import Artifact

_SKIPPED = {"__pycache__"}

_NOTHING = """
schema: cloister.algorithm/1
id: nothing
version: 1.0.0
title: Nothing
author: cloister
license: Apache-2.0
entrypoint: nothing:give
inputs: {column: {kind: numeric}}
outputs: {zero: {shape: [], bounds: [0, 1]}}
privacy: {contract: sample_and_aggregate}
"""


def read_folder(folder: str | Path) -> Artifact:
    """Return the artifact whose files are in a folder.

    Raises:
        SourceNotFoundError: if there is no such folder.
        ArtifactError: if a file is a link, or is not allowed in an artifact.
    """
    base = Path(folder)
    if not base.is_dir():
        raise SourceNotFoundError("There is no such folder.", fix="give the folder that holds manifest.yaml.")
    found = [path for path in sorted(base.rglob("*")) if not _SKIPPED & set(path.relative_to(base).parts)]
    if any(path.is_symlink() for path in found):
        raise ArtifactError("The folder holds a link.", fix="put plain files only into it.")
    return Artifact.from_files(
        {path.relative_to(base).as_posix(): path.read_bytes() for path in found if path.is_file()}
    )


def k_means() -> Artifact:
    """Return the example algorithm: centers of groups."""
    return read_folder(Path(examples.__file__).parent / "k_means")


def nothing() -> Artifact:
    """Return an algorithm that does nothing, for trying the walls."""
    code = b'def give(inputs, parameters, bounds):\n    return {"zero": 0}\n'
    return Artifact.from_files({"manifest.yaml": _NOTHING.encode(), "nothing.py": code})
