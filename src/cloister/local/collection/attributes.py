"""Several attributes of each person: what is sent about them, what it costs in all, and every attribute's shares.

    people = SeveralAttributes({"sex": ["f", "m"], "region": 12}, epsilon=1)
    reports = people.randomize(table)
    estimates = people.estimate(reports)

`cloister.local.collection._designs` describes the methods. The guarantee always states what one person pays for
everything that leaves their device, whichever of their attributes differ.

People's values come as columns by name, or as one mapping for each person. Reports hold the rows of every attribute in
memory, and outside one JSON object for each person, which names the collection and holds what was reported for each
attribute, or for the one that was asked. Readers refuse everything that no device with the collection can have made,
and never repeat it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.core.digests import digest_of
from cloister.core.exact import Number
from cloister.core.guarantees import Caveat, LocalDP
from cloister.core.random import RandomState, caveats_of, random_source
from cloister.core.validation import check_choice, check_probability
from cloister.errors import (
    ForeignReportError,
    OutsideDomainError,
    ParameterError,
    ParameterTypeError,
    TooFewReportsError,
    UnknownColumnError,
)
from cloister.local._output_space import Payload, more_than_a_report, report_error
from cloister.local.collection._designs import All, AttributeAnswers, Estimate, FakeData, SampleOne, designs
from cloister.local.collection._question_protocols import (
    check_frequency_protocol,
    check_questions,
    protocol_by_size,
    protocol_for,
    support_protocol_by_size,
)
from cloister.local.collection.joint_estimates import joint_table
from cloister.local.draws import Draws, SourceDraws
from cloister.local.estimates import FrequencyEstimate, attach_guarantee, enough
from cloister.local.frequency.support import check_support_protocol
from cloister.local.protocol import FOLLOWED, Protocol, check_local_epsilon, open_protocol
from cloister.local.reports import Reports, foreign, items_of, json_lines

__all__ = ["AttributeReports", "SeveralAttributes", "columns_of", "read_attribute_reports"]


def columns_of(table: Any, names: Iterable[str]) -> dict[str, Any]:  # whatever has columns, or people
    """Return the values of each name.

    Args:
        table: a mapping, a data frame or an Arrow table; or a list with one mapping for each person.
        names: the columns that are needed.

    Raises:
        UnknownColumnError: if one is not there, or not for every person; the values are not told.
    """
    if isinstance(table, list | tuple) and table and all(isinstance(person, Mapping) for person in table):
        return {name: [_value(person, name) for person in table] for name in names}
    return {name: _value(table, name) for name in names}


def _value(table: Any, name: str) -> Any:  # whatever has columns
    try:
        return table[name]
    except (KeyError, IndexError, TypeError, ValueError):
        raise _missing(name, _names(table)) from None


def _missing(name: str, names: list[str]) -> UnknownColumnError:
    error = UnknownColumnError(name, names)
    listing = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    there = f" There are: {listing}." if names else ""
    error.fix = f'add the column "{name}" to the people\'s values, or drop the question.{there}'
    return error


def _names(table: Any) -> list[str]:  # whatever has columns
    """Return the names of the columns; the columns of an Arrow table are people's values."""
    found = table if isinstance(table, Mapping) else getattr(table, "column_names", getattr(table, "columns", ()))
    names = getattr(getattr(table, "schema", None), "names", found)
    return [name for name in names if isinstance(name, str)]


ANSWERS_SCHEMA = "cloister.answers/1"
_ANSWERS_PARTS = frozenset({"schema", "collection", "answers"})


@dataclass(frozen=True, eq=False, repr=False)
class AttributeReports:
    """What people sent about several attributes.

    Attributes:
        collection: what it was made with.
        rows: the reports of each attribute.
        asked: the place of each person's attribute, where each reported only one.
        caveats: what breaks the promise, such as predictable randomness.
    """

    collection: SeveralAttributes
    rows: Mapping[str, Payload]
    asked: NDArray[np.int64] | None = None
    caveats: tuple[Caveat, ...] = ()

    def __len__(self) -> int:
        """Return the number of people."""
        return len(next(iter(self.rows.values()))) if self.asked is None else len(self.asked)

    def __add__(self, other: AttributeReports) -> AttributeReports:
        if other.collection != self.collection:
            raise foreign()
        asked = None
        # Which attribute was asked is known either of all people or of none, as the design is the same.
        if self.asked is not None and other.asked is not None:
            asked = np.concatenate([self.asked, other.asked])
        rows = {name: np.concatenate([rows, other.rows[name]]) for name, rows in self.rows.items()}
        return replace(self, rows=rows, asked=asked, caveats=tuple(dict.fromkeys(self.caveats + other.caveats)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} of {self.collection!r})"

    def of(self, name: str) -> Reports:
        """Return the reports of one attribute."""
        return Reports(self.collection.protocols[name], self.rows[name], self.caveats)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one JSON-ready object for each person, in order."""
        head = {"schema": ANSWERS_SCHEMA, "collection": self.collection.fingerprint}
        people: list[dict[str, Any]] = [{**head, "answers": {}} for _ in range(len(self))]
        for place, (name, rows) in enumerate(self.rows.items()):
            show = self.collection.protocols[name].output_space.show
            who = np.arange(len(self)) if self.asked is None else np.flatnonzero(self.asked == place)
            for person, row in zip(who.tolist(), rows, strict=True):
                people[person]["answers"][name] = show(row)
        return people

    def to_json_lines(self) -> str:
        """Return one line of JSON for each person."""
        return json_lines(self.to_dicts())


def read_attribute_reports(collection: SeveralAttributes, source: Any) -> AttributeReports:  # whatever holds reports
    """Return reports in any form as reports of a collection, each one checked.

    Args:
        collection: what they must have been made with.
        source: `AttributeReports`, or one or many of them, of JSON text and of JSON-ready dictionaries.

    Raises:
        ForeignReportError: if one is of another collection.
        MalformedReportError: if one is not what this collection makes.
    """
    if isinstance(source, AttributeReports):
        return _check_attribute_reports(collection, source)
    items = items_of(source)
    if items and all(isinstance(item, AttributeReports) for item in items):
        return _join_attribute_reports([_check_attribute_reports(collection, item) for item in items])
    return _parse_people(collection, [_answers(collection, item) for item in items])


def _check_attribute_reports(collection: SeveralAttributes, reports: AttributeReports) -> AttributeReports:
    if reports.collection != collection:
        raise foreign()
    # An object can be made by hand, so that its rows are checked like those of a stranger.
    for name, protocol in collection.protocols.items():
        protocol.output_space.check(reports.rows[name])
    return reports


def _join_attribute_reports(items: list[AttributeReports]) -> AttributeReports:
    first = items[0]
    rows = {name: np.concatenate([item.rows[name] for item in items]) for name in first.rows}
    asked = None if first.asked is None else np.concatenate([item.asked for item in items if item.asked is not None])
    caveats = tuple(dict.fromkeys(caveat for item in items for caveat in item.caveats))
    return replace(first, rows=rows, asked=asked, caveats=caveats)


def _answers(collection: SeveralAttributes, item: object) -> Mapping[str, object]:
    if not isinstance(item, Mapping):
        raise report_error()
    if item.get("schema") != ANSWERS_SCHEMA or item.get("collection") != collection.fingerprint:
        raise foreign()
    if item.keys() - _ANSWERS_PARTS:
        raise more_than_a_report()
    answers = item.get("answers")
    if not isinstance(answers, Mapping) or not _fits(collection, answers):
        raise report_error()
    return answers


def _fits(collection: SeveralAttributes, answers: Mapping[str, object]) -> bool:
    if collection.reports_one:
        # One attribute and no other: two answers of one person would cost twice what was agreed.
        return len(answers) == 1 and answers.keys() <= collection.protocols.keys()
    return answers.keys() == collection.protocols.keys()


def _parse_people(collection: SeveralAttributes, people: list[Mapping[str, object]]) -> AttributeReports:
    rows = {
        name: protocol.output_space.parse([answers[name] for answers in people if name in answers])
        for name, protocol in collection.protocols.items()
    }
    asked = None
    if collection.reports_one:
        places = {name: place for place, name in enumerate(collection.protocols)}
        asked = np.array([places[next(iter(answers))] for answers in people], dtype=np.int64)
    return AttributeReports(collection, rows, asked)


_SCHEMA = "cloister.attributes/1"


class SeveralAttributes:
    """Ask each person about several attributes.

    Attributes:
        protocols: the protocol of each attribute.
        epsilon: what was asked for: all attributes together, or each of them with ``method="all"``.
        method: how a person's attributes are reported.

    >>> people = SeveralAttributes({"sex": ["f", "m"], "smokes": ["no", "yes"]}, epsilon=1)
    >>> reports = people.randomize({"sex": ["f", "m"] * 500, "smokes": ["no", "yes"] * 500})
    >>> list(people.estimate(reports))
    ['sex', 'smokes']
    >>> SeveralAttributes({"sex": ["f", "m"], "smokes": ["no", "yes"]}, epsilon=1, method="all").guarantee.brief()
    'epsilon = 2 per person'
    """

    def __init__(
        self,
        questions: Mapping[str, object],
        *,
        epsilon: Number,
        method: str = "sample_one",
        protocol: Callable[..., Protocol] | None = None,
        amplified: bool = False,
    ) -> None:
        """Agree on what is asked.

        Args:
            questions: for each attribute its public domain, or what makes its protocol when called with ``epsilon=``.
            epsilon: what one person pays for all attributes together; with ``method="all"``, for each.
            method: ``"sample_one"`` (one attribute, chosen by a public coin), ``"split"`` (every attribute with an
                equal part of epsilon), ``"fake_data"`` (one attribute, hidden among random values of the others) or
                ``"all"`` (every attribute with the whole epsilon, which adds up).
            protocol: the class for the domains; by default the better one for each size.
            amplified: use the published, larger epsilon of fake data; one person then pays that one.
        """
        named = check_questions(questions)
        self.epsilon = check_local_epsilon(epsilon)
        ways = designs(len(named), amplified=amplified)
        self.method = check_choice(method, name="method", allowed=ways)
        self.design = ways[self.method]
        if amplified and self.method != "fake_data":
            raise ParameterError("Only fake data is amplified.", fix='use method="fake_data", or drop amplified=True.')
        inner = self.design.inner(self.epsilon)
        kind = protocol or (support_protocol_by_size if self.method == "fake_data" else protocol_by_size)
        self.protocols = {name: protocol_for(asked, epsilon=inner, kind=kind) for name, asked in named.items()}
        if self.method == "fake_data":
            # Fakes are taken out by supports, so that a protocol without them must fail now and not after the
            # collection.
            for each in self.protocols.values():
                check_support_protocol(each)

    @property
    def total(self) -> Fraction:
        """Return the epsilon that one person pays for everything they send."""
        return self.design.total(self.design.inner(self.epsilon))

    def epsilon_of(self) -> Fraction:
        """Return the epsilon of everything that one person sends, by the actual laws of the devices."""
        return self.design.loss(self.protocols)

    def attribute_epsilon(self) -> Fraction:
        """Return a bound of what is lost between people who differ in one attribute alone."""
        if isinstance(self.design, FakeData):
            return exact.log_bounds(self.design.one_attribute_ratio(self.protocols))[1]
        return max(protocol.epsilon for protocol in self.protocols.values())

    @property
    def guarantee(self) -> LocalDP:
        """Return what is promised about everything that one person sends."""
        return LocalDP(epsilon=self.total, unit="person", assumptions=(FOLLOWED,))

    @property
    def reports_one(self) -> bool:
        """Return whether each person reports one attribute, which everybody knows."""
        return isinstance(self.design, SampleOne)

    def encode(self, table: Any) -> tuple[dict[str, NDArray[Any]], bool]:  # columns, or people
        """Return the codes of all attributes, and whether they are of a single person; see `randomize`."""
        columns = columns_of(table, self.protocols)
        found = {name: _encode_attribute(name, protocol, columns[name]) for name, protocol in self.protocols.items()}
        codes = {name: codes for name, (codes, _) in found.items()}
        # The lengths are public and compared before any value is told, so that nobody reports for somebody else's row.
        if len({(len(codes), single) for codes, single in found.values()}) > 1:
            raise ParameterError("The columns have different lengths.", fix="give one value per person in each column.")
        return codes, next(iter(found.values()))[1]

    def randomize(self, table: Any, *, random_state: RandomState = None) -> AttributeReports:  # see `encode`
        """Return what people send.

        Args:
            table: a column for each attribute, or one value for each: a mapping, a data frame or an Arrow table; or a
                list with a mapping for each person. Other columns are not looked at.
            random_state: for tests only.

        Raises:
            OutsideDomainError: if a value is missing or not declared.
        """
        source = random_source(random_state)
        codes, _ = self.encode(table)
        answers = self.perturb(codes, SourceDraws(source))
        return AttributeReports(self, answers.rows, answers.asked, caveats_of(source))

    def perturb(self, codes: Mapping[str, NDArray[Any]], draws: Draws) -> AttributeAnswers:
        """Return reports of codes, with the decisions of the design in order."""
        return self.design.perturb(self.protocols, codes, draws)

    def read(self, source: Any) -> AttributeReports:  # whatever holds reports
        """Return reports in any form, each one checked."""
        return read_attribute_reports(self, source)

    def estimate(self, reports: Any) -> dict[str, Any]:  # whatever holds reports; estimates of each question's kind
        """Return the estimate of every attribute, about all people who took part.

        Raises:
            TooFewReportsError: if nobody reported, or nobody about one of the attributes.
        """
        found = self.read(reports)
        enough(len(found))
        guarantee = replace(self.guarantee, caveats=found.caveats)
        return {name: self._estimate(name, found, guarantee) for name in self.protocols}

    def joint(self, reports: Any, first: str, second: str) -> FrequencyEstimate:  # whatever holds reports
        """Return how many people have each pair of values of two attributes, without bias.

        The domain of the estimate holds the pairs: ``estimate.counts["f", "never"]``. Errors of pairs are much larger
        than those of single values; see `cloister.local.collection.joint_estimates`.

        Raises:
            ParameterError: if nobody reports both attributes (``"sample_one"``, ``"fake_data"``), or their reports do
                not support values of a domain.
            UnknownColumnError: if there is no such attribute.
        """
        if not isinstance(self.design, All):
            raise ParameterError(
                "Nobody reported both attributes truly, so their table cannot be told.",
                fix='ask with method="split" or method="all"; or make one question of both, with pairs as its answers.',
            )
        # The same reports twice are not independent, and their product would estimate nothing.
        if self._protocol(first) is self._protocol(second):
            raise ParameterError("A table needs two attributes, this is one twice.", fix="name another attribute.")
        found = self.read(reports)
        return joint_table(found.of(first), found.of(second), guarantee=replace(self.guarantee, caveats=found.caveats))

    def variance(self, name: str, frequency: object = 0) -> float:
        """Return the variance of an estimated share times the number of people, for a value of a true share."""
        share = float(check_probability(frequency, name="frequency"))
        return self.design.variance(check_frequency_protocol(self._protocol(name)), share)

    def to_dict(self) -> dict[str, Any]:
        """Return the public record that devices get."""
        record = {
            "schema": _SCHEMA,
            "method": self.method,
            "amplified": isinstance(self.design, FakeData) and self.design.amplified,
            "epsilon": exact.text(self.epsilon),
            "attributes": [{"name": name, "protocol": made.to_dict()} for name, made in self.protocols.items()],
        }
        return {**record, "fingerprint": digest_of(record)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> SeveralAttributes:
        """Return the collection of a public record.

        Raises:
            ForeignReportError: if the record was changed or made by another version.
        """
        try:
            questions = {item["name"]: open_protocol(item["protocol"]) for item in record["attributes"]}
            options = {key: record[key] for key in ("epsilon", "method", "amplified")}
        except (KeyError, TypeError):
            raise ParameterTypeError(
                "This is not the record of a collection.", fix="give what to_dict wrote."
            ) from None
        made = cls(questions, **options)
        # Nothing of the record is trusted but what this version would write itself.
        if made.to_dict() != record:
            raise ForeignReportError(
                "The record of the collection was changed, or made by another version.",
                fix="take the record from the collector again, and use the same version of cloister on both sides.",
            )
        return made

    @property
    def fingerprint(self) -> str:
        """Return the hash of the record."""
        return str(self.to_dict()["fingerprint"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SeveralAttributes) and (self is other or other.fingerprint == self.fingerprint)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        names = ", ".join(self.protocols)
        return f"{type(self).__name__}({names}; {self.method}, {self.guarantee.brief()})"

    def _protocol(self, name: str) -> Protocol:
        if name not in self.protocols:
            raise UnknownColumnError(name, self.protocols)
        return self.protocols[name]

    def _estimate(self, name: str, reports: AttributeReports, guarantee: LocalDP) -> Estimate:
        part = reports.of(name)
        if not len(part):
            raise TooFewReportsError(
                f'Nobody reported "{name}".', fix="collect from more people, or ask about fewer attributes."
            )
        return attach_guarantee(self.design.estimate(part, people=len(reports)), guarantee)


def _encode_attribute(name: str, protocol: Protocol, column: Any) -> tuple[NDArray[Any], bool]:  # values in any form
    try:
        return protocol.encode(column)
    except OutsideDomainError as error:
        raise OutsideDomainError(f'Attribute "{name}": {error.problem}', fix=error.fix) from None
