"""The files of ``deploy/`` and the page of settings are about this hub, not about another one."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import click
import pytest

from cloister.cli.app import cloister
from cloister.hub.serving import check_place
from cloister.hub.settings import Settings, read_settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
NAMES = {field.name for field in fields(Settings)}


def test_the_example_of_settings_is_read_and_safe() -> None:
    settings = read_settings(DEPLOY / "hub.toml", environment={})
    assert settings.is_https
    assert not settings.key_path.is_relative_to(settings.folder)
    check_place(settings)
    commented = re.findall(r"^# (\w+) = ", (DEPLOY / "hub.toml").read_text("utf-8"), re.MULTILINE)
    assert set(commented) <= NAMES


def test_the_container_sets_what_there_is() -> None:
    text = (DEPLOY / "Containerfile").read_text("utf-8")
    variables = set(re.findall(r"CLOISTER_HUB_(\w+)=", text))
    assert {name.lower() for name in variables} <= NAMES
    assert {"FOLDER", "KEY_FILE", "HOST", "PORT"} <= variables
    assert "USER cloister" in text
    assert "[hub]" in text


@pytest.mark.parametrize("path", ["deploy/cloister-hub.service", "docs/how-to/run-a-hub.md"])
def test_commands_and_options_exist(path: str) -> None:
    found = re.findall(r"cloister hub (\w+)([^\n`]*)", (ROOT / path).read_text("utf-8"))
    assert found
    context = click.Context(cloister)
    group = cloister.get_command(context, "hub")
    assert isinstance(group, click.Group)
    for name, rest in found:
        command = group.get_command(context, name)
        assert command is not None, name
        known = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"(?<= )--?[a-z-]+", rest)) <= known, (name, rest)


@pytest.mark.parametrize("name", ["nginx.conf", "Caddyfile"])
def test_proxies_lead_to_the_hub_and_take_uploads(name: str) -> None:
    settings = read_settings(DEPLOY / "hub.toml", environment={})
    text = (DEPLOY / name).read_text("utf-8")
    assert f"{settings.host}:{settings.port}" in text
    assert settings.public_url.removeprefix("https://") in text
    assert re.search(r"2 ?gb?\b", text, re.IGNORECASE), "as much as upload_limit"


def test_every_file_is_named_in_the_how_to() -> None:
    page = (ROOT / "docs" / "how-to" / "run-a-hub.md").read_text("utf-8")
    assert all(f"`{file.name}`" in page for file in DEPLOY.iterdir())


def test_every_setting_is_in_the_reference_with_its_default() -> None:
    page = (ROOT / "docs" / "reference" / "hub-settings.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", page, re.MULTILINE))
    assert set(rows) == NAMES
    for field in fields(Settings):
        if isinstance(field.default, (int, float)) or (isinstance(field.default, str) and field.default):
            assert rows[field.name].strip("`") == str(field.default).lower()
        assert re.search(rf"^        {field.name}: ", Settings.__doc__ or "", re.MULTILINE), field.name
    example = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert example is not None
    assert "issuer" in tomllib.loads(example[1])["oidc"]["university"]
