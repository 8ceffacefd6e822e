from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import cloister as cl
from cloister.anonymize.algorithms._base import ALGORITHMS
from cloister.anonymize.operations import (
    AddNoise,
    BottomCode,
    DropColumn,
    Generalize,
    Operation,
    PostRandomize,
    Pseudonymize,
    RandomTokens,
    Recipe,
    ReplaceByModel,
    Round,
    Secret,
    ShiftDates,
    SuppressCells,
    SuppressRecords,
    Swap,
    SwapRecords,
    TopCode,
    operations,
)
from cloister.errors import (
    CloisterError,
    ParameterError,
    ParameterTypeError,
    SchemaError,
    SeededRandomnessWarning,
    SourceNotFoundError,
)
from tests.support.thoroughness import examples

AGES = cl.Hierarchy.intervals((0, 110), widths=[5, 10])
TABLE = pa.table({"name": ["A", "B", "C"], "age": [24, 39, 101], "city": ["Ulm", "Bonn", "Ulm"]})
WHOLE = Recipe(
    (
        DropColumn("name"),
        TopCode("age", limit=90),
        Generalize("age", level=2, hierarchy=AGES),
        SuppressCells("city", where="city = 'Bonn'"),
    )
)
names = st.text("abcdefgh_ ", min_size=1, max_size=6)
lists = st.lists(names, min_size=1, max_size=3, unique=True)
positive = st.fractions(min_value="1/1000", max_value=1000)
secrets = st.builds(lambda name: Secret(env=name), st.text("ABC_", min_size=1))
steps: st.SearchStrategy[Operation] = st.one_of(
    st.builds(DropColumn, lists),
    st.builds(SuppressCells, lists, where=st.none() | st.just("age > 5"), marker=st.sampled_from([None, "*"])),
    st.builds(SuppressRecords, where=st.just("age > 'x: #'")),
    st.builds(Generalize, names, level=st.integers(0, 3), hierarchy=st.sampled_from([None, AGES])),
    st.builds(Generalize, names, intervals=st.just(("0-9", "10-19"))),
    st.builds(Generalize, names, labels=st.just(("a; b", "yes"))),
    st.builds(TopCode, names, limit=positive, label=st.none() | st.just("90+")),
    st.builds(BottomCode, names, limit=st.dates()),
    st.builds(Round, names, base=positive),
    st.builds(AddNoise, lists, variance_ratio=positive),
    st.builds(AddNoise, lists, kind=st.just("multiplicative"), deviation=positive),
    st.builds(Swap, st.just("x"), percent=st.fractions("1/100", 100), within=st.just(()) | lists),
    st.builds(SwapRecords, st.just(["x"]), fraction=st.fractions(0, 1), near=st.just(()) | lists),
    st.builds(PostRandomize, names, epsilon=positive, categories=st.sampled_from([None, ("no", "01"), (1, 2)])),
    st.builds(PostRandomize, names, matrix=st.just((("1/3", "2/3"), ("0.5", "0.5"))), invariant=st.booleans()),
    st.builds(Pseudonymize, names, key=secrets, domain=names, reversible=st.booleans(), length=st.integers(10, 52)),
    st.builds(RandomTokens, names),
    st.builds(ShiftDates, lists, subject=names, key=secrets, domain=names),
    st.builds(ReplaceByModel, lists),
)


@settings(max_examples=examples(100, usual=25))
@given(
    st.lists(steps, min_size=1, max_size=4), st.sampled_from([None, {"algorithm": "mondrian", "models": [{"k": 5}]}])
)
def test_recipes_survive_files_and_json(tmp_path_factory: Any, listed: list[Operation], last: Any) -> None:
    recipe = Recipe(tuple(listed), last)
    path = tmp_path_factory.mktemp("recipe") / "recipe.yaml"
    recipe.write(path)
    assert Recipe.read(path) == recipe
    assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe


def test_every_operation_is_covered_by_the_round_trip() -> None:
    assert {name for name, _ in operations.items()} == {
        "add_noise",
        "bottom_code",
        "drop_column",
        "generalize",
        "pram",
        "pseudonymize",
        "random_tokens",
        "replace_by_model",
        "round",
        "shift_dates",
        "suppress_cells",
        "suppress_records",
        "swap",
        "swap_records",
        "top_code",
    }
    assert {name for name, kind in operations.items() if not kind.truthful} == {
        "add_noise",
        "pram",
        "replace_by_model",
        "shift_dates",
        "swap",
        "swap_records",
    }
    assert all(kind.caution for _, kind in operations.items() if not kind.truthful)


def test_a_recipe_prepares_a_table_and_says_what_it_did() -> None:
    prepared = WHOLE.run(TABLE)
    found = prepared.table.to_arrow()
    assert found.to_pydict() == {"age": ["[20, 30)", "[30, 40)", "[90, 100)"], "city": ["Ulm", None, "Ulm"]}
    assert [str(step) for step in prepared.log] == [
        'drop_column: column "name" dropped',
        'top_code: 1 of 3 cells changed in "age"',
        'generalize: 3 of 3 cells changed in "age"',
        'suppress_cells: 1 of 3 cells suppressed in "city"',
    ]
    assert prepared.truthful
    assert prepared.label == "Truthful: cells were made less precise or left out."
    assert prepared.summary()[-1] == ("label", prepared.label)
    assert json.loads(json.dumps(prepared.to_dict()))["log"][1]["cells_changed"] == {"age": 1}


def test_deterministic_recipes_repeat_themselves_and_ignore_seeds() -> None:
    first = WHOLE.run(TABLE, random_state=5)
    assert first.caveats == ()
    assert WHOLE.apply(TABLE).to_arrow().equals(first.table.to_arrow())


def test_random_recipes_draw_anew_unless_seeded() -> None:
    recipe = Recipe((AddNoise("age", deviation=1),))
    assert not recipe.apply(TABLE).to_arrow().equals(recipe.apply(TABLE).to_arrow())
    with pytest.warns(SeededRandomnessWarning):
        first = recipe.run(TABLE, random_state=5)
    with pytest.warns(SeededRandomnessWarning):
        assert recipe.apply(TABLE, random_state=5).to_arrow().equals(first.table.to_arrow())
    assert not first.truthful
    assert first.label.startswith("NOT truthful; values carry noise")
    assert "a seed was given" in first.label


def test_the_schema_follows_the_steps() -> None:
    schema = cl.Schema(
        [
            cl.Column(name="name", role="identifier", kind="text"),
            cl.Column(name="age", kind="numeric", bounds=(0, 110), hierarchy=AGES, guessed={"bounds"}),
        ]
    )
    after = WHOLE.apply(cl.open_table(TABLE, schema=schema)).schema
    assert after.names == ("age",)
    assert after["age"].kind is cl.Kind.NOMINAL
    assert after["age"].guessed == frozenset()


def test_the_last_step_is_handed_on() -> None:
    class Release:
        def __init__(self, table: Any) -> None:
            self.table = table

    asked: dict[str, Any] = {}

    def anonymizer(table: Any, **settings: Any) -> Release:
        asked.update(settings)
        return Release(table)

    recipe = Recipe((DropColumn("name"),), {"models": [{"k": 2}], "suppression_limit": 0.1})
    prepared = recipe.run(TABLE, anonymizer=anonymizer)
    assert asked == {"models": [{"k": 2}], "suppression_limit": 0.1}
    assert isinstance(prepared.release, Release)
    assert prepared.table.columns == ("age", "city")
    with pytest.raises(ParameterError, match="anonymizer="):
        recipe.run(TABLE)
    with pytest.raises(ParameterTypeError, match="no protected table"):
        Recipe((), {"algorithm": "mdav"}).run(TABLE, anonymizer=lambda table, **_: 5)


def test_a_recipe_that_ends_with_anatomy_gives_no_row_with_its_name_or_sensitive_value() -> None:
    columns = [("name", "identifier"), ("town", "quasi"), ("disease", "sensitive")]
    schema = cl.Schema(cl.Column(name=name, role=role) for name, role in columns)
    rows = pa.table({"name": list("stuvwxyz"), "town": list("aabbccdd"), "disease": ["flu", "cold"] * 4})
    recipe = Recipe((), {"algorithm": "anatomy", "models": [{"l": 2, "attribute": "disease"}]})
    prepared = recipe.run(cl.open_table(rows, schema=schema), anonymizer=cl.anonymize)
    assert prepared.table.columns == ("town", "GroupID")
    assert prepared.release.sensitive.columns == ("GroupID", "disease", "Count")
    assert recipe.apply(cl.open_table(rows, schema=schema), anonymizer=cl.anonymize).columns == ("town", "GroupID")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_option_of_every_algorithm_can_stand_in_a_recipe(algorithm: str) -> None:
    settings = {"algorithm": algorithm, **dict.fromkeys(ALGORITHMS[algorithm].options, 1)}
    assert Recipe((), settings).anonymize == settings


def test_secrets_are_referred_to_and_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDY_KEY", "0123456789abcdef" * 4)
    folder = tmp_path / "recipes"
    folder.mkdir()
    secret = Secret.create(tmp_path / "study.key")
    recipe = Recipe(
        (
            Pseudonymize("name", key={"env": "STUDY_KEY"}, domain="d"),
            Pseudonymize("city", key=secret, domain="d"),
        )
    )
    recipe.write(folder / "recipe.yaml")
    text = (folder / "recipe.yaml").read_text()
    assert "0123456789abcdef" not in text
    assert secret.read().decode() not in text
    assert "../study.key" in text
    assert Recipe.read(folder / "recipe.yaml") == recipe
    assert Recipe.read(folder / "recipe.yaml").apply(TABLE).to_arrow().equals(recipe.apply(TABLE).to_arrow())
    with pytest.raises(ParameterError, match="never stored"):
        Recipe((Pseudonymize("name", key=bytes(range(32)), domain="d"),)).write(tmp_path / "other.yaml")
    with pytest.raises(ParameterError, match="env: NAME"):
        Recipe.from_dict(recipe.to_dict())


def test_a_hierarchy_may_be_in_a_file(tmp_path: Path) -> None:
    AGES.write_csv(tmp_path / "age.csv")
    (tmp_path / "recipe.yaml").write_text(
        "schema: cloister.recipe/1\noperations:\n- {operation: generalize, column: age, level: 2, hierarchy: age.csv}\n"
    )
    recipe = Recipe.read(tmp_path / "recipe.yaml")
    assert recipe == Recipe((Generalize("age", level=2, hierarchy=AGES),))


STEP = "schema: cloister.recipe/1\noperations:\n- "


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("", "drop_column"),
        ("[1]", "drop_column"),
        ("operations: [", "drop_column"),
        ("schema: cloister.recipe/9\noperations: []", "cloister.recipe/1"),
        ("schema: cloister.recipe/1", "drop_column"),
        ("schema: cloister.recipe/1\noperations: 5", "not a list"),
        ("schema: cloister.recipe/1\noperation: []", 'Did you mean "operations"'),
        (STEP + "5", "Step 1 of the recipe"),
        (STEP + "{column: age}", "Step 1 of the recipe"),
        (STEP + "{operation: generalise, column: age}", 'Did you mean "generalize"'),
        (STEP + "{operation: round, colunm: age, base: 5}", 'Did you mean "column"'),
        (STEP + "{operation: round, column: age}", "add base"),
        (STEP + "{operation: round, column: age, base: -5}", "Step 1 \\(round\\)"),
        (STEP + "{operation: round, column: age, base: 5, column: b}", "there twice"),
        (STEP + "{operation: round, column: 5, base: 5}", "name of a column"),
        (STEP + "{operation: generalize, column: age, level: 1, hierarchy: none.csv}", "none.csv"),
        (STEP + "{operation: drop_column, columns: [a]}\nanonymize: 5", "mapping of settings"),
        (STEP + "{operation: drop_column, columns: [a]}\nanonymize: {algoritm: x}", 'Did you mean "algorithm"'),
    ],
)
def test_broken_files_say_what_to_change(tmp_path: Path, text: str, fix: str) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(SchemaError, match=fix) as caught:
        Recipe.read(path)
    assert "recipe.yaml" in str(caught.value)


def test_a_missing_file() -> None:
    with pytest.raises(SourceNotFoundError, match="no recipe file"):
        Recipe.read("nowhere.yaml")


def test_a_failing_step_says_which_it_was() -> None:
    with pytest.raises(CloisterError, match="Step 2 \\(round\\)") as caught:
        Recipe((DropColumn("name"), Round("city", base=5))).run(TABLE)
    assert "Ulm" not in str(caught.value)


def test_only_operations_are_steps() -> None:
    with pytest.raises(CloisterError, match="DropColumn"):
        Recipe(("drop_column",))  # type: ignore[arg-type]


def test_exact_numbers_are_written_exactly() -> None:
    assert Round("v", base=Fraction(1, 3)).to_dict() == {"operation": "round", "column": "v", "base": "1/3"}
    assert Round("v", base=0.1).to_dict()["base"] == 0.1
    assert Round("v", base=Fraction(10**400, 3)).to_dict()["base"] == str(Fraction(10**400, 3))
