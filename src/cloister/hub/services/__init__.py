"""Services: what a user runs on data. Importing this package fills the registry of services."""

from __future__ import annotations

from cloister.hub.services import (
    anonymization,
    inference_control,
    learning,
    outside_algorithms,
    queries,
    risk,
    synthesis,
)
from cloister.hub.services.registry import service_registry

__all__ = [
    "anonymization",
    "inference_control",
    "learning",
    "outside_algorithms",
    "queries",
    "risk",
    "service_registry",
    "synthesis",
]
