from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import cloister
from cloister import errors
from cloister.cli import app, app as cli_app

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PACKAGES = (
    "core",
    "data",
    "accounting",
    "mechanisms",
    "crypto",
    "local",
    "anonymize",
    "protocols",
    "learn",
    "synth",
    "queries",
    "attacks",
    "plotting",
    "report",
    "testing",
)
ERRORS = [
    name
    for name in errors.__all__
    if isinstance(getattr(errors, name), type) and issubclass(getattr(errors, name), (Exception, Warning))
]


def _reference() -> str:
    return "\n".join(path.read_text("utf-8") for path in sorted(REFERENCE.glob("*.md")))


def _public_modules() -> Iterator[str]:
    for package in PACKAGES:
        root = importlib.import_module(f"cloister.{package}")
        for found in pkgutil.walk_packages(root.__path__, f"cloister.{package}."):
            if "._" not in found.name and not found.ispkg:
                yield found.name


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from _commands(found, (*path, name))


COMMANDS = dict(_commands(app.cloister, ("cloister",)))


@pytest.mark.parametrize("name", cloister.__all__)
def test_every_public_name_is_in_the_reference(name: str) -> None:
    assert re.search(rf"(?<![\w.])(?:cl\.|cloister\.)?{re.escape(name)}\b", _reference())


def test_every_public_module_is_in_the_reference() -> None:
    shown = set(re.findall(r"^::: ([\w.]+)$", _reference(), re.MULTILINE))
    missing = [name for name in _public_modules() if not {name, name.rpartition(".")[0]} & shown]
    assert missing == [], "write '::: module' for these on a page of docs/reference"


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_is_in_the_errors_reference(name: str) -> None:
    page = (REFERENCE / "errors.md").read_text("utf-8")
    cls = getattr(errors, name)
    row = re.search(rf"^\| `{name}` \|.*\| (?P<code>\d|-) \|$", page, re.MULTILINE)
    assert row is not None
    if issubclass(cls, errors.CloisterError):
        nearest = next(base for base in cls.__mro__ if base in cli_app.EXIT_CODES)
        assert row["code"] == str(cli_app.EXIT_CODES[nearest])


@pytest.mark.parametrize("path", sorted(COMMANDS))
def test_every_command_and_option_is_documented(path: str) -> None:
    page = (REFERENCE / "command-line.md").read_text("utf-8")
    section = re.search(rf"^## `{re.escape(path)}`$(?P<body>.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert section is not None, f"docs/reference/command-line.md has no section for {path}"
    for parameter in COMMANDS[path].params:
        spelled = parameter.opts if isinstance(parameter, click.Option) else [(parameter.human_readable_name)]
        for word in spelled:
            assert f"`{word}" in section["body"], f"{path} {word} is not documented"


def test_the_links_of_the_readme_lead_somewhere() -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", (ROOT / "README.md").read_text("utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
