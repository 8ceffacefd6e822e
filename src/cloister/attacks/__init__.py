"""Attacks that a custodian runs on their own releases before somebody else does, and audits of privacy claims.

Every attack reports success, a naive baseline and a confidence interval. None proves safety: it says what was tried.
"""

from __future__ import annotations

from cloister.attacks.auditing.audit import audit_dp
from cloister.attacks.auditing.audit_result import AuditResult
from cloister.attacks.auditing.exact_check import Counterexample
from cloister.attacks.interfaces.averaging import AveragingResult, averaging
from cloister.attacks.interfaces.differencing import differencing, value_of_newcomer
from cloister.attacks.interfaces.scoring import InterfaceAttackResult
from cloister.attacks.models.membership import membership
from cloister.attacks.models.membership_result import MembershipResult
from cloister.attacks.result import AttackResult

__all__ = [
    "AttackResult",
    "AuditResult",
    "AveragingResult",
    "Counterexample",
    "InterfaceAttackResult",
    "MembershipResult",
    "audit_dp",
    "averaging",
    "differencing",
    "membership",
    "value_of_newcomer",
]
