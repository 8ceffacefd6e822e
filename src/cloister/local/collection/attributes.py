"""Several attributes of each person: what is sent about them, what it costs in all, and every attribute's shares.

    people = SeveralAttributes({"sex": ["f", "m"], "region": 12}, epsilon=1)
    reports = people.randomize(table)
    estimates = people.estimate(reports)

`cloister.local.collection.designs` describes the methods. The guarantee always states what one person pays for
everything that leaves their device, whichever of their attributes differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from cloister.core import exact
from cloister.core.guarantees import LocalDP
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
from cloister.local.collection.attribute_reports import AttributeReports, read_attribute_reports
from cloister.local.collection.debiasing import supporting
from cloister.local.collection.designs import All, Answers, Estimate, FakeData, SampleOne, designs
from cloister.local.collection.joint import joint_table
from cloister.local.collection.promises import promised
from cloister.local.collection.questions import (
    check_questions,
    fingerprint_of,
    frequency_protocol,
    protocol_by_size,
    protocol_for,
    supporting_by_size,
)
from cloister.local.collection.tables import columns_of
from cloister.local.draws import Draws, SourceDraws
from cloister.local.estimates import FrequencyEstimate, enough
from cloister.local.protocol import FOLLOWED, Protocol, check_local_epsilon, open_protocol

__all__ = ["SeveralAttributes"]

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
        epsilon: object,
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
        kind = protocol or (supporting_by_size if self.method == "fake_data" else protocol_by_size)
        self.protocols = {name: protocol_for(asked, epsilon=inner, kind=kind) for name, asked in named.items()}
        if self.method == "fake_data":
            for each in self.protocols.values():
                supporting(each)

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
        found = {name: _encoded(name, protocol, columns[name]) for name, protocol in self.protocols.items()}
        codes = {name: codes for name, (codes, _) in found.items()}
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

    def perturb(self, codes: Mapping[str, NDArray[Any]], draws: Draws) -> Answers:
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
        than those of single values; see `cloister.local.collection.joint`.

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
        if self._protocol(first) is self._protocol(second):
            raise ParameterError("A table needs two attributes, this is one twice.", fix="name another attribute.")
        found = self.read(reports)
        return joint_table(found.of(first), found.of(second), guarantee=replace(self.guarantee, caveats=found.caveats))

    def variance(self, name: str, frequency: object = 0) -> float:
        """Return the variance of an estimated share times the number of people, for a value of a true share."""
        share = float(check_probability(frequency, name="frequency"))
        return self.design.variance(frequency_protocol(self._protocol(name)), share)

    def to_dict(self) -> dict[str, Any]:
        """Return the public record that devices get."""
        record = {
            "schema": _SCHEMA,
            "method": self.method,
            "amplified": isinstance(self.design, FakeData) and self.design.amplified,
            "epsilon": exact.text(self.epsilon),
            "attributes": [{"name": name, "protocol": made.to_dict()} for name, made in self.protocols.items()],
        }
        return {**record, "fingerprint": fingerprint_of(record)}

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
        return promised(self.design.estimate(part, people=len(reports)), guarantee)


def _encoded(name: str, protocol: Protocol, column: Any) -> tuple[NDArray[Any], bool]:  # values in any form
    try:
        return protocol.encode(column)
    except OutsideDomainError as error:
        raise OutsideDomainError(f'Attribute "{name}": {error.problem}', fix=error.fix) from None
