"""How pages write amounts, times, numbers with margins, questions and promises, and draw budgets and survey results.

Charts are SVG from the plotting package, with the same numbers as text or as a table beside them, for those who do not
see them.
"""

from __future__ import annotations

from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

from markupsafe import Markup

from cloister.core.exact import number, text_of_number
from cloister.core.guarantees import guarantee_from_dict
from cloister.core.wordings import format_estimate, format_price, join_words, percent
from cloister.errors import CloisterError, InternalError
from cloister.hub.domain.terms import VOCABULARY
from cloister.hub.services.queries import MeasureKind
from cloister.hub.use_cases.algorithms.catalogue import RUN
from cloister.hub.use_cases.surveys import estimates
from cloister.plotting import lines

_ACTIVE = frozenset({"a", "animate", "embed", "foreignobject", "iframe", "image", "object", "script", "set", "use"})
_LONGEST = 140

MEASURES = {kind.value: kind.words for kind in MeasureKind}
"""What can be found, as the builder says it."""

COMPARISONS = {
    "=": "is",
    "!=": "is not",
    "<": "is below",
    "<=": "is at most",
    ">": "is above",
    ">=": "is at least",
}
"""How values can be compared, as the builder says it."""


def amount(budget: Mapping[str, Any]) -> str:
    """Return a budget or cost as people write it: "epsilon 0.5, delta 1e-06"."""
    measure = "epsilon" if budget.get("epsilon") is not None else "rho"
    return format_price(measure, number(budget[measure]), number(budget.get("delta", 0)))


def describe_detail(value: Any) -> str:
    """Return a detail of the audit log in words: budgets, lists and yes or no as people write them."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case Mapping() if "epsilon" in value or "rho" in value:
            return amount(value)
        case Mapping():
            return (
                ", ".join(f"{str(name).replace('_', ' ')} {describe_detail(item)}" for name, item in value.items())
                or "none"
            )
        case list() | tuple():
            return ", ".join(describe_detail(item) for item in value) or "none"
    return str(value)


def plain(text: str) -> str:
    """Return an exact number as people type it: a decimal where that says the same, such as 0.5 for 1/2."""
    return text_of_number(number(text))


def day(moment: str | None) -> str:
    """Return a moment to the minute, or nothing."""
    return "" if moment is None else f"{moment[:16].replace('T', ' ')} UTC"


def format_value(value: Any, margin: float | None = None) -> str:
    """Return a value with as many digits as its margin leaves meaningful."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return "missing" if value is None else str(value)
    return format_estimate(value, margin)


def moment(time: str | None) -> str:
    """Return a time as people read it, in UTC."""
    return "" if not time else time[:16].replace("T", " ")


def purpose(name: str) -> str:
    """Return what a purpose means, where the vocabulary knows it."""
    return VOCABULARY.get(name, name)


def describe_question(job: Mapping[str, Any]) -> str:
    """Return what a piece of work was to find, in a line; the title of its service where nothing tells more."""
    parameters = job["parameters"] or {}
    question = parameters.get("question")
    if isinstance(question, Mapping):
        return _cut(_in_words(question))
    if isinstance(parameters.get("sql"), str):
        return _cut(" ".join(parameters["sql"].split()))
    return str(parameters["algorithm"] if job["service"] == RUN else job["title"])


def promise(guarantee: Mapping[str, Any] | None) -> str:
    """Return what a result promises, in one sentence, or nothing where there is no such sentence."""
    if not guarantee:
        return ""
    try:
        return guarantee_from_dict(guarantee).explain()
    except (CloisterError, KeyError):
        return ""


def safe_svg(text: str) -> Markup:
    """Return a chart of the plotting package as markup; anything that could run is a bug."""
    drawing = _Drawing()
    drawing.feed(text)
    if not text.lstrip().startswith("<svg") or drawing.is_active:
        raise InternalError("a chart is not a plain drawing")
    return Markup(text)  # noqa: S704  # checked above, and drawn by the hub itself


class _Drawing(HTMLParser):
    """Reads a chart as browsers do, and notes elements and attributes that could run or load something."""

    def __init__(self) -> None:
        super().__init__()
        self.is_active = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name.rpartition(":")[2] for name, _ in attrs}
        if tag in _ACTIVE or names & {"href", "src", "style"} or any(name.startswith("on") for name in names):
            self.is_active = True


def _in_words(question: Mapping[str, Any]) -> str:
    measures = [
        " ".join(part for part in (MEASURES.get(item["kind"], item["kind"]), item.get("column")) if part)
        for item in question.get("measures", ())
    ]
    conditions = [
        f"{item['column']} {COMPARISONS.get(item['comparison'], item['comparison'])} {item['value']}"
        for item in question.get("conditions", ())
    ]
    where = f", where {join_words(conditions)}" if conditions else ""
    groups = f", by {join_words(question['groups'])}" if question.get("groups") else ""
    words = f"{join_words(measures)}{groups}{where}"
    return words[:1].upper() + words[1:]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


FILTERS = {
    "amount": amount,
    "asked": describe_question,
    "day": day,
    "moment": moment,
    "percent": percent,
    "plain": plain,
    "promise": promise,
    "purpose": purpose,
    "safe_svg": safe_svg,
    "shown": format_value,
    "told": describe_detail,
}


_FEWEST = 3


def burn_down(account: dict[str, Any]) -> str:
    """Return how a budget was spent, charge by charge, or nothing where there is nothing to see yet."""
    measure = "epsilon" if "epsilon" in account["budget"] else "rho"
    left: list[tuple[float, float]] = []
    budget = number(account["budget"][measure])
    for place, item in enumerate(account["items"]):
        budget = number(item["budget"][measure]) if item["kind"] in ("open", "raise") else budget
        left.append((float(place), float(budget - number(item["spent"][measure]))))
    if len(left) < _FEWEST:
        return ""
    return lines({"left": left}, title="What is left of the budget", x="entries in the ledger", y=measure).to_svg(
        owner="burn"
    )


def draw_questions(found: dict[str, Any]) -> dict[str, Markup]:
    """Return the picture of each question that has one; the charts are the hub's own, and hold no foreign markup."""
    names = [one["question"] for one in found["questions"] if one["chart"] is not None]
    return {name: safe_svg(estimates.chart(found, name).to_svg(owner=f"q{place}")) for place, name in enumerate(names)}
