"""Attacks that a custodian runs on their own releases before somebody else does, and audits of privacy claims.

Every attack reports success, a naive baseline and a confidence interval. None proves safety: it says what was tried.
"""

from __future__ import annotations

from cloister.attacks.anatomy.attack import anatomy_definetti, anatomy_em
from cloister.attacks.anatomy.result import AnatomyAttackResult
from cloister.attacks.auditing.audit import audit_dp
from cloister.attacks.auditing.audit_result import AuditResult
from cloister.attacks.auditing.exact_check import Counterexample
from cloister.attacks.calibration import Calibration, calibration_of, coverage_of
from cloister.attacks.interfaces.averaging import AveragingResult, averaging
from cloister.attacks.interfaces.differencing import differencing, value_of_newcomer
from cloister.attacks.interfaces.scoring import InterfaceAttackResult
from cloister.attacks.recalibration import Recalibration, recalibrate
from cloister.attacks.result import AttackResult

__all__ = [
    "AnatomyAttackResult",
    "AttackResult",
    "AuditResult",
    "AveragingResult",
    "Calibration",
    "Counterexample",
    "InterfaceAttackResult",
    "Recalibration",
    "anatomy_definetti",
    "anatomy_em",
    "audit_dp",
    "averaging",
    "calibration_of",
    "coverage_of",
    "differencing",
    "recalibrate",
    "value_of_newcomer",
]
