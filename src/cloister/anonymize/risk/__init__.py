"""What an attacker can learn from a table: who is who, and what is true of them."""

from __future__ import annotations

from cloister.anonymize.risk.attained_models import AttainedModels, AttainedValues
from cloister.anonymize.risk.disclosure_risk import Disclosure, Reidentification, Risk
from cloister.anonymize.risk.population import PopulationRisk, estimate_population
from cloister.anonymize.risk.safe_harbor import SafeHarborItem, safe_harbor

__all__ = [
    "AttainedModels",
    "AttainedValues",
    "Disclosure",
    "PopulationRisk",
    "Reidentification",
    "Risk",
    "SafeHarborItem",
    "estimate_population",
    "safe_harbor",
]
