"""Attacks that a custodian runs on their own releases before somebody else does, and audits of privacy claims.

Every attack reports success, a naive baseline and a confidence interval. None proves safety: it says what was tried.
"""

from __future__ import annotations

from cloister.attacks.auditing.audit import audit_dp
from cloister.attacks.auditing.audit_result import AuditResult
from cloister.attacks.auditing.exact_check import Counterexample
from cloister.attacks.interfaces.averaging import AveragingResult, averaging
from cloister.attacks.interfaces.census_reconstruction import (
    CensusReconstructionResult,
    Published,
    census_reconstruction,
)
from cloister.attacks.interfaces.compromised_records import CompromisedRecordsResult, compromised_records
from cloister.attacks.interfaces.differencing import differencing, value_of_newcomer
from cloister.attacks.interfaces.extremes import extremes, extremes_by_counting
from cloister.attacks.interfaces.model_difference import ModelDifferenceResult, model_difference
from cloister.attacks.interfaces.reconstruction import ReconstructionResult, reconstruction
from cloister.attacks.interfaces.scoring import InterfaceAttackResult
from cloister.attacks.interfaces.tracker import individual_tracker, tracker
from cloister.attacks.result import AttackResult

__all__ = [
    "AttackResult",
    "AuditResult",
    "AveragingResult",
    "CensusReconstructionResult",
    "CompromisedRecordsResult",
    "Counterexample",
    "InterfaceAttackResult",
    "ModelDifferenceResult",
    "Published",
    "ReconstructionResult",
    "audit_dp",
    "averaging",
    "census_reconstruction",
    "compromised_records",
    "differencing",
    "extremes",
    "extremes_by_counting",
    "individual_tracker",
    "model_difference",
    "reconstruction",
    "tracker",
    "value_of_newcomer",
]
