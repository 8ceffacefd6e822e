from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from docs import generated

ROOT = Path(__file__).parents[2]
CONTRIBUTING = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "contributing").glob("*.md"))]
FIX = "run `make generated`"
PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:py|md|toml|yml|js|css|html))`")
DOTTED = re.compile(r"`((?:cloister\.)?[a-z_]+(?:\.\w+)+)`")


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_generated_files_are_as_the_code_says() -> None:
    stale = [_name(path) for path, text in generated.current().items() if path.read_text("utf-8") != text]
    assert stale == [], FIX


def test_every_module_has_a_line_on_its_page() -> None:
    pages = {
        "architecture.md": [path for path in generated.modules() if generated.is_public(path)],
        "modules.md": list(generated.modules()),
    }
    for page, modules in pages.items():
        text = (ROOT / "docs" / "contributing" / page).read_text("utf-8")
        for module in modules:
            line = f"`{module.name}`: {generated.python_summary(module)}"
            assert module.name == "__init__.py" or line in text, f"{page} lacks {_name(module)}: {FIX}"


def test_every_module_says_in_its_first_line_what_is_in_it() -> None:
    listed = [*generated.modules(), *(path for folder in generated.OUTSIDE for path in generated.outside(folder))]
    silent = [_name(path) for path in listed if not re.search(r".{20}[.?]$", generated.python_summary(path))]
    assert silent == []


def test_every_folder_of_modules_is_described() -> None:
    headings = re.findall(r"### `(.+)`\n\n(.*)\n", generated.page("docs/contributing/modules.md"))
    assert headings
    assert [name for name, line in headings if name.startswith("cloister/") and not line] == []


def test_every_script_says_what_is_in_it() -> None:
    for path in (ROOT / "src" / "cloister").rglob("*.js"):
        assert generated.script_summary(path).endswith("."), f"{_name(path)} begins without a comment about it"


def test_a_page_without_the_marks_of_its_section_is_an_error() -> None:
    assert generated.replace_section("<!-- generated: a -->old<!-- end of a -->.", "a", "new") == (
        "<!-- generated: a -->\n\nnew\n\n<!-- end of a -->."
    )
    with pytest.raises(ValueError, match="<!-- end of a -->"):
        generated.replace_section("<!-- generated: a --> only", "a", "new")


@pytest.mark.parametrize("name", ["gate.new.md", "gate.md", "one.two.added.md"])
def test_a_fragment_of_no_known_kind_is_an_error(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated, "FRAGMENTS", tmp_path)
    (tmp_path / "README.md").write_text("How to.", encoding="utf-8")
    assert not any(generated.fragments().values())
    (tmp_path / name).write_text("A change.", encoding="utf-8")
    with pytest.raises(ValueError, match=r"is not named TOPIC\.KIND\.md"):
        generated.fragments()


def test_fragments_are_paragraphs_or_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated, "FRAGMENTS", tmp_path)
    (tmp_path / "b.added.md").write_text("- One\n  thing.\n- Another.\n", encoding="utf-8")
    (tmp_path / "a.added.md").write_text("A well-known\nthing.\n", encoding="utf-8")
    (tmp_path / "c.security.md").write_text("A leak.\n", encoding="utf-8")
    assembled = generated.changelog()
    assert (
        "### Security and privacy\n\n- A leak.\n\n### Added\n\n- A well-known thing.\n- One thing.\n- Another.\n"
        in assembled
    )


def _by_hand(path: Path) -> str:
    """Return what people wrote on a page."""
    return re.sub(r"(?s)<!-- generated: (.+?) -->.*?<!-- end of \1 -->", "", path.read_text("utf-8"))


@pytest.mark.parametrize("page", CONTRIBUTING, ids=_name)
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    package = ROOT / "src" / "cloister"
    homes = (ROOT, ROOT / "deploy", ROOT / "src", package, package / "hub" / "web" / "templates")
    named = [name for name in PATH.findall(_by_hand(page)) if name != "site/"]
    assert [name for name in named if not any((home / name).exists() for home in homes)] == []


@pytest.mark.parametrize("page", CONTRIBUTING, ids=_name)
def test_the_modules_and_functions_that_a_page_names_exist(page: Path) -> None:
    text = re.sub(r"(?s)```.*?```", "", _by_hand(page))
    assert [name for name in DOTTED.findall(text) if not _exists(name)] == []


def _exists(name: str) -> bool:
    if any((ROOT / folder / name).exists() for folder in ("", "tests", "deploy")) or PATH.fullmatch(f"`{name}`"):
        return True
    parts = name.removeprefix("cloister.").removeprefix("cl.").split(".")
    return any(_leads_to(parts[:cut], parts[cut:]) for cut in range(len(parts), 0, -1))


def _leads_to(module: list[str], attributes: list[str]) -> bool:
    try:
        found: object = importlib.import_module(".".join(["cloister", *module]))
    except ModuleNotFoundError:
        return False
    for attribute in attributes:
        if not hasattr(found, attribute):
            return False
        found = getattr(found, attribute)
    return True
