"""Attacks that a custodian runs on their own releases before somebody else does, and audits of privacy claims.

Every attack reports success, a naive baseline and a confidence interval. None proves safety: it says what was tried.
"""

from __future__ import annotations

from cloister.attacks.anatomy.anatomy_result import AnatomyAttackResult
from cloister.attacks.anatomy.attack import anatomy_definetti, anatomy_em
from cloister.attacks.auditing.audit_dp import AuditResult, audit_dp
from cloister.attacks.auditing.canaries import (
    audit_estimator_once,
    audit_mechanism_once,
    audit_queries_once,
    audit_synthesizer_once,
)
from cloister.attacks.auditing.exact_check import Counterexample
from cloister.attacks.auditing.one_run import OneRunResult, audit_one_run
from cloister.attacks.auditing.registry_audit import AuditsOfEverything, audit_everything
from cloister.attacks.calibration import Calibration, Recalibration, calibration_of, coverage_of, recalibrate
from cloister.attacks.encryption import (
    EncryptionAttackResult,
    cumulative_attack,
    frequency_analysis,
    sorting_attack,
    volume_attack,
)
from cloister.attacks.gating.decide import gate
from cloister.attacks.gating.findings import GateFinding, GateResult
from cloister.attacks.gating.policy import GatePolicy
from cloister.attacks.graphs import NodeIdentificationResult, node_identification
from cloister.attacks.integrity.evasion import evasion
from cloister.attacks.integrity.poisoning import agreeing_rows, poisoning
from cloister.attacks.integrity.robustness import RobustnessPoint, RobustnessResult
from cloister.attacks.integrity.transferability import TransferResult, transferability
from cloister.attacks.interfaces.census_reconstruction import (
    CensusReconstructionResult,
    Published,
    census_reconstruction,
)
from cloister.attacks.interfaces.compromised_records import CompromisedRecordsResult, compromised_records
from cloister.attacks.interfaces.differences import (
    ModelDifferenceResult,
    differencing,
    model_difference,
    value_of_newcomer,
)
from cloister.attacks.interfaces.extremes import extremes, extremes_by_counting
from cloister.attacks.interfaces.query_interface import InterfaceAttackResult
from cloister.attacks.interfaces.reconstruction import ReconstructionResult, reconstruction
from cloister.attacks.interfaces.repeated_questions import AveragingResult, averaging
from cloister.attacks.interfaces.tracker import individual_tracker, tracker
from cloister.attacks.local_reports import LocalReportsResult, guess_from_reports
from cloister.attacks.models.attribute_inference import AttributeInferenceResult, attribute_inference
from cloister.attacks.models.extraction import ExtractionResult, model_extraction
from cloister.attacks.models.gradient_leakage import GradientLeakageResult, gradient_leakage
from cloister.attacks.models.inversion import InversionResult, model_inversion
from cloister.attacks.models.membership import MembershipResult, membership
from cloister.attacks.models.stored_records import StoredRecordsResult, stored_records
from cloister.attacks.result import AttackResult
from cloister.attacks.synthetic.base import SyntheticAttackResult
from cloister.attacks.synthetic.closest_records import DistanceResult, distance_to_closest_record
from cloister.attacks.synthetic.inference import synthetic_inference
from cloister.attacks.synthetic.linkability import synthetic_linkability
from cloister.attacks.synthetic.membership import SyntheticMembershipResult, synthetic_membership
from cloister.attacks.synthetic.singling_out import synthetic_singling_out
from cloister.attacks.tables.dictionary import DictionaryResult, dictionary, digit_pattern
from cloister.attacks.tables.disclosure import DisclosureResult
from cloister.attacks.tables.homogeneity import homogeneity, similarity
from cloister.attacks.tables.inference import background_knowledge, probabilistic_inference, skewness
from cloister.attacks.tables.intersection import IntersectionResult, intersection, pram_intersection, republication
from cloister.attacks.tables.linkage import LinkageResult, linkage
from cloister.attacks.tables.linked_databases import (
    CorrelationResult,
    IdentificationResult,
    correlation,
    identification,
)
from cloister.attacks.tables.minimality import MinimalityResult, minimality, posterior_of_groups
from cloister.attacks.tables.probabilistic_linkage import jaro_winkler
from cloister.attacks.tables.singling_out import SinglingOutResult, singling_out
from cloister.attacks.tables.sparse_linkage import SparseLinkageResult, sparse_linkage
from cloister.attacks.tables.table_membership import TableMembershipResult, table_membership
from cloister.attacks.tables.uniqueness import UniquenessResult, identifying_columns, uniqueness
from cloister.attacks.trajectories import TrajectoryUniquenessResult, trajectory_uniqueness

__all__ = [
    "AnatomyAttackResult",
    "AttackResult",
    "AttributeInferenceResult",
    "AuditResult",
    "AuditsOfEverything",
    "AveragingResult",
    "Calibration",
    "CensusReconstructionResult",
    "CompromisedRecordsResult",
    "CorrelationResult",
    "Counterexample",
    "DictionaryResult",
    "DisclosureResult",
    "DistanceResult",
    "EncryptionAttackResult",
    "ExtractionResult",
    "GateFinding",
    "GatePolicy",
    "GateResult",
    "GradientLeakageResult",
    "IdentificationResult",
    "InterfaceAttackResult",
    "IntersectionResult",
    "InversionResult",
    "LinkageResult",
    "LocalReportsResult",
    "MembershipResult",
    "MinimalityResult",
    "ModelDifferenceResult",
    "NodeIdentificationResult",
    "OneRunResult",
    "Published",
    "Recalibration",
    "ReconstructionResult",
    "RobustnessPoint",
    "RobustnessResult",
    "SinglingOutResult",
    "SparseLinkageResult",
    "StoredRecordsResult",
    "SyntheticAttackResult",
    "SyntheticMembershipResult",
    "TableMembershipResult",
    "TrajectoryUniquenessResult",
    "TransferResult",
    "UniquenessResult",
    "agreeing_rows",
    "anatomy_definetti",
    "anatomy_em",
    "attribute_inference",
    "audit_dp",
    "audit_estimator_once",
    "audit_everything",
    "audit_mechanism_once",
    "audit_one_run",
    "audit_queries_once",
    "audit_synthesizer_once",
    "averaging",
    "background_knowledge",
    "calibration_of",
    "census_reconstruction",
    "compromised_records",
    "correlation",
    "coverage_of",
    "cumulative_attack",
    "dictionary",
    "differencing",
    "digit_pattern",
    "distance_to_closest_record",
    "evasion",
    "extremes",
    "extremes_by_counting",
    "frequency_analysis",
    "gate",
    "gradient_leakage",
    "guess_from_reports",
    "homogeneity",
    "identification",
    "identifying_columns",
    "individual_tracker",
    "intersection",
    "jaro_winkler",
    "linkage",
    "membership",
    "minimality",
    "model_difference",
    "model_extraction",
    "model_inversion",
    "node_identification",
    "poisoning",
    "posterior_of_groups",
    "pram_intersection",
    "probabilistic_inference",
    "recalibrate",
    "reconstruction",
    "republication",
    "similarity",
    "singling_out",
    "skewness",
    "sorting_attack",
    "sparse_linkage",
    "stored_records",
    "synthetic_inference",
    "synthetic_linkability",
    "synthetic_membership",
    "synthetic_singling_out",
    "table_membership",
    "tracker",
    "trajectory_uniqueness",
    "transferability",
    "uniqueness",
    "value_of_newcomer",
    "volume_attack",
]
