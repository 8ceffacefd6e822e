"""Laws of the family of privacy models: every registered one obeys them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings, strategies as st

import cloister as cl
from cloister.anonymize._report_words import glossary, model_name
from cloister.anonymize.models import check_of, model_from, parse_model, privacy_models, settings_of
from cloister.anonymize.models.base import register
from cloister.core.guarantees import Syntactic, guarantee_from_dict
from cloister.data.columns import Column
from cloister.errors import InternalError, ParameterError
from tests.anonymize.tables import classes_from_counts

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "anonymize.md"
KINDS = list(privacy_models)
IN_CLASSES = [kind for kind in KINDS if not check_of(privacy_models.get(kind).example("s")).needs_population]
COLUMN = Column(name="s", role="sensitive", kind="ordinal", categories=("a", "b", "c", "d"))
COUNTS = st.lists(st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any), min_size=1, max_size=6)


def example(kind: str, attribute: str = "s") -> Syntactic:
    return privacy_models.get(kind).example(attribute)


@pytest.mark.parametrize("kind", KINDS)
def test_a_promise_is_written_read_and_explained(kind: str) -> None:
    model = example(kind)
    assert model.kind == kind
    assert guarantee_from_dict(json.loads(json.dumps(model.to_dict()))) == model
    assert "not differential privacy" in model.explain()
    about = model.with_unit("patient_id")
    assert about.brief() == model.brief().replace("per row", "per patient_id")
    assert guarantee_from_dict(about.to_dict()) == about


@pytest.mark.parametrize("kind", KINDS)
def test_settings_and_texts_make_the_same_model_again(kind: str) -> None:
    model = example(kind, "a column, named so")
    settings = settings_of(model)
    assert model_from(json.loads(json.dumps(settings))) == model
    if privacy_models.get(kind).number is not None:
        assert model_from({name: value for name, value in settings.items() if name != "model"}) == model
    written = ", ".join(f"{name}='{value}'" for name, value in settings.items() if name != "model")
    assert parse_model(f"{kind.replace('_', '-')}({written})") == model


@pytest.mark.parametrize("kind", KINDS)
def test_people_can_read_about_it(kind: str) -> None:
    known, model = privacy_models.get(kind), example(kind)
    assert model_name(model).startswith(known.title)
    assert (known.title, known.meaning) in glossary([model])
    assert f"`{kind}(" in REFERENCE.read_text("utf-8"), "write it into the table of docs/reference/anonymize.md"


@pytest.mark.parametrize("kind", IN_CLASSES)
@settings(max_examples=40)
@given(counts=COUNTS, data=st.data())
def test_a_monotone_model_survives_every_merge(kind: str, counts: list[list[int]], data: st.DataObject) -> None:
    check = check_of(example(kind))
    assume(check.is_monotone and check.holds(classes_from_counts(counts, column=COLUMN)).all())
    first, second, *rest = [*data.draw(st.permutations(counts)), [0] * 4]
    merged = [np.add(first, second).tolist(), *(line for line in rest if any(line))]
    assert check.holds(classes_from_counts(merged, column=COLUMN)).all()


@pytest.mark.parametrize("kind", IN_CLASSES)
@settings(max_examples=40)
@given(counts=COUNTS)
def test_classes_attain_a_number_and_the_order_of_rows_does_not_matter(kind: str, counts: list[list[int]]) -> None:
    check = check_of(example(kind))
    classes, turned = (classes_from_counts(found, column=COLUMN) for found in (counts, counts[::-1]))
    assert not np.isnan(check.measure(classes)).any()
    assert check.holds(classes).tolist() == check.holds(turned).tolist()[::-1]
    assert check.symbol in check.advice(classes) or " k " in check.advice(classes)


@pytest.mark.parametrize("kind", IN_CLASSES)
def test_a_release_that_was_asked_for_it_satisfies_it(kind: str) -> None:
    ages = [20 + place % 40 for place in range(300)]
    rows = pa.table({"age": ages, "s": ["abcd"[(place * place) % 7 % 4] for place in range(300)]})
    schema = cl.Schema([Column(name="age", role="quasi", kind="numeric", bounds=(0, 110)), COLUMN])
    table = cl.open_table(rows, schema=schema)
    release = cl.anonymize(table, models=[example(kind)], algorithm="mondrian")
    (check,) = release.checks
    assert check.model.kind == kind
    assert check.holds(release.classes).all()
    assert check.model.explain() in release.guarantee.explain()
    (before,), (after,) = (cl.assess(found, models=[settings_of(example(kind))]).asked for found in (table, release))
    assert after.is_satisfied
    assert before.model == after.model == check.model
    safer = after.attained >= before.attained if check.more_is_safer else after.attained <= before.attained
    assert safer or before.is_satisfied


def test_two_models_share_no_name() -> None:
    with pytest.raises(InternalError, match='called "k_map"'):
        register(privacy_models.get("k_map"))


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        ("", "p_sensitivity(attribute=diagnosis"),
        ("k_anonymity", "k_anonymity, "),
        ("k_anonymity(5)", "k_anonymity, "),
        ("k_anonymity(k='5)", "k_anonymity, "),
        ("k_anonymty(k=5)", "use one of k_anonymity"),
        ("l_diversity(l=3)", "give those that apply of attribute"),
        ("k_anonymity(k=many)", "give those that apply of k"),
    ],
)
def test_texts_that_are_no_model_are_refused(written: str, fix: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_model(written)
    assert fix in caught.value.fix
