"""Attacks that a custodian runs on their own releases before somebody else does, and audits of privacy claims.

Every attack reports success, a naive baseline and a confidence interval. None proves safety: it says what was tried.
"""

from __future__ import annotations

from cloister.attacks.anatomy.anatomy_details import AnatomyDetails
from cloister.attacks.anatomy.attack import anatomy_definetti, anatomy_em
from cloister.attacks.auditing.audit_dp import AuditDetails, audit_dp
from cloister.attacks.auditing.canaries import (
    audit_estimator_once,
    audit_mechanism_once,
    audit_queries_once,
    audit_synthesizer_once,
)
from cloister.attacks.auditing.exact_check import Counterexample
from cloister.attacks.auditing.one_run import OneRunDetails, audit_one_run
from cloister.attacks.auditing.registry_audit import AuditsOfEverything, audit_everything
from cloister.attacks.calibration import Calibration, Recalibration, calibration_of, coverage_of, recalibrate
from cloister.attacks.details import AttackDetails
from cloister.attacks.encryption import (
    EncryptionDetails,
    cumulative_attack,
    frequency_analysis,
    sorting_attack,
    volume_attack,
)
from cloister.attacks.gating.decide import gate
from cloister.attacks.gating.findings import GateFinding, GateResult
from cloister.attacks.gating.policy import GatePolicy
from cloister.attacks.graphs import NodeIdentificationDetails, node_identification
from cloister.attacks.integrity.evasion import evasion
from cloister.attacks.integrity.poisoning import agreeing_rows, poisoning
from cloister.attacks.integrity.robustness import RobustnessPoint, RobustnessResult
from cloister.attacks.integrity.transferability import TransferResult, transferability
from cloister.attacks.interfaces.census_reconstruction import (
    CensusReconstructionDetails,
    Published,
    census_reconstruction,
)
from cloister.attacks.interfaces.compromised_records import CompromisedRecordsDetails, compromised_records
from cloister.attacks.interfaces.differences import (
    ModelDifferenceDetails,
    differencing,
    model_difference,
    value_of_newcomer,
)
from cloister.attacks.interfaces.extremes import extremes, extremes_by_counting
from cloister.attacks.interfaces.query_interface import InterfaceDetails
from cloister.attacks.interfaces.reconstruction import ReconstructionDetails, reconstruction
from cloister.attacks.interfaces.repeated_questions import AveragingDetails, averaging
from cloister.attacks.interfaces.tracker import individual_tracker, tracker
from cloister.attacks.local_reports import LocalReportsDetails, guess_from_reports
from cloister.attacks.models.attribute_inference import AttributeInferenceDetails, attribute_inference
from cloister.attacks.models.extraction import ExtractionDetails, model_extraction
from cloister.attacks.models.gradient_leakage import GradientLeakageDetails, gradient_leakage
from cloister.attacks.models.inversion import InversionDetails, model_inversion
from cloister.attacks.models.membership import MembershipDetails, membership
from cloister.attacks.models.stored_records import StoredRecordsDetails, stored_records
from cloister.attacks.result import AttackResult
from cloister.attacks.synthetic.base import SyntheticDetails
from cloister.attacks.synthetic.closest_records import DistanceDetails, distance_to_closest_record
from cloister.attacks.synthetic.inference import synthetic_inference
from cloister.attacks.synthetic.linkability import synthetic_linkability
from cloister.attacks.synthetic.membership import SyntheticMembershipDetails, synthetic_membership
from cloister.attacks.synthetic.singling_out import synthetic_singling_out
from cloister.attacks.tables.dictionary import DictionaryDetails, dictionary, digit_pattern
from cloister.attacks.tables.disclosure import DisclosureDetails
from cloister.attacks.tables.homogeneity import homogeneity, similarity
from cloister.attacks.tables.inference import background_knowledge, probabilistic_inference, skewness
from cloister.attacks.tables.intersection import IntersectionDetails, intersection, pram_intersection, republication
from cloister.attacks.tables.linkage import LinkageDetails, linkage
from cloister.attacks.tables.linked_databases import (
    CorrelationDetails,
    IdentificationDetails,
    correlation,
    identification,
)
from cloister.attacks.tables.minimality import MinimalityDetails, minimality, posterior_of_groups
from cloister.attacks.tables.probabilistic_linkage import jaro_winkler
from cloister.attacks.tables.singling_out import SinglingOutDetails, singling_out
from cloister.attacks.tables.sparse_linkage import SparseLinkageDetails, sparse_linkage
from cloister.attacks.tables.table_membership import TableMembershipDetails, table_membership
from cloister.attacks.tables.uniqueness import UniquenessDetails, identifying_columns, uniqueness
from cloister.attacks.trajectories import TrajectoryUniquenessDetails, trajectory_uniqueness

__all__ = [
    "AnatomyDetails",
    "AttackDetails",
    "AttackResult",
    "AttributeInferenceDetails",
    "AuditDetails",
    "AuditsOfEverything",
    "AveragingDetails",
    "Calibration",
    "CensusReconstructionDetails",
    "CompromisedRecordsDetails",
    "CorrelationDetails",
    "Counterexample",
    "DictionaryDetails",
    "DisclosureDetails",
    "DistanceDetails",
    "EncryptionDetails",
    "ExtractionDetails",
    "GateFinding",
    "GatePolicy",
    "GateResult",
    "GradientLeakageDetails",
    "IdentificationDetails",
    "InterfaceDetails",
    "IntersectionDetails",
    "InversionDetails",
    "LinkageDetails",
    "LocalReportsDetails",
    "MembershipDetails",
    "MinimalityDetails",
    "ModelDifferenceDetails",
    "NodeIdentificationDetails",
    "OneRunDetails",
    "Published",
    "Recalibration",
    "ReconstructionDetails",
    "RobustnessPoint",
    "RobustnessResult",
    "SinglingOutDetails",
    "SparseLinkageDetails",
    "StoredRecordsDetails",
    "SyntheticDetails",
    "SyntheticMembershipDetails",
    "TableMembershipDetails",
    "TrajectoryUniquenessDetails",
    "TransferResult",
    "UniquenessDetails",
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
