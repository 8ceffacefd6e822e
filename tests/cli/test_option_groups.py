"""Options of one kind: the same text and order in every command, and the same words for the same mistake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cloister.cli import app
from cloister.cli.commands import SECTIONS, GroupedOption
from cloister.cli.options import (
    NumberText,
    check_target,
    data_options,
    ledger_options,
    output_options,
    price_options,
)

SCHEMA = """\
columns:
  age: {role: quasi, kind: numeric, storage: integer, bounds: [0, 110]}
  sick: {role: sensitive, kind: nominal, storage: text, categories: ["no", "yes"]}
"""
PRIVATE = {
    "query": ["query", "people.csv", "--sql", "SELECT COUNT(*) FROM data"],
    "synth": ["synth", "people.csv", "--method", "independent", "-o", "made-up.csv"],
    "train": ["train", "gaussian_nb", "people.csv", "--target", "sick", "-o", "model.cloister"],
}
WRITING = {
    "query": [*PRIVATE["query"], "--schema", "people.yaml", "--epsilon", "1", "--plot"],
    "synth": ["synth", "people.csv", "--schema", "people.yaml", "--epsilon", "1", "-o"],
    "train": [*PRIVATE["train"][:-2], "--schema", "people.yaml", "--epsilon", "1", "-o"],
    "anonymize": ["anonymize", "people.csv", "--schema", "people.yaml", "--k", "2", "-o"],
    "risk": ["risk", "people.csv", "--schema", "people.yaml", "--report"],
    "gate": ["gate", "people.csv", "--original", "people.csv", "--kind", "anonymized", "--quasi", "age", "--report"],
    "attack": ["attack", "linkage", "people.csv", "--original", "people.csv", "--quasi", "age", "--report"],
    "schema": ["schema", "infer", "people.csv", "-o"],
    "survey": ["survey", "new"],
}
ENDINGS = {"query": "svg", "synth": "csv", "train": "cloister", "anonymize": "csv", "schema": "yaml", "survey": "yaml"}


@pytest.fixture(autouse=True)
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOISTER_SIGNING_KEY", str(tmp_path / "signing.key"))
    Path("people.csv").write_text("age,sick\n30,no\n40,yes\n", encoding="utf-8")
    Path("people.yaml").write_text(SCHEMA, encoding="utf-8")


def _refusal(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> str:
    assert app.run(arguments) == 2
    return capsys.readouterr().err


def _options(name: str) -> Iterator[list[GroupedOption]]:
    noun = app._NOUNS[name].load()
    for made in noun.commands.values() if isinstance(noun, click.Group) else [noun]:
        yield [option for option in made.params if isinstance(option, GroupedOption)]


def _group(decorate: object) -> dict[str, tuple[str | None, str | None]]:
    @decorate  # type: ignore[operator, untyped-decorator]  # a decorator of click's
    def nothing() -> None: ...

    made = list(reversed(nothing.__click_params__))
    return {option.opts[-1]: (option.metavar, option.help) for option in made}


GROUPS = {
    "Data": _group(data_options()),
    "Price": _group(price_options(rho=True)),
    "Ledger": _group(ledger_options(rho=True)),
    "Output": _group(output_options("", endings=(), report="", certificate=True)),
}


@pytest.mark.parametrize("name", sorted(app._NOUNS))
def test_options_of_a_group_read_the_same_everywhere_and_stand_in_one_order(name: str) -> None:
    for options in _options(name):
        for section, group in GROUPS.items():
            found = [option for option in options if option.section == section]
            known = [option for option in found if option.opts[-1] in group]
            order = list(group)
            assert [option.opts[-1] for option in known] == sorted(
                (option.opts[-1] for option in known), key=order.index
            )
            for option in known:
                metavar, text = group[option.opts[-1]]
                assert option.metavar == metavar
                assert option.opts[-1] in ("--output", "--report") or option.help == text


@pytest.mark.parametrize("name", sorted(app._NOUNS))
def test_help_lists_groups_in_one_order(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    noun = app._NOUNS[name].load()
    for path in [[name, verb] for verb in noun.commands] if isinstance(noun, click.Group) else [[name]]:
        assert app.run([*path, "--help"]) == 0
        headings = [line[:-1] for line in capsys.readouterr().out.splitlines() if line[:-1] in SECTIONS]
        assert headings == [section for section in SECTIONS if section in headings]
        assert headings[0] == "Options"


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["--epsilon", "much"], "--epsilon is not a finite number.\n\nFix: give --epsilon as a finite number."),
        (["--epsilon", "1", "--delta", "nan"], "--delta is not a finite number."),
        (
            ["--epsilon", "1", "--dataset", "a"],
            "--dataset has no meaning without a ledger, where spending is remembered.",
        ),
        (["--epsilon", "1", "--budget-delta", "1"], "--budget-delta has no meaning without a ledger"),
        (["--epsilon", "1", "--ledger", "sqlite:///b.db"], "With a ledger, the table needs a name for its account."),
        (
            ["--epsilon", "1", "--ledger", "sqlite:///b.db", "--dataset", "a", "--budget-delta", "0.1"],
            "--budget-delta is a part of a budget.",
        ),
        (
            ["--epsilon", "1", "--ledger", "sqlite:///b.db", "--dataset", "a"],
            "There is no ledger there yet.\n\nFix: check the name; if this is the first question ever",
        ),
        (["--epsilon", "1", "--ledger", "b.db", "--dataset", "a"], '"b.db" is a path, not the address of a ledger.'),
    ],
)
@pytest.mark.parametrize("name", PRIVATE)
def test_the_same_mistake_with_a_price_or_a_ledger_is_told_in_the_same_words(
    name: str, typed: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "train":
        pytest.importorskip("sklearn")
    assert words in _refusal(capsys, [*PRIVATE[name], "--schema", "people.yaml", *typed])
    assert not Path("b.db").exists()


@pytest.mark.parametrize("name", PRIVATE)
def test_a_schema_is_asked_for_in_the_same_words(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "Missing option '--schema'." in _refusal(capsys, [*PRIVATE[name], "--epsilon", "1"])
    wanted = _refusal(capsys, [*PRIVATE[name], "--epsilon", "1", "--schema", "nowhere.yaml"])
    assert 'There is no schema file "nowhere.yaml".' in wanted


@pytest.mark.parametrize("name", WRITING)
def test_the_same_mistake_with_a_file_is_told_in_the_same_words(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    ending = ENDINGS.get(name, "html")
    there = f"there.{ending}"
    Path(there).write_text("mine", encoding="utf-8")
    wanted = f'"{there}" is there already.\n\nFix: choose another name, or say --force.'
    assert wanted in _refusal(capsys, [*WRITING[name], there])
    assert Path(there).read_text("utf-8") == "mine"
    wanted = 'There is no folder "nowhere".\n\nFix: make it first, or choose another one.'
    assert wanted in _refusal(capsys, [*WRITING[name], f"nowhere/a.{ending}"])
    if name != "survey":
        assert "would replace what is read" in _refusal(capsys, [*WRITING[name], "people.csv", "--force"])
    if name != "schema":
        assert "has an ending that says no kind of file" in _refusal(capsys, [*WRITING[name], "a.odd"])


@pytest.mark.parametrize("name", PRIVATE)
def test_no_output_replaces_the_ledger_that_pays(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    book = f"book.{ENDINGS.get(name, 'html')}"
    Path(book).write_text("all that was spent", encoding="utf-8")
    pays = ["--ledger", f"sqlite:///{book}", "--dataset", "people", "--budget-epsilon", "3", "--force"]
    assert "would replace what is read" in _refusal(capsys, [*WRITING[name], book, *pays])
    assert Path(book).read_text("utf-8") == "all that was spent"
    Path(book).unlink()
    for scheme in ("sqlite", "SQLite"):
        pays[1] = f"{scheme}:///{book}"
        assert "would replace what is read" in _refusal(capsys, [*WRITING[name], book, *pays])
        assert not Path(book).exists()


def test_a_target_behind_a_link_or_a_pattern_is_what_is_read(tmp_path: Path) -> None:
    Path("link.csv").symlink_to("people.csv")
    for inputs in (["people.csv"], ["*.csv"], [str(tmp_path / "people.csv"), None]):
        with pytest.raises(Exception, match="would replace what is read"):
            check_target("link.csv", inputs=inputs, force=True, endings=(".csv",))
    check_target("other.csv", inputs=["*.csv"], force=False, endings=(".csv",))


def test_a_number_stays_the_text_that_was_typed() -> None:
    assert NumberText().convert("1/3", None, None) == "1/3"
