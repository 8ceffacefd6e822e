"""Algorithms that outside providers register: what a manifest states, versions, artifacts and states.

Nothing here runs foreign code; `cloister.hub.sandbox` does.
"""

from cloister.hub.domain.algorithms.artifact import Artifact, pack
from cloister.hub.domain.algorithms.manifest import Input, Manifest, Resources
from cloister.hub.domain.algorithms.outputs import Clip, Layout, Output
from cloister.hub.domain.algorithms.parameters import Parameter
from cloister.hub.domain.algorithms.privacy import Blocks, PrivacyContract
from cloister.hub.domain.algorithms.states import Allowance, State, Step, after, require_runnable
from cloister.hub.domain.algorithms.versions import Version

__all__ = [
    "Allowance",
    "Artifact",
    "Blocks",
    "Clip",
    "Input",
    "Layout",
    "Manifest",
    "Output",
    "Parameter",
    "PrivacyContract",
    "Resources",
    "State",
    "Step",
    "Version",
    "after",
    "pack",
    "require_runnable",
]
