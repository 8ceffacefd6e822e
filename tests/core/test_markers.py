from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import cloister
from cloister.core import markers

SOURCES = Path(cloister.__file__).parent
MARKER = re.compile(r"\x00?(cloister\.(?:[a-z_.-]|\{\})+/\d+)")
"""What a text or the input of a digest begins with; {} is what an f-string fills in."""


@cache
def _trees() -> dict[str, ast.Module]:
    """Return the modules in which a marker may be written."""
    texts = {path.relative_to(SOURCES).as_posix(): path.read_text("utf-8") for path in SOURCES.rglob("*.py")}
    return {name: ast.parse(text) for name, text in texts.items() if re.search(r"cloister\.\S+/", text)}


def _literals(tree: ast.AST) -> Iterator[str]:
    """Yield the texts, bytes and f-strings of a module, each once."""
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    return (_text(node) for node in ast.walk(tree) if id(node) not in parts)


def _text(node: ast.AST | None) -> str:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.Constant(value=bytes() as text):
            return text.decode("latin-1")
        case ast.JoinedStr(values=parts):
            return "".join(_text(part) if isinstance(part, ast.Constant) else "{}" for part in parts)
    return ""


def _homes(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Return where each marker stands, and whether a document or a digest has it."""
    homes: dict[str, set[str]] = defaultdict(set)
    for name, tree in trees.items():
        for text in _literals(tree):
            if found := MARKER.match(text):
                homes[found[1]].add(f"{name}: {'document' if text == found[1] else 'digest'}")
    return homes


def _shapes(trees: dict[str, ast.Module]) -> dict[str, set[tuple[str, ...]]]:
    """Return the names in the documents that are written with each marker."""
    shapes: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict) and node.keys and _text(node.keys[0]) == "schema":
                pairs = zip(node.keys, node.values, strict=True)
                names = sorted(f"**{ast.unparse(value)}" if key is None else ast.unparse(key) for key, value in pairs)
                if MARKER.fullmatch(marker := _text(node.values[0])):
                    shapes[marker].add(tuple(names))
    return shapes


def test_every_marker_is_written_in_one_file_for_documents_or_for_digests() -> None:
    homes = _homes(_trees())
    assert len(homes) > 190
    assert {marker: sorted(files) for marker, files in homes.items() if len(files) > 1} == {}


def test_every_marker_is_of_documents_of_one_shape() -> None:
    shapes = _shapes(_trees())
    assert len(shapes) > 50
    assert {marker: found for marker, found in shapes.items() if len(found) > 1} == {}


@pytest.mark.parametrize(
    "again", ['DOMAIN = b"cloister.new/1\\n" + b""', 'D = f"cloister.new/1\\n{1}"', 'D = b"\\x00cloister.new/1"']
)
def test_a_digest_that_begins_as_a_document_is_found(again: str) -> None:
    tree = ast.parse(f'D = {{"schema": "cloister.new/1", "a": 1}}\n{again}')
    assert _homes({"new.py": tree}) == {"cloister.new/1": {"new.py: document", "new.py: digest"}}


def test_two_shapes_of_a_document_are_found() -> None:
    tree = ast.parse('A = {"schema": "cloister.new/1", "a": 1}\nB = {"schema": "cloister.new/1", **A}')
    assert len(_shapes({"new.py": tree})["cloister.new/1"]) == 2


def test_shared_markers_are_different() -> None:
    shared = [getattr(markers, name) for name in markers.__all__]
    assert len(set(shared)) == len(shared)
