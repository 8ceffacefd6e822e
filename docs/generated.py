"""What follows from the code in the documentation, and the changelog: ``python docs/generated.py`` writes it anew.

The layers come from the import-linter contracts of `pyproject.toml`, the lines about modules from the first lines of
their docstrings, `CHANGELOG.md` from the fragments in `changelog.d`, and the list of kinds of questions in the browser
from their folder. A page keeps what is written by hand: only the text between ``<!-- generated: NAME -->`` and ``<!--
end of NAME -->`` is replaced. `tests/docs/test_generated.py` fails when a file is not as this module would write it.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "cloister"
FRAGMENTS = ROOT / "changelog.d"
CHANGELOG = ROOT / "CHANGELOG.md"
BROWSER_KINDS = SOURCE / "local" / "js" / "kinds" / "index.js"
KINDS = {
    "security": "Security and privacy",
    "added": "Added",
    "changed": "Changed",
    "fixed": "Fixed",
    "removed": "Removed",
}
"""The kinds of changes, in the order in which they are listed, and their headings."""
_MIGRATIONS = SOURCE / "hub" / "store" / "migrations" / "versions"


@cache
def python_summary(path: Path) -> str:
    """Return the first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]


def script_summary(path: Path) -> str:
    """Return the first sentence of the comment that a JavaScript module begins with."""
    comment = []
    for line in path.read_text("utf-8").splitlines():
        words = re.sub(r"^\s*(//|/\*\*?|\*/|\*)\s?", "", line)
        if words == line or (comment and not words):
            break
        comment += [words] if words else []
    return re.split(r"(?<=\.) ", " ".join(comment))[0]


def modules() -> Iterator[Path]:
    """Yield every module of the package but the migrations, whose names say what they are."""
    for path in sorted(SOURCE.rglob("*.py")):
        if _MIGRATIONS not in path.parents:
            yield path


def is_public(path: Path) -> bool:
    """Return whether neither a module nor a package that it is in begins with an underscore."""
    names = path.relative_to(SOURCE).with_suffix("").parts
    return not any(name.startswith("_") and name != "__init__" for name in names)


def _contracts(kind: str) -> list[dict[str, Any]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return [contract for contract in settings["tool"]["importlinter"]["contracts"] if contract["type"] == kind]


def _layers() -> Iterator[str]:
    for contract in _contracts("layers"):
        yield f"{contract['name']}:"
        yield ""
        yield "```text"
        yield from (layer.replace("cloister.", "") for layer in contract["layers"])
        yield "```"
        yield ""
    yield "And these hold besides:"
    yield ""
    yield from (f"- {contract['name']}." for contract in _contracts("forbidden"))


def _packages() -> Iterator[str]:
    yield "| Package | What is there |"
    yield "|---|---|"
    for path in modules():
        if path.name == "__init__.py" and path.parent != SOURCE:
            yield f"| `{_name(path)}` | {python_summary(path)} |"


def _listed(wanted: Callable[[Path], bool]) -> Iterator[str]:
    """Yield a section for each package that has such modules."""
    found = [path for path in modules() if path.name != "__init__.py" and wanted(path)]
    for folder in sorted({path.parent for path in found}):
        yield f"### {_heading(folder)}"
        yield ""
        yield _describe_folder(folder)
        yield ""
        inside = [path for path in found if path.parent == folder]
        yield from (f"- `{path.name}`: {python_summary(path)}" for path in inside)
        yield ""


def _describe_folder(folder: Path) -> str:
    """Return what is in a package, or in the folder of an algorithm with a manifest."""
    if (folder / "__init__.py").exists():
        return python_summary(folder / "__init__.py")
    found = re.search(r"(?m)^description: (.+)$", (folder / "manifest.yaml").read_text("utf-8"))
    return found[1] if found else ""


def _scripts() -> Iterator[str]:
    for folder in ("local/js", "local/js/kinds", "hub/web/static", "hub/web/static/survey"):
        yield f"### {_heading(SOURCE / folder)}"
        yield ""
        yield from (f"- `{path.name}`: {script_summary(path)}" for path in sorted((SOURCE / folder).glob("*.js")))
        yield ""


OUTSIDE = ("benchmarks", "tests/support")
"""Folders outside of the package whose modules are listed."""


def outside(folder: str) -> Iterator[Path]:
    """Yield the modules of a folder outside of the package."""
    return (path for path in sorted((ROOT / folder).glob("*.py")) if not path.name.startswith("__"))


def _outside(folder: str) -> Iterator[str]:
    return (f"- `{path.name}`: {python_summary(path)}" for path in outside(folder))


def _name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).parent.parts)


def _heading(folder: Path) -> str:
    return f"`{folder.relative_to(SOURCE.parent).as_posix()}/`"


SECTIONS: dict[str, dict[str, Callable[[], Iterable[str]]]] = {
    "docs/contributing/architecture.md": {
        "layers": _layers,
        "packages": _packages,
        "public modules": lambda: _listed(is_public),
    },
    "docs/contributing/modules.md": {
        "modules": lambda: _listed(lambda _: True),
        "scripts": _scripts,
        "benchmarks": lambda: _outside(OUTSIDE[0]),
        "what tests share": lambda: _outside(OUTSIDE[1]),
    },
}
"""For each page with generated parts: their names, and who writes them."""


def page(name: str) -> str:
    """Return the text of a page with its generated parts written anew."""
    text = (ROOT / name).read_text("utf-8")
    for section, write in SECTIONS[name].items():
        text = replace_section(text, section, "\n".join(write()).strip())
    return text


def replace_section(text: str, section: str, content: str) -> str:
    """Return a page with other content between the two comments that mark a section."""
    begin, end = f"<!-- generated: {section} -->", f"<!-- end of {section} -->"
    before, begin_found, rest = text.partition(begin)
    _, end_found, after = rest.partition(end)
    if not begin_found or not end_found:
        raise ValueError(f"The page has no section {section!r}: write {begin} and {end}.")
    return f"{before}{begin}\n\n{content}\n\n{end}{after}"


def fragments() -> dict[str, list[Path]]:
    """Return the fragments of each kind, by name; a file of no known kind is an error."""
    found: dict[str, list[Path]] = {kind: [] for kind in KINDS}
    for path in sorted(FRAGMENTS.glob("*.md")):
        if path.name == "README.md":
            continue
        kind = path.stem.rpartition(".")[2]
        if path.name.count(".") != 2 or kind not in KINDS:
            raise ValueError(f"changelog.d/{path.name} is not named TOPIC.KIND.md with one of: {', '.join(KINDS)}.")
        found[kind].append(path)
    return found


def changelog() -> str:
    """Return the changelog with everything that is unreleased written anew from the fragments."""
    lines = []
    for kind, paths in fragments().items():
        if paths:
            entries = [entry for path in paths for entry in _entries(path)]
            lines += [f"### {KINDS[kind]}", "", *(f"- {entry}" for entry in entries), ""]
    return replace_section(CHANGELOG.read_text("utf-8"), "unreleased changes", "\n".join(lines).strip())


def _entries(path: Path) -> list[str]:
    """Return what a fragment says, one line for each change: a fragment is a paragraph or a list."""
    return [" ".join(entry.split()) for entry in re.split(r"(?m)^- ", path.read_text("utf-8")) if entry.strip()]


def browser_kinds() -> str:
    """Return the module that knows all kinds of questions in the browser: those of its folder."""
    names = sorted(path.stem for path in BROWSER_KINDS.parent.glob("*.js") if path != BROWSER_KINDS)
    # Imports are static, so that the files whose hashes a respondent compares are all the code that can run.
    return "\n".join(
        (
            "/** The kinds of questions that a browser can ask, by name: every module of this folder. */",
            "",
            "// Written by `make generated`.",
            *(f'import * as {name} from "./{name}.js";' for name in names),
            "",
            '/** @type {ReadonlyMap<string, import("../options.js").QuestionKind>} */',
            f"export const KINDS = new Map(Object.entries({{ {', '.join(names)} }}));",
            "",
        )
    )


def current() -> dict[Path, str]:
    """Return every file with generated parts, as it should be."""
    return {CHANGELOG: changelog(), BROWSER_KINDS: browser_kinds()} | {ROOT / name: page(name) for name in SECTIONS}


if __name__ == "__main__":
    for path, text in current().items():
        path.write_text(text, encoding="utf-8")
