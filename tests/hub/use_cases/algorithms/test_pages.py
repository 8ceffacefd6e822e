"""The pages of algorithms: for providers, owners and users, with sources as text and nothing that could run."""

from __future__ import annotations

import re

import pytest

from cloister.hub.domain.algorithms import Artifact
from tests.hub.use_cases.algorithms.conftest import World, k_means_version

pytestmark = pytest.mark.usefixtures("passing_checks")


def with_markup() -> Artifact:
    """Return the example with markup in everything that pages show."""
    files = dict(k_means_version(title="<b>Centers</b> & groups").files)
    files["clustering.py"] += b"\n# </code><script>alert(1)</script>\n"
    return Artifact.from_files(files)


def test_everybody_sees_what_concerns_them(world: World) -> None:
    draft = world.upload(k_means_version())
    page = world.provider.get(f"/algorithms/{draft['id']}/versions/1.0.0").text
    assert "Check it again" in page
    assert "Publish" not in re.findall(r"<button[^>]*>([^<]*)", page)
    world.work()
    page = world.provider.get(f"/algorithms/{draft['id']}/versions/1.0.0").text
    assert "Passed." in page
    assert {"Publish", "Back to the drafts", "Revoke for good"} <= set(re.findall(r"<button[^>]*>([^<]*)", page))
    assert world.step(draft, "publish").status_code == 200
    assert "Register an algorithm" in world.provider.get("/algorithms").text
    listed = world.owner.get("/algorithms").text
    assert "k-means" in listed
    assert "Register an algorithm" not in listed
    seen = world.owner.get(f"/algorithms/{draft['id']}").text
    assert "Runs" not in seen
    assert "Runs" in world.provider.get(f"/algorithms/{draft['id']}").text
    assert "What next" not in world.owner.get(f"/algorithms/{draft['id']}/versions/1.0.0").text


def test_an_owner_allows_and_a_user_finds_the_form(world: World) -> None:
    made = world.publish(k_means_version())
    path = f"/datasets/{world.dataset}"
    assert f"{path}/algorithms" in world.owner.get(path).text
    offered = world.owner.get(f"{path}/algorithms").text
    assert made["digest"] in offered
    assert "Allow on this data" in offered
    assert "allows no foreign algorithm" in world.user.get(f"{path}/services/algo.run").text
    assert world.user.get(f"{path}/algorithms/k-means/1.0.0").status_code == 404
    assert world.user.get(f"{path}/algorithms").status_code == 403
    world.allow(made)
    assert "Stop allowing" in world.owner.get(f"{path}/algorithms").text
    assert f"{path}/algorithms/k-means/1.0.0" in world.user.get(f"{path}/services/algo.run").text
    form = world.user.get(f"{path}/algorithms/k-means/1.0.0").text
    assert 'name="inputs.features" value="age"' in form
    assert 'value="sex"' not in form
    assert 'name="parameters.groups"' in form
    assert f'data-service="/api/v1{path}/services/algo.run"' in form


def test_sources_and_manifests_are_shown_as_text(world: World) -> None:
    made = world.publish(with_markup())
    world.allow(made)
    pages = [
        world.owner.get(f"/algorithms/{made['id']}/versions/1.0.0").text,
        world.owner.get(f"/algorithms/{made['id']}").text,
        world.owner.get("/algorithms").text,
        world.owner.get(f"/datasets/{world.dataset}/algorithms").text,
        world.user.get(f"/datasets/{world.dataset}/services/algo.run").text,
        world.user.get(f"/datasets/{world.dataset}/algorithms/k-means/1.0.0").text,
    ]
    assert "&lt;script&gt;alert(1)" in pages[0]
    for page in pages:
        assert "<script>" not in page
        assert "<b>" not in page
        assert "&lt;b&gt;Centers" in page
        assert not re.search(r"\sstyle=|\son\w+=", page)
