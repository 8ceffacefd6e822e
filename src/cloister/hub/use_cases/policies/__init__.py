"""Policies of datasets: read, explained, changed and kept as versions that nobody can change."""

from cloister.hub.use_cases.datasets.modes import check_mode
from cloister.hub.use_cases.policies.editor import (
    TEMPLATE_NAMES,
    add_member,
    change_policy,
    list_versions,
    read_policy,
    read_version,
    remove_person,
    save_policy,
    start_from_template,
)
from cloister.hub.use_cases.policies.permissions import explain_to_owner, may_i, standing
from cloister.hub.use_cases.policies.policy_versions import check_fits, keep, newest

__all__ = [
    "TEMPLATE_NAMES",
    "add_member",
    "change_policy",
    "check_fits",
    "check_mode",
    "explain_to_owner",
    "keep",
    "list_versions",
    "may_i",
    "newest",
    "read_policy",
    "read_version",
    "remove_person",
    "save_policy",
    "standing",
    "start_from_template",
]
