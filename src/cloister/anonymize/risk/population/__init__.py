"""Estimates about the population from a sample of it."""

from __future__ import annotations

from cloister.anonymize.risk.population.estimate import PopulationRisk, estimate_population

__all__ = ["PopulationRisk", "estimate_population"]
