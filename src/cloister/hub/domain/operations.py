"""What can be done with an object of the hub, and which of it a wildcard, an owner or a purpose concerns."""

from __future__ import annotations

from enum import StrEnum

__all__ = [
    "ALGORITHM_OPERATIONS",
    "DATA_OPERATIONS",
    "NAMED_ONLY",
    "OWNER_OPERATIONS",
    "UNPAID",
    "PolicyOperation",
    "expand",
]


class PolicyOperation(StrEnum):
    """One thing that a policy allows or denies."""

    DISCOVER = "discover"
    DESCRIBE = "describe"
    QUERY_COUNT = "query.count"
    QUERY_AGGREGATE = "query.aggregate"
    RISK_ASSESS = "risk.assess"
    RELEASE_ANONYMIZE = "release.anonymize"
    RELEASE_READ = "release.read"
    ML_TRAIN = "ml.train"
    ML_PREDICT = "ml.predict"
    SYNTH_GENERATE = "synth.generate"
    SYNTH_READ = "synth.read"
    SURVEY_PUBLISH = "survey.publish"
    ALGO_RUN = "algo.run"
    EXPORT_RESULT = "export.result"
    EXPORT_RAW = "export.raw"
    AUDIT_READ = "audit.read"
    REQUEST_DECIDE = "request.decide"
    BUDGET_EDIT = "budget.edit"
    POLICY_EDIT = "policy.edit"
    UPDATE = "update"
    DELETE = "delete"


NAMED_ONLY = frozenset(
    {
        PolicyOperation.EXPORT_RAW,
        PolicyOperation.AUDIT_READ,
        PolicyOperation.REQUEST_DECIDE,
        PolicyOperation.BUDGET_EDIT,
        PolicyOperation.POLICY_EDIT,
        PolicyOperation.UPDATE,
        PolicyOperation.DELETE,
    }
)
"""Operations that no wildcard allows: they must be granted by name."""

OWNER_OPERATIONS = frozenset(PolicyOperation) - {PolicyOperation.EXPORT_RAW}
"""Operations that come with owning an object; answers are charged to its budget all the same. No policy can take them
away, so an owner cannot be locked out."""

ALGORITHM_OPERATIONS = frozenset(
    {PolicyOperation.ML_TRAIN, PolicyOperation.ML_PREDICT, PolicyOperation.SYNTH_GENERATE, PolicyOperation.ALGO_RUN}
)
"""Operations that always run some algorithm, whether or not the request has named it yet."""

DATA_OPERATIONS = frozenset(
    {
        PolicyOperation.QUERY_COUNT,
        PolicyOperation.QUERY_AGGREGATE,
        PolicyOperation.RISK_ASSESS,
        PolicyOperation.RELEASE_ANONYMIZE,
        PolicyOperation.RELEASE_READ,
        PolicyOperation.SYNTH_READ,
        PolicyOperation.EXPORT_RESULT,
        PolicyOperation.EXPORT_RAW,
    }
    | ALGORITHM_OPERATIONS
)
"""Operations that use what the data says, for which a purpose has to be declared."""


UNPAID = frozenset({PolicyOperation.RISK_ASSESS, PolicyOperation.RELEASE_ANONYMIZE})
"""Operations that take nothing from a budget: what they give stays with the owner, or leaves with their approval."""


def expand(pattern: str, *, named_only: bool) -> frozenset[PolicyOperation]:
    """Return the operations that a name or a wildcard such as ``query.*`` stands for; none if it is not known.

    Args:
        pattern: an operation, a family followed by ``.*``, or ``*``.
        named_only: whether a wildcard leaves out `NAMED_ONLY`.
    """
    if pattern in set(PolicyOperation):
        return frozenset({PolicyOperation(pattern)})
    if pattern != "*" and not pattern.endswith(".*"):
        return frozenset()
    family = pattern[:-1]
    found = frozenset(operation for operation in PolicyOperation if operation.startswith(family))
    return found - NAMED_ONLY if named_only else found
