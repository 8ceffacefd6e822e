"""Attacks that a custodian runs on their own releases before somebody else does, and audits of privacy claims.

Every attack reports success, a naive baseline and a confidence interval. None proves safety: it says what was tried.
"""

from __future__ import annotations

from cloister.attacks.anatomy.attack import anatomy_definetti, anatomy_em
from cloister.attacks.anatomy.result import AnatomyAttackResult
from cloister.attacks.auditing.audit import audit_dp
from cloister.attacks.auditing.audit_result import AuditResult
from cloister.attacks.auditing.canaries import (
    audit_estimator_once,
    audit_mechanism_once,
    audit_queries_once,
    audit_synthesizer_once,
)
from cloister.attacks.auditing.everything import AuditsOfEverything, audit_everything
from cloister.attacks.auditing.exact_check import Counterexample
from cloister.attacks.auditing.one_run import OneRunResult, audit_one_run
from cloister.attacks.calibration import Calibration, calibration_of, coverage_of
from cloister.attacks.encryption.frequency_analysis import frequency_analysis
from cloister.attacks.encryption.order_analysis import cumulative_attack, sorting_attack
from cloister.attacks.encryption.result import EncryptionAttackResult
from cloister.attacks.encryption.volume_analysis import volume_attack
from cloister.attacks.gating.deciding import gate
from cloister.attacks.gating.findings import Finding, GateResult
from cloister.attacks.gating.policy import GatePolicy
from cloister.attacks.graphs.node_identification import NodeIdentificationResult, node_identification
from cloister.attacks.graphs.trajectory_uniqueness import TrajectoryUniquenessResult, trajectory_uniqueness
from cloister.attacks.integrity.evasion import evasion
from cloister.attacks.integrity.poisoning import poisoning
from cloister.attacks.integrity.result import RobustnessPoint, RobustnessResult
from cloister.attacks.integrity.sanitizing import agreeing_rows
from cloister.attacks.integrity.transfer import TransferResult, transferability
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
from cloister.attacks.models.attribute import AttributeInferenceResult, attribute_inference
from cloister.attacks.models.extraction import model_extraction
from cloister.attacks.models.extraction_result import ExtractionResult
from cloister.attacks.models.gradients import GradientLeakageResult, gradient_leakage
from cloister.attacks.models.inversion import InversionResult, model_inversion
from cloister.attacks.models.membership import membership
from cloister.attacks.models.membership_result import MembershipResult
from cloister.attacks.models.stored import StoredRecordsResult, stored_records
from cloister.attacks.recalibration import Recalibration, recalibrate
from cloister.attacks.result import AttackResult
from cloister.attacks.synthetic.closest import DistanceResult, distance_to_closest_record
from cloister.attacks.synthetic.inference import synthetic_inference
from cloister.attacks.synthetic.linkability import synthetic_linkability
from cloister.attacks.synthetic.membership import SyntheticMembershipResult, synthetic_membership
from cloister.attacks.synthetic.result import SyntheticAttackResult
from cloister.attacks.synthetic.singling_out import synthetic_singling_out
from cloister.attacks.tables.background import background_knowledge
from cloister.attacks.tables.databases import CorrelationResult, IdentificationResult, correlation, identification
from cloister.attacks.tables.dictionary import DictionaryResult, dictionary, digit_pattern
from cloister.attacks.tables.disclosure_result import DisclosureResult
from cloister.attacks.tables.homogeneity import homogeneity, similarity
from cloister.attacks.tables.inference import probabilistic_inference, skewness
from cloister.attacks.tables.intersection import IntersectionResult, intersection
from cloister.attacks.tables.linkage import LinkageResult, linkage
from cloister.attacks.tables.minimality import MinimalityResult, minimality, posterior_of_groups
from cloister.attacks.tables.repeated import pram_intersection, republication
from cloister.attacks.tables.singling_out import SinglingOutResult, singling_out
from cloister.attacks.tables.sparse_linkage import SparseLinkageResult, sparse_linkage
from cloister.attacks.tables.table_membership import TableMembershipResult, table_membership
from cloister.attacks.tables.text_similarity import jaro_winkler
from cloister.attacks.tables.uniqueness import UniquenessResult, identifying_columns, uniqueness

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
    "Finding",
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
