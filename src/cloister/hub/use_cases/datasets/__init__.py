"""Datasets: made, filled, described, opened for questions, found and deleted."""

from cloister.hub.use_cases.datasets.budgets import (
    open_for_questions,
    open_under_control,
    raise_budget,
    set_limit,
    spending,
)
from cloister.hub.use_cases.datasets.catalogue import describe, list_catalogue, list_own
from cloister.hub.use_cases.datasets.lifecycle import (
    change_dataset,
    create_dataset,
    delete_dataset,
    describe_version,
    get_dataset,
    get_newest_version,
)
from cloister.hub.use_cases.datasets.modes import adopt_mode, check_mode
from cloister.hub.use_cases.datasets.versions import FORMATS, read_schema, save_schema, upload_version

__all__ = [
    "FORMATS",
    "adopt_mode",
    "change_dataset",
    "check_mode",
    "create_dataset",
    "delete_dataset",
    "describe",
    "describe_version",
    "get_dataset",
    "get_newest_version",
    "list_catalogue",
    "list_own",
    "open_for_questions",
    "open_under_control",
    "raise_budget",
    "read_schema",
    "save_schema",
    "set_limit",
    "spending",
    "upload_version",
]
