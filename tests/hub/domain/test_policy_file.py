from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from cloister.errors import ParameterError, PolicyError
from cloister.hub.domain.operations import NAMED_ONLY, PolicyOperation, expand
from cloister.hub.domain.policy import Member, Mode, Policy, PolicyRole, RuleEffect, Use
from cloister.hub.domain.policy_edits import from_template, open_to_organisation
from cloister.hub.domain.policy_file import (
    digest_policy,
    mark_of,
    policy_from_dict,
    policy_from_json,
    policy_to_dict,
    sticky_terms,
)
from cloister.hub.domain.terms import DataSensitivity

WHOLE: dict[str, Any] = {
    "schema": "cloister.policy/1",
    "object": "hospital-2026",
    "version": 4,
    "discoverable": True,
    "mode": "exact",
    "acknowledgement": {"by": "o1", "at": "2026-01-01T00:00:00+00:00", "statement": "Answers are exact."},
    "two_person": True,
    "terms": {
        "purposes": ["research.health", "teaching"],
        "sensitivity": "confidential",
        "legal_bases": ["consent"],
        "regions": ["eu"],
        "retention_days": 3650,
        "not_with": ["D9"],
        "only_with": ["D2"],
        "internal_only": True,
        "policies": [{"object": "D0", "version": 2, "digest": "ab"}],
    },
    "columns": {
        "ssn": "forbidden",
        "age": ["visible", "filter", "group_by"],
        "salary": {"uses": ["visible", "measure"], "terms": {"purposes": ["research"], "sensitivity": "restricted"}},
    },
    "other_columns": ["visible"],
    "rows": "year >= 2015",
    "roles": [
        {
            "name": "researchers",
            "members": {
                "users": [
                    "u1",
                    {"user": "u2", "until": "2027-01-01T00:00:00+00:00", "budget": {"epsilon": "1/2"}},
                ],
                "organisations": ["h1"],
                "attributes": [{"department": ["cardiology", "oncology"]}],
                "everyone": True,
            },
            "rules": [
                {
                    "effect": "allow",
                    "operations": ["query.count", "query.aggregate"],
                    "algorithms": ["a@1.0.0", "b@2#" + "0" * 64, "built-in"],
                    "purposes": ["research.health"],
                    "not_before": "2026-01-01T00:00:00+00:00",
                    "expires": "2027-01-01T00:00:00+00:00",
                    "environment": {
                        "hours": ["08:00-18:00"],
                        "days": ["monday"],
                        "timezone": "Europe/Berlin",
                        "networks": ["campus"],
                        "highest_risk": 2.5,
                    },
                    "limits": {
                        "job": {"epsilon": "1/10"},
                        "user": {"epsilon": "1", "delta": "1/1000000"},
                        "organisation": {"epsilon": "3"},
                    },
                },
                {"effect": "deny", "operations": ["export.raw"]},
            ],
            "columns": {"salary": "forbidden"},
            "other_columns": ["visible", "filter", "group_by", "measure"],
            "rows": "branch = :branch",
        }
    ],
}


def changed(path: str, value: Any) -> dict[str, Any]:
    values = copy.deepcopy(WHOLE)
    place: Any = values
    *way, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    for part in way:
        place = place[part]
    place[last] = value
    return values


def test_a_policy_comes_back_equal() -> None:
    policy = policy_from_json(json.dumps(WHOLE))
    assert policy_to_dict(policy) == WHOLE
    assert policy_from_dict(policy_to_dict(policy)) == policy
    assert hash(policy) == hash(policy_from_dict(WHOLE))


def test_what_is_left_out_is_the_strict_choice() -> None:
    policy = policy_from_dict({"schema": "cloister.policy/1", "object": "d"})
    assert policy == Policy(object_id="d")
    assert (policy.discoverable, policy.mode, policy.version) == (False, Mode.DP, 1)
    assert not policy.columns.of("age").is_visible
    assert not policy.terms.purposes
    assert policy.terms.sensitivity is DataSensitivity.RESTRICTED


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("schema", "cloister.policy/9", "schema"),
        ("object", "", "object"),
        ("version", 0, "version"),
        ("version", True, "version"),
        ("discoverable", "yes", "discoverable"),
        ("mode", "loose", "mode"),
        ("acknowledgement", {"by": "o1"}, 'acknowledgement: "at" is missing'),
        ("typo", 1, 'The policy: "typo" is not known here'),
        ("\ud800", 1, r'The policy: "\ud800" is not known here'),
        ("terms/purposes", ["Health!"], "terms.purposes"),
        ("terms/retention_days", -1, "terms.retention_days"),
        ("terms/sensitivity", "high", "terms.sensitivity"),
        ("columns/age", "hidden", 'columns["age"]'),
        ("columns/age", [], 'columns["age"]'),
        ("columns/age", ["sort"], 'columns["age"][0]'),
        ("columns", ["age"], "columns: this is not an object"),
        ("rows", "year >= (SELECT 1)", "rows"),
        ("rows", 7, "rows"),
        ("roles", {}, "roles: this is not a list"),
        ("roles/0", 3, "roles[0]: this is not an object"),
        ("roles/0/rows", "DROP TABLE x", "roles[0].rows"),
        ("roles/0/members/users/1/user", 7, "roles[0].members.users[1].user"),
        ("roles/0/members/users/1/until", "2027-01-01", "roles[0].members.users[1].until"),
        ("roles/0/members/users/1/until", "soon", "roles[0].members.users[1].until"),
        ("roles/0/members/users/1/budget", {"epsilon": -1}, "roles[0].members.users[1].budget: epsilon"),
        ("roles/0/members/users", ["u1", "u1"], 'roles[0].members.users: "u1" is there twice'),
        ("roles/0/members/attributes", [{}], "roles[0].members.attributes[0]"),
        ("roles/0/members/attributes", [{"a": []}], "roles[0].members.attributes[0]"),
        ("roles/0/rules/0/effect", "maybe", "roles[0].rules[0].effect"),
        ("roles/0/rules/0/operations", [], "roles[0].rules[0].operations"),
        (
            "roles/0/rules/0/operations",
            ["query.cuont"],
            'operations[0]: this is not known. Did you mean "query.count"?',
        ),
        ("roles/0/rules/0/operations", ["nothing.*"], "roles[0].rules[0].operations[0]"),
        ("roles/0/rules/0/algorithms", ["a b"], "roles[0].rules[0].algorithms[0]"),
        ("roles/0/rules/0/environment/hours", ["8-18"], "roles[0].rules[0].environment.hours[0]"),
        ("roles/0/rules/0/environment/hours", ["25:00-26:00"], "roles[0].rules[0].environment.hours[0]"),
        ("roles/0/rules/0/environment/timezone", "Berlin", "roles[0].rules[0].environment.timezone"),
        ("roles/0/rules/0/environment/timezone", "../etc", "roles[0].rules[0].environment.timezone"),
        ("roles/0/rules/0/environment/highest_risk", "low", "roles[0].rules[0].environment.highest_risk"),
        ("roles/0/rules/0/limits/user", {"epsilon": "many"}, "roles[0].rules[0].limits.user: epsilon"),
        ("roles/0/rules/1/limits", {}, "roles[0].rules[1].limits"),
    ],
)
def test_an_error_names_the_place(path: str, value: Any, place: str) -> None:
    with pytest.raises(PolicyError) as caught:
        policy_from_dict(changed(path, value))
    assert place in caught.value.problem
    assert caught.value.fix


@pytest.mark.parametrize("text", ["", "[", '{"a": 1, "a": 2}', '{"version": NaN}', "[" * 100_000])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(PolicyError, match="as JSON"):
        policy_from_json(text)


@pytest.mark.parametrize("values", [None, [], "policy", 3])
def test_what_is_no_object_is_refused(values: object) -> None:
    with pytest.raises(PolicyError, match="in braces"):
        policy_from_dict(values)


def test_exact_answers_need_an_acknowledgement_and_only_they() -> None:
    for path, value in (("mode", "dp"), ("acknowledgement", None)):
        with pytest.raises(PolicyError, match='mode "dp"'):
            policy_from_dict(changed(path, value))


def test_a_wildcard_allows_nothing_that_governs_the_object() -> None:
    assert not expand("*", named_only=True) & NAMED_ONLY
    assert expand("*", named_only=False) == frozenset(PolicyOperation)
    assert expand("query.*", named_only=True) == {PolicyOperation.QUERY_COUNT, PolicyOperation.QUERY_AGGREGATE}
    assert expand("export.*", named_only=True) == {PolicyOperation.EXPORT_RESULT}
    assert expand("export.raw", named_only=True) == {PolicyOperation.EXPORT_RAW}
    assert expand("que*", named_only=True) == frozenset()


def test_changes_make_the_next_version() -> None:
    policy = policy_from_dict(WHOLE)
    grown = policy.with_member("researchers", Member(user_id="u3"))
    assert (grown.version, grown.role("researchers").members.users[-1].user_id) == (5, "u3")
    assert grown.with_member("researchers", Member(user_id="u3")).role("researchers").members.users == (
        *policy.role("researchers").members.users,
        Member(user_id="u3"),
    )
    shrunk = grown.without_member("researchers", "u1")
    assert [user.user_id for user in shrunk.role("researchers").members.users] == ["u2", "u3"]
    with pytest.raises(PolicyError, match='Did you mean "researchers"'):
        policy.with_member("researcher", Member(user_id="u3"))
    with pytest.raises(PolicyError, match="add a role"):
        Policy(object_id="d").role("any")


def test_a_policy_refuses_contradictions_in_python_too() -> None:
    with pytest.raises(PolicyError, match="its own name"):
        Policy(object_id="d", roles=(PolicyRole(name="a"), PolicyRole(name="a")))
    with pytest.raises(PolicyError, match="count versions from 1"):
        Policy(object_id="d", version=0)


def test_the_mark_follows_the_contents() -> None:
    policy = policy_from_dict(WHOLE)
    assert mark_of(policy).version == 4
    assert digest_policy(policy) == digest_policy(policy_from_dict(WHOLE))
    assert digest_policy(policy) != digest_policy(policy.next_version(two_person=False))
    assert mark_of(policy) in sticky_terms(policy).policies
    assert set(policy.terms.policies) < set(sticky_terms(policy).policies)


def test_templates_are_safe_and_can_be_written() -> None:
    private = from_template("private by default", "d", hidden=["ssn"])
    assert private.roles == ()
    assert not private.discoverable
    assert not private.columns.of("ssn").is_visible
    assert Use.MEASURE in private.columns.of("age").uses
    research = from_template("research by request", "d")
    assert research.discoverable
    assert research.role("researchers").members.users == ()
    assert research.role("researchers").rules[0].effect is RuleEffect.ALLOW
    for policy in (private, research, open_to_organisation("d", organisation="h")):
        assert policy.mode is Mode.DP
        assert policy_from_dict(policy_to_dict(policy)) == policy
    with pytest.raises(ParameterError, match="research by request"):
        from_template("open", "d")
