"""What people read in error messages, on pages and in the terminal: articles that fit, sentences that begin large."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloister.core.wordings import a_or_an

SOURCE = Path(__file__).parents[1] / "src" / "cloister"

# Vowels that sound like consonants (a user, a one), and letters that are spelled out (an l, an SQL), are left alone.
WRONG_A = re.compile(r"\b[Aa] (?!uni|una|use|usu|one|once|eu)[aeiou][a-z]+")
WRONG_AN = re.compile(r"\b[Aa]n (?!hour|honest|heir)[bcdfghjklmnpqrstvwxyz][a-z]{2,}")
SMALL = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!vs)(?<!\.\.)(?<=[a-z0-9\"')}])\. [a-z]")
LOOSE_ARTICLE = re.compile(r"\b[Aa]n? \{(?!_PART\b|'whole )")


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module that are not documentation, with braces where something is put in."""
    skipped: set[int] = set()
    # A parent comes before its parts.
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in ast.walk(node) if part is not node}
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        if isinstance(node, ast.JoinedStr):
            parts = (_part(part) for part in node.values)
            yield node.lineno, "".join(parts)


def _part(part: ast.expr) -> str:
    if isinstance(part, ast.FormattedValue):
        return f"{{{ast.unparse(part.value)}}}"
    return str(part.value) if isinstance(part, ast.Constant) else ""


def _found(pattern: re.Pattern[str], texts: Iterator[tuple[int, str]]) -> list[str]:
    return [f"{line}: {text}" for line, text in texts if " " in text and pattern.search(text)]


@pytest.mark.no_cover  # nothing of the package runs here
@pytest.mark.parametrize("package", sorted(path.name for path in SOURCE.iterdir() if path.name != "__pycache__"))
def test_articles_fit_and_sentences_begin_with_a_capital(package: str) -> None:
    place = SOURCE / package
    wrong: list[str] = []
    for path in [place] if place.suffix == ".py" else sorted(place.rglob("*.py")):
        texts = list(_texts(ast.parse(path.read_text("utf-8"))))
        for pattern in (WRONG_A, WRONG_AN, SMALL, LOOSE_ARTICLE):
            wrong += [f"{path.name}:{item}" for item in _found(pattern, iter(texts))]
    assert wrong == [], "use a_or_an for nouns that are put in"


def test_pages_and_scripts_too() -> None:
    wrong = []
    for path in sorted([*SOURCE.rglob("*.html"), *SOURCE.rglob("*.js")]):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            plain = re.sub(r"\{[{%].*?[%}]\}|<[^>]*>|//.*|/?\*.*", "", re.sub(r"<code>.*?</code>", "Code", line))
            wrong += [f"{path.name}:{number}: {plain}" for rule in (WRONG_A, WRONG_AN, SMALL) if rule.search(plain)]
    assert wrong == []


@pytest.mark.parametrize("text", ["give a epsilon.", "Only an data owner may.", "It failed. try again.", "a {name} of"])
def test_mistakes_are_found(text: str) -> None:
    assert any(rule.search(text) for rule in (WRONG_A, WRONG_AN, SMALL, LOOSE_ARTICLE))


@pytest.mark.parametrize("text", ["a user", "an hour", "an l of 2", "a one-time link", "so, e.g. this", "wait ... and"])
def test_right_texts_pass(text: str) -> None:
    assert not any(rule.search(text) for rule in (WRONG_A, WRONG_AN, SMALL, LOOSE_ARTICLE))


def test_nouns_get_their_article() -> None:
    assert [a_or_an(noun) for noun in ("epsilon", "auditor", "hour")] == ["an epsilon", "an auditor", "an hour"]
    assert [a_or_an(noun) for noun in ("data owner", "user", "unit")] == ["a data owner", "a user", "a unit"]
