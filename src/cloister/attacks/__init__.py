"""Attacks that a custodian runs on their own releases before somebody else does, and audits of privacy claims.

Every attack reports success, a naive baseline and a confidence interval. None proves safety: it says what was tried.
"""

from __future__ import annotations

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
from cloister.attacks.interfaces.averaging import AveragingResult, averaging
from cloister.attacks.interfaces.differencing import differencing, value_of_newcomer
from cloister.attacks.interfaces.scoring import InterfaceAttackResult
from cloister.attacks.result import AttackResult
from cloister.attacks.synthetic.closest import DistanceResult, distance_to_closest_record
from cloister.attacks.synthetic.inference import synthetic_inference
from cloister.attacks.synthetic.linkability import synthetic_linkability
from cloister.attacks.synthetic.membership import SyntheticMembershipResult, synthetic_membership
from cloister.attacks.synthetic.result import SyntheticAttackResult
from cloister.attacks.synthetic.singling_out import synthetic_singling_out

__all__ = [
    "AttackResult",
    "AuditResult",
    "AuditsOfEverything",
    "AveragingResult",
    "Counterexample",
    "DistanceResult",
    "InterfaceAttackResult",
    "OneRunResult",
    "SyntheticAttackResult",
    "SyntheticMembershipResult",
    "audit_dp",
    "audit_estimator_once",
    "audit_everything",
    "audit_mechanism_once",
    "audit_one_run",
    "audit_queries_once",
    "audit_synthesizer_once",
    "averaging",
    "differencing",
    "distance_to_closest_record",
    "synthetic_inference",
    "synthetic_linkability",
    "synthetic_membership",
    "synthetic_singling_out",
    "value_of_newcomer",
]
