"""A look at the sources of a foreign algorithm for its reviewer. It is no wall: the sandbox is."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from enum import StrEnum

from cloister.hub.domain.algorithms import Artifact
from cloister.hub.domain.algorithms.manifest import PACKAGES

__all__ = ["Finding", "Level", "scan"]

_UNUSUAL_MODULES = frozenset(
    [
        "asyncio",
        "code",
        "codeop",
        "concurrent",
        "ctypes",
        "fcntl",
        "ftplib",
        "gc",
        "http",
        "imaplib",
        "importlib",
        "inspect",
        "marshal",
        "mmap",
        "multiprocessing",
        "os",
        "pickle",
        "pkgutil",
        "posix",
        "pty",
        "resource",
        "runpy",
        "select",
        "selectors",
        "shelve",
        "shutil",
        "signal",
        "site",
        "smtplib",
        "socket",
        "socketserver",
        "ssl",
        "subprocess",
        "sys",
        "tempfile",
        "threading",
        "urllib",
        "webbrowser",
        "xmlrpc",
        "zipimport",
    ]
)
_UNUSUAL_NAMES = frozenset(
    ["eval", "exec", "compile", "__import__", "open", "input", "breakpoint", "globals", "locals", "vars", "memoryview"]
)
_USUAL_DUNDERS = frozenset(
    [
        "__init__",
        "__name__",
        "__all__",
        "__doc__",
        "__version__",
        "__author__",
        "__repr__",
        "__str__",
        "__eq__",
        "__hash__",
        "__len__",
        "__iter__",
        "__next__",
        "__getitem__",
        "__setitem__",
        "__contains__",
        "__call__",
        "__enter__",
        "__exit__",
        "__post_init__",
        "__add__",
        "__sub__",
        "__mul__",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
        "__main__",
        "__slots__",
    ]
)


class Level(StrEnum):
    """How serious a finding is: an error keeps a version from being published."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a provider or a reviewer should know."""

    level: Level
    text: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.level}: {self.text}" + (f" ({self.place})" if self.place else "")

    def to_dict(self) -> dict[str, str]:
        """Return the finding as JSON-ready values."""
        return {"level": str(self.level), "text": self.text, "place": self.place}


def scan(artifact: Artifact) -> tuple[Finding, ...]:
    """Return what is unusual in the sources, and the errors that keep them from being read."""
    own = {name.split("/")[0].removesuffix(".py") for name in artifact.files if name.endswith(".py")}
    findings: list[Finding] = []
    for name, content in artifact.files.items():
        if not name.endswith(".py"):
            continue
        try:
            tree = ast.parse(content, name)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
            line = getattr(problem, "lineno", None)
            findings.append(_error("the file is not valid Python", f"{name}, line {line}" if line else name))
            continue
        findings += _Reader(name, own).read(tree)
        findings += _entry(artifact, name, tree)
    return tuple(findings)


def _entry(artifact: Artifact, name: str, tree: ast.Module) -> list[Finding]:
    module, _, function = artifact.manifest.entrypoint.partition(":")
    path = module.replace(".", "/")
    if name not in (f"{path}.py", f"{path}/__init__.py"):
        return []
    found = next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function), None)
    if found is None:
        return [_warning(f"the function {function} is not defined at the top of its module", name)]
    if len(found.args.posonlyargs) + len(found.args.args) != 3:
        return [
            _error(
                f"{function} must take three arguments: inputs, parameters and bounds", f"{name}, line {found.lineno}"
            )
        ]
    return []


class _Reader:
    """Collects what is unusual in one file, each thing once."""

    def __init__(self, name: str, own: set[str]) -> None:
        self._name, self._own = name, own
        self._found: dict[str, int] = {}

    def read(self, tree: ast.Module) -> list[Finding]:
        for node in ast.walk(tree):
            match node:
                case ast.Import():
                    for alias in node.names:
                        self._module(alias.name, node.lineno)
                case ast.ImportFrom(level=0):
                    self._module(node.module or "", node.lineno)
                case ast.Name(id=name) if name in _UNUSUAL_NAMES:
                    self._note(f"uses {name}", node.lineno)
                case ast.Attribute(attr=name) if name.startswith("__") and name not in _USUAL_DUNDERS:
                    self._note(f"reaches for {name}", node.lineno)
                case ast.Constant(value=str(text)) if text.startswith("__") and text not in _USUAL_DUNDERS:
                    self._note(f"names {text[:40]} in a text", node.lineno)
        return [_warning(text, f"{self._name}, line {line}") for text, line in self._found.items()]

    def _module(self, module: str, line: int) -> None:
        top = module.split(".", maxsplit=1)[0]
        if top in self._own:
            return
        if top in _UNUSUAL_MODULES:
            self._note(f"imports {top}, which computing seldom needs", line)
        elif top not in PACKAGES and top not in sys.stdlib_module_names:
            self._note(f"imports {top}, which is not offered", line)

    def _note(self, text: str, line: int) -> None:
        self._found.setdefault(text, line)


def _error(text: str, place: str) -> Finding:
    return Finding(level=Level.ERROR, text=text, place=place)


def _warning(text: str, place: str) -> Finding:
    return Finding(level=Level.WARNING, text=text, place=place)
