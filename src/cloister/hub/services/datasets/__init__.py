"""Datasets: made, filled, described, opened for questions, found and deleted."""

from cloister.hub.services.datasets.catalogue import describe, list_catalogue, list_own
from cloister.hub.services.datasets.deleting import delete_dataset
from cloister.hub.services.datasets.making import change_dataset, create_dataset
from cloister.hub.services.datasets.modes import adopt_mode, check_mode
from cloister.hub.services.datasets.opening import open_for_questions, open_under_control, raise_budget, set_limit
from cloister.hub.services.datasets.schemas import read_schema, save_schema
from cloister.hub.services.datasets.spending import spending
from cloister.hub.services.datasets.stored import describe_version, newest, stored
from cloister.hub.services.datasets.uploading import FORMATS, upload_version

__all__ = [
    "FORMATS",
    "adopt_mode",
    "change_dataset",
    "check_mode",
    "create_dataset",
    "delete_dataset",
    "describe",
    "describe_version",
    "list_catalogue",
    "list_own",
    "newest",
    "open_for_questions",
    "open_under_control",
    "raise_budget",
    "read_schema",
    "save_schema",
    "set_limit",
    "spending",
    "stored",
    "upload_version",
]
