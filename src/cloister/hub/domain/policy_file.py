"""Policies as JSON texts and plain values (``cloister.policy/1``), and the digests by which versions are remembered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cloister.core.digests import chain_digest
from cloister.core.documents import read_json
from cloister.errors import PolicyError
from cloister.hub.domain.policy import Policy
from cloister.hub.domain.terms import PolicyMark, UsageTerms, write_terms

__all__ = [
    "SCHEMA",
    "digest_policy",
    "mark_of",
    "policy_from_dict",
    "policy_from_json",
    "policy_to_dict",
    "sticky_terms",
    "write_terms",
]

SCHEMA = Policy.schema_marker


def policy_from_json(text: str) -> Policy:
    """Return the policy that a JSON text holds.

    Raises:
        PolicyError: if it is not a policy; the message names the place.
    """
    try:
        values = read_json(text)
    except (ValueError, RecursionError):
        raise PolicyError("The policy is not JSON.", fix="write it as JSON, each field once.") from None
    return policy_from_dict(values)


def policy_from_dict(values: object) -> Policy:
    """Return the policy that plain values describe.

    Raises:
        PolicyError: if they are not a policy; the message names the place.
    """
    return Policy.from_dict(values)


def policy_to_dict(policy: Policy) -> dict[str, Any]:
    """Return a policy as JSON-ready values that `policy_from_dict` gives back equal."""
    return policy.to_dict()


def digest_policy(policy: Policy) -> str:
    """Return the SHA-256 of a policy's JSON form, which names this content wherever it is remembered."""
    return chain_digest(policy.to_dict())


def mark_of(policy: Policy) -> PolicyMark:
    """Return the version and digest that derived objects remember."""
    return PolicyMark(object_id=policy.object_id, version=policy.version, digest=digest_policy(policy))


def sticky_terms(policy: Policy) -> UsageTerms:
    """Return the terms that what is made from an object inherits, with the mark of the policy that applied."""
    return replace(policy.terms, policies=tuple(sorted({*policy.terms.policies, mark_of(policy)})))
