"""Algorithms that outside providers register: what a manifest states, versions, artifacts and states.

Nothing here runs foreign code; `cloister.hub.sandbox` does.
"""

from cloister.hub.domain.algorithms.artifact import Artifact, pack
from cloister.hub.domain.algorithms.manifest import Input, Manifest, Parameter, Resources
from cloister.hub.domain.algorithms.outputs import AlgorithmOutput, Clip, OutputLayout
from cloister.hub.domain.algorithms.privacy import Blocks, PrivacyContract
from cloister.hub.domain.algorithms.versions import (
    Version,
    VersionAllowance,
    VersionState,
    VersionStep,
    next_state,
    require_runnable,
)

__all__ = [
    "AlgorithmOutput",
    "Artifact",
    "Blocks",
    "Clip",
    "Input",
    "Manifest",
    "OutputLayout",
    "Parameter",
    "PrivacyContract",
    "Resources",
    "Version",
    "VersionAllowance",
    "VersionState",
    "VersionStep",
    "next_state",
    "pack",
    "require_runnable",
]
