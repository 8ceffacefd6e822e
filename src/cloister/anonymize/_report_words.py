"""The words of a report of a release, for readers who do not work with these models every day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cloister.anonymize.models import privacy_models
from cloister.core.guarantees import Guarantee

__all__ = ["facts_in_words", "glossary", "model_name"]

_COLUMNS = (
    ("Identifier", "A column that names a person by itself, such as a name. It is not released."),
    (
        "Quasi-identifier",
        "What others may know of a person, and what singles people out together with other such columns.",
    ),
    ("Sensitive column", "What others must not learn about a person."),
    ("Class", "All released rows that show the same quasi-identifiers, so that nobody can tell them apart by those."),
)
_ATTACKERS = (
    ("Prosecutor", "An attacker who knows that a certain person is in the table. The risk is one over the class size."),
    ("Journalist", "An attacker who only knows the population. The risk is one over the people in it who fit a class."),
    ("Marketer", "An attacker who matches everybody and is content to be right about a share of them."),
)
_LOSSES = (
    (
        "Loss of precision (NCP)",
        (
            "The share of a column's range, or of its values, that a released value leaves open: 0 is exact, 1 "
            "says nothing. Rows that are left out count as 1."
        ),
    ),
    ("Precision", "1 less the mean share of each hierarchy's height that was climbed: 1 is exact, 0 says nothing."),
    ("Untold variety (entropy)", "The share of the columns' information, in bits, that the release no longer tells."),
    (
        "Discernibility",
        (
            "For every row the number of rows that it cannot be told from, added up; a row that is left out "
            "counts as all rows. The smaller, the more detail is left."
        ),
    ),
    (
        "Average class size (C_avg)",
        "The mean class size over the smallest: near 1, classes are about equally large.",
    ),
    ("Random count questions", "How far counts of random selections of rows, estimated from the release, are off."),
)
_FACTS = {
    "nodes": "Combinations of levels",
    "evaluated": "Combinations looked at",
    "is_optimal": "Proven the best",
    "is_split": "Equal rows in different classes",
}


def model_name(model: Guarantee) -> str:
    """Return the usual name of a model, with its kind."""
    name = privacy_models.get(model.kind).title if model.kind in privacy_models else model.kind.replace("_", " ")
    variant = getattr(model, "variant", None)
    return name if variant is None else f"{name} ({variant})"


def glossary(models: Iterable[Guarantee]) -> list[tuple[str, str]]:
    """Return the words that a report uses and what they mean; of the models, those it is about."""
    kinds = dict.fromkeys(model.kind for model in models if model.kind in privacy_models)
    named = [(known.title, known.meaning) for known in map(privacy_models.get, kinds)]
    return [*_COLUMNS, *named, *_ATTACKERS, *_LOSSES]


def facts_in_words(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what an algorithm tells about its run as names and texts."""
    return [(_FACTS.get(name, name.replace("_", " ").capitalize()), _fact(value)) for name, value in facts.items()]


def _fact(value: Any) -> str:  # numbers, truths, names and dictionaries of them
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case Mapping():
            return ", ".join(f"{name}: {_fact(part)}" for name, part in value.items())
        case _:
            return str(value)
