"""Attacks that a custodian runs on their own releases before somebody else does, and audits of privacy claims.

Every attack reports success, a naive baseline and a confidence interval. None proves safety: it says what was tried.
"""

from __future__ import annotations

from cloister.attacks.auditing.audit import audit_dp
from cloister.attacks.auditing.audit_result import AuditResult
from cloister.attacks.auditing.exact_check import Counterexample
from cloister.attacks.integrity.evasion import evasion
from cloister.attacks.integrity.poisoning import poisoning
from cloister.attacks.integrity.result import RobustnessPoint, RobustnessResult
from cloister.attacks.integrity.sanitizing import agreeing_rows
from cloister.attacks.integrity.transfer import TransferResult, transferability
from cloister.attacks.interfaces.averaging import AveragingResult, averaging
from cloister.attacks.interfaces.differencing import differencing, value_of_newcomer
from cloister.attacks.interfaces.scoring import InterfaceAttackResult
from cloister.attacks.models.attribute import AttributeInferenceResult, attribute_inference
from cloister.attacks.models.extraction import model_extraction
from cloister.attacks.models.extraction_result import ExtractionResult
from cloister.attacks.models.gradients import GradientLeakageResult, gradient_leakage
from cloister.attacks.models.inversion import InversionResult, model_inversion
from cloister.attacks.models.membership import membership
from cloister.attacks.models.membership_result import MembershipResult
from cloister.attacks.models.stored import StoredRecordsResult, stored_records
from cloister.attacks.result import AttackResult

__all__ = [
    "AttackResult",
    "AttributeInferenceResult",
    "AuditResult",
    "AveragingResult",
    "Counterexample",
    "ExtractionResult",
    "GradientLeakageResult",
    "InterfaceAttackResult",
    "InversionResult",
    "MembershipResult",
    "RobustnessPoint",
    "RobustnessResult",
    "StoredRecordsResult",
    "TransferResult",
    "agreeing_rows",
    "attribute_inference",
    "audit_dp",
    "averaging",
    "differencing",
    "evasion",
    "gradient_leakage",
    "membership",
    "model_extraction",
    "model_inversion",
    "poisoning",
    "stored_records",
    "transferability",
    "value_of_newcomer",
]
