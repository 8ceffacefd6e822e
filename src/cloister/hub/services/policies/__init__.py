"""Policies of datasets: read, explained, changed and kept as versions that nobody can change."""

from cloister.hub.services.policies.checking import check_fits, check_mode
from cloister.hub.services.policies.editing import (
    TEMPLATE_NAMES,
    add_member,
    change_policy,
    remove_person,
    save_policy,
    start_from_template,
)
from cloister.hub.services.policies.keeping import keep, newest
from cloister.hub.services.policies.reading import list_versions, read_policy, read_version
from cloister.hub.services.policies.standing import explain_to_owner, may_i, standing

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
