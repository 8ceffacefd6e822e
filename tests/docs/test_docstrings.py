"""Public functions and methods say what they do, unless their one statement says it as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "cloister"
_COMPOUND = (ast.For, ast.While, ast.If, ast.With, ast.Try, ast.Match, ast.FunctionDef, ast.ClassDef)
_WITHOUT = {"overload", "override", "setter"}


def _is_private(name: str) -> bool:
    return name.startswith("_")


def public_modules() -> list[Path]:
    found = (path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
    return sorted(path for path in found if not any(_is_private(part) for part in (*path.parts[:-1], path.stem)))


def undocumented(tree: ast.Module) -> Iterator[str]:
    """Yield public functions and methods of more than one simple statement that have no docstring."""
    for node, name in _public_functions(tree, ""):
        is_one_statement = len(node.body) == 1 and not isinstance(node.body[0], _COMPOUND)
        if ast.get_docstring(node) is None and not is_one_statement and not _WITHOUT & _decorators(node):
            yield name


def _public_functions(
    body: ast.Module | ast.ClassDef, prefix: str
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    for node in body.body:
        if isinstance(node, ast.ClassDef) and not _is_private(node.name):
            yield from _public_functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_private(node.name):
            yield node, f"{prefix}{node.name}"


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    called = (one.func if isinstance(one, ast.Call) else one for one in node.decorator_list)
    return {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in called}


@pytest.mark.parametrize("path", public_modules(), ids=str)
def test_public_functions_say_what_they_do(path: Path) -> None:
    assert list(undocumented(ast.parse((SOURCE / path).read_text("utf-8")))) == []


def test_what_needs_words() -> None:
    tree = ast.parse(
        "def one(): return 1\n"
        "def two():\n    x = 1\n    return x\n"
        "def loop():\n    for x in (): pass\n"
        "def _own():\n    x = 1\n    return x\n"
        "class Thing:\n"
        "    async def said(self):\n        'Say it.'\n        x = 1\n        return x\n"
        "    def unsaid(self):\n        x = 1\n        return x\n"
        "    @value.setter\n    def value(self, x):\n        y = x\n        self.y = y\n"
    )
    assert list(undocumented(tree)) == ["two", "loop", "Thing.unsaid"]
    assert len(public_modules()) > 100
