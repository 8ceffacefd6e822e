from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from cloister.core.guarantees import Adjacency
from cloister.errors import ManifestError, ParameterError
from cloister.hub.domain.algorithms import Manifest, Parameter, PrivacyContract, Version
from cloister.hub.sandbox.folders import k_means

PLAIN: dict[str, Any] = k_means().manifest.to_dict()


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    values = copy.deepcopy(PLAIN)
    change(values)
    return values


def test_the_example_is_read_in_full() -> None:
    manifest = k_means().manifest
    assert (manifest.id, str(manifest.version), manifest.entrypoint) == ("k-means", "1.0.0", "clustering:fit")
    assert manifest.inputs[0].at_most == 6
    assert manifest.outputs[0].shape == ("groups", "features")
    assert manifest.privacy.blocks.default == 20
    assert manifest.resources.wall_seconds == 1
    assert manifest.choose({"groups": 5}) == {"groups": 5, "rounds": 20}


def test_a_manifest_comes_back_from_json_and_plain_values() -> None:
    manifest = k_means().manifest
    assert Manifest.parse(manifest.to_json()) == manifest
    assert Manifest.from_dict(manifest.to_dict()) == manifest


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m.pop("id"), '"id" is missing'),
        (lambda m: m.update(id="K means"), "small letters"),
        (lambda m: m.update(version=1.0), "semantic version"),
        (lambda m: m.update(version="1.0"), "semantic version"),
        (lambda m: m.update(schema="cloister.algorithm/9"), "schema: this is not known"),
        (lambda m: m.update(entrypoint="clustering.fit"), "module:function"),
        (lambda m: m.update(entrypoint="../x:fit"), "module:function"),
        (lambda m: m.update(titel="x"), '"titel" is not known here. Did you mean "title"?'),
        (lambda m: m.update(title="two\nlines"), "title: this is not a line"),
        (lambda m: m.update(packages=["torch"]), "use only numpy, scipy, sklearn"),
        (lambda m: m.update(packages=["sklearn; import os"]), "use only numpy"),
        (lambda m: m.update(outputs={}), "inputs and outputs"),
        (lambda m: m.update(inputs={"Features": {"kind": "numeric"}}), "small letters"),
        (lambda m: m["inputs"]["features"].update(at_least=0), "whole number from 1"),
        (lambda m: m["inputs"]["features"].update(at_least=True), "whole number from 1"),
        (lambda m: m["inputs"]["features"].update(kind="text"), "numeric, category"),
        (lambda m: m["parameters"].update(features=m["parameters"]["groups"]), "same name"),
        (lambda m: m["parameters"]["groups"].update(bounds=[8, 1]), "leaves no room"),
        (lambda m: m["parameters"]["groups"].update(bounds=[1, 8.5]), "not whole"),
        (lambda m: m["parameters"]["groups"].update(default=99), "from 1 to 8"),
        (lambda m: m["parameters"]["groups"].update(type="int"), "integer, number, choice, boolean"),
        (lambda m: m["outputs"]["centers"].update(shape="rows"), "not a list"),
        (lambda m: m["outputs"]["centers"].update(shape=["rows"]), "not public"),
        (lambda m: m["outputs"]["centers"].update(shape=[0]), "not public"),
        (lambda m: m["outputs"]["centers"].pop("bounds"), "either bounds or a norm"),
        (lambda m: m["outputs"]["centers"].update(norm={"l1": 1}), "either bounds or a norm"),
        (lambda m: m["outputs"]["centers"].update(bounds=[0, float("inf")]), "finite number"),
        (lambda m: m["outputs"]["centers"].update(bounds=[0, 10**16]), "beyond"),
        (lambda m: m["outputs"]["centers"].update(bounds="groups"), "last axis"),
        (lambda m: m["outputs"]["centers"].update(default=1), "different bounds"),
        (lambda m: m["outputs"]["centers"].update(bounds=[0, 1], default=2), "out of bounds"),
        (lambda m: m["outputs"].update(x={"shape": [], "norm": {}}), "one of l1 and l2"),
        (lambda m: m["outputs"].update(x={"shape": [], "norm": {"l1": 0}}), "not above 0"),
        (lambda m: m["outputs"].update(x={"shape": [], "norm": {"l2": 1}, "default": 1}), "out of bounds"),
        (lambda m: m["privacy"].update(contract="statistics"), "sample_and_aggregate"),
        (lambda m: m["privacy"].update(contract="trust_me"), "sample_and_aggregate"),
        (lambda m: m["privacy"].update(epsilon=0), "neither a number"),
        (lambda m: m["privacy"].update(delta=0.1), "Gaussian noise"),
        (lambda m: m["privacy"].update(aggregation="median", noise="gaussian"), "no Gaussian noise"),
        (lambda m: m["privacy"].update(blocks={"fewest": 1}), "whole number from 2"),
        (lambda m: m["privacy"].update(blocks={"default": 500}), "whole number from"),
        (lambda m: m["resources"].update(wall_seconds=0), "0.1 to 600"),
        (lambda m: m["resources"].update(memory_mb=10**6), "whole number from 16"),
        (lambda m: m.update(resources=[]), "resources: this is not an object"),
    ],
)
def test_what_is_wrong_is_said_with_a_fix(change: Callable[[dict[str, Any]], object], words: str) -> None:
    with pytest.raises(ManifestError) as caught:
        Manifest.from_dict(changed(change))
    assert words in str(caught.value)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id: [", "not valid YAML"),
        ("id: a\nid: b", "twice"),
        ("a: &x [1]\nb: *x", "anchors or aliases"),
        ("- 1", "not an object"),
        ("!!python/object/apply:os.system [ls]", "not valid YAML"),
        ("x" * 70_000, "too long"),
    ],
)
def test_odd_texts_are_refused(text: str, words: str) -> None:
    with pytest.raises(ManifestError, match=words):
        Manifest.parse(text)


@pytest.mark.parametrize(
    ("parameter", "good", "bad"),
    [
        ({"type": "integer", "bounds": [1, 5], "default": 2}, 5, [0, 6, 2.0, True, "2", None]),
        ({"type": "number", "bounds": [0, 1], "default": 0.5}, 0.25, [-1, 2, float("nan"), True, "0.5"]),
        ({"type": "choice", "options": ["a", "b"], "default": "a"}, "b", ["c", 1, None]),
        ({"type": "boolean", "default": False}, True, [1, "true", None]),
    ],
)
def test_parameters_take_what_they_declare(parameter: dict[str, Any], good: object, bad: list[object]) -> None:
    declared = replace(Parameter.from_dict({**parameter, "title": "X"}), name="x")
    assert declared.check(good) == good
    assert replace(Parameter.from_dict(declared.to_dict()), name="x") == declared
    assert all(declared.check(corner) == corner for corner in declared.corners())
    for value in bad:
        with pytest.raises(ParameterError, match='"x" is not allowed'):
            declared.check(value)


@pytest.mark.parametrize("options", [[], ["a", "a"], [1], "ab", ["a\n"]])
def test_odd_options_are_refused(options: object) -> None:
    with pytest.raises(ManifestError, match="options"):
        Parameter.from_dict({"type": "choice", "options": options, "default": "a"})


def test_versions_are_ordered_as_semantic_versions_are() -> None:
    written = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1"]
    written += ["1.0.0", "1.2.0", "1.10.0", "2.0.0"]
    versions = [Version.parse(text) for text in written]
    assert all(older < newer and newer > older for older, newer in itertools.pairwise(versions))
    assert [str(version) for version in versions] == written


@pytest.mark.parametrize("text", ["1", "1.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0+build", "v1.0.0", "1.0.0\n", None])
def test_what_is_no_version(text: object) -> None:
    with pytest.raises(ManifestError, match='version: "1.0.0"'):
        Version.parse(text)


def test_a_version_is_compared_with_versions_only() -> None:
    with pytest.raises(TypeError):
        _ = Version.parse("1.0.0") < "2.0.0"


def test_too_many_numbers_are_refused() -> None:
    values = changed(lambda m: m["outputs"].update(big={"shape": [100, 100, "groups"], "bounds": [0, 1]}))
    manifest = Manifest.from_dict(values)
    with pytest.raises(ParameterError, match="30,000 numbers"):
        manifest.layout(manifest.choose({}), {"features": [(0.0, 1.0)]})


def test_the_bounds_of_columns_run_along_the_last_axis() -> None:
    manifest = k_means().manifest
    clip = manifest.layout({"groups": 2}, {"features": [(0.0, 1.0), (5.0, 9.0)]}).clips[0]
    assert clip.shape == (2, 2)
    assert clip.low.tolist() == [0.0, 5.0, 0.0, 5.0]
    assert clip.default.tolist() == [0.5, 7.0, 0.5, 7.0]


@pytest.mark.parametrize(
    ("stated", "is_person", "relation", "fine"),
    [
        ({}, False, "add_remove", True),
        ({}, True, "user", True),
        ({"unit": "row"}, True, "user", False),
        ({"unit": "person"}, True, "user", True),
        ({"neighbors": "replace"}, False, "add_remove", False),
        ({}, False, "edge", False),
    ],
)
def test_a_contract_covers_what_it_says(stated: dict[str, str], is_person: bool, relation: str, fine: bool) -> None:
    contract = PrivacyContract.from_dict({"contract": "sample_and_aggregate", **stated})
    if fine:
        contract.require_unit(unit_is_person=is_person, adjacency=Adjacency(relation))
    else:
        with pytest.raises(ParameterError):
            contract.require_unit(unit_is_person=is_person, adjacency=Adjacency(relation))


def test_gaussian_prices_have_a_delta() -> None:
    values = {"contract": "sample_and_aggregate", "noise": "gaussian", "epsilon": 1, "delta": 1e-6}
    contract = PrivacyContract.from_dict(values)
    assert contract.price(epsilon=None, delta=None) == (1, Fraction(1, 10**6))
    assert PrivacyContract.from_dict(contract.to_dict()) == contract
    asked = PrivacyContract.from_dict({**values, "delta": "asked"})
    with pytest.raises(ParameterError, match="needs delta"):
        asked.price(epsilon=None, delta=None)
