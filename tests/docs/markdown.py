"""Runs the examples of a Markdown page: Python blocks, console blocks, and the output that is shown after them."""

from __future__ import annotations

import contextlib
import doctest
import io
import itertools
import re
import shlex
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cloister.cli import app

_FENCE = re.compile(r"^```(?P<language>[\w-]*)(?P<info>[^\n]*)\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_RUNNABLE = ("python", "console")


class ExampleError(AssertionError):
    """The page shows another output than the example gives."""


@dataclass(frozen=True)
class Block:
    """One runnable example, with the output that the page shows right after it."""

    language: str
    body: str
    line: int
    expected: str | None


def blocks(text: str) -> Iterator[Block]:
    """Yield the runnable blocks of a page from top to bottom."""
    found = list(_FENCE.finditer(text))
    for match, following in itertools.pairwise([*found, None]):
        # A fence with a title is a file that a recipe of the contributors' pages makes: see `recipes`.
        if match is not None and match["language"] in _RUNNABLE and "title=" not in match["info"]:
            shown = following is not None and following["language"] == "text"
            near = following is not None and not text[match.end() : following.start()].strip()
            expected = following["body"] if shown and near and following is not None else None
            yield Block(match["language"], match["body"], text.count("\n", 0, match.start()) + 1, expected)


def escaped_fences(text: str) -> list[str]:
    """Return runnable fences that are indented, and therefore would not be run."""
    return re.findall(r"^[ \t>]+```(?:python|console)", text, re.MULTILINE)


def run_page(path: Path) -> int:
    """Run a page's examples in one namespace and return how many ran."""
    module = types.ModuleType(f"example_{re.sub(r'[^0-9a-z]', '_', path.stem.lower())}")
    sys.modules[module.__name__] = module
    count = 0
    try:
        for block in blocks(path.read_text(encoding="utf-8")):
            count += 1
            if block.language == "python":
                _run_python(path, block, module)
            else:
                _run_console(path, block)
    finally:
        del sys.modules[module.__name__]
    return count


def _run_python(path: Path, block: Block, module: types.ModuleType) -> None:
    code = compile("\n" * block.line + block.body, str(path), "exec", dont_inherit=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, module.__dict__)
    if block.expected is not None:
        _compare(path, block.line, block.expected, printed.getvalue())


def _run_console(path: Path, block: Block) -> None:
    for command, expected in _commands(block.body):
        words = shlex.split(command, comments=True)
        if words[0] != "cloister":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = app.run(words[1:])
        if expected.strip():
            _compare(path, block.line, expected, printed.getvalue())
        elif code != 0:
            raise ExampleError(f"{path}:{block.line}: {command} ended with {code}:\n{printed.getvalue()}")


def _commands(body: str) -> Iterator[tuple[str, str]]:
    joined = body.replace("\\\n", " ")
    for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def _compare(path: Path, line: int, expected: str, printed: str) -> None:
    want, got = _stripped(expected), _stripped(printed)
    if not doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS):
        raise ExampleError(f"{path}:{line} shows\n{want}\nbut the example prints\n{got}")


def _stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").rstrip().split("\n")) + "\n"
