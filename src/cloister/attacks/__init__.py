"""Attacks that a custodian runs on their own releases before somebody else does, and audits of privacy claims.

Every attack reports success, a naive baseline and a confidence interval. None proves safety: it says what was tried.
"""

from __future__ import annotations

from cloister.attacks.auditing.audit import audit_dp
from cloister.attacks.auditing.audit_result import AuditResult
from cloister.attacks.auditing.exact_check import Counterexample
from cloister.attacks.encryption.frequency_analysis import frequency_analysis
from cloister.attacks.encryption.order_analysis import cumulative_attack, sorting_attack
from cloister.attacks.encryption.result import EncryptionAttackResult
from cloister.attacks.encryption.volume_analysis import volume_attack
from cloister.attacks.graphs.node_identification import NodeIdentificationResult, node_identification
from cloister.attacks.graphs.trajectory_uniqueness import TrajectoryUniquenessResult, trajectory_uniqueness
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
from cloister.attacks.local_reports.guessing import LocalReportsResult, guess_from_reports
from cloister.attacks.result import AttackResult

__all__ = [
    "AttackResult",
    "AuditResult",
    "AveragingResult",
    "CensusReconstructionResult",
    "CompromisedRecordsResult",
    "Counterexample",
    "EncryptionAttackResult",
    "InterfaceAttackResult",
    "LocalReportsResult",
    "ModelDifferenceResult",
    "NodeIdentificationResult",
    "Published",
    "ReconstructionResult",
    "TrajectoryUniquenessResult",
    "audit_dp",
    "averaging",
    "census_reconstruction",
    "compromised_records",
    "cumulative_attack",
    "differencing",
    "extremes",
    "extremes_by_counting",
    "frequency_analysis",
    "guess_from_reports",
    "individual_tracker",
    "model_difference",
    "node_identification",
    "reconstruction",
    "sorting_attack",
    "tracker",
    "trajectory_uniqueness",
    "value_of_newcomer",
    "volume_attack",
]
