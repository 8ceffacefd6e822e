"""What every aggregate of a query is: what it needs measured, how its answer follows from noise, and how it is spelled.

An aggregate is public: it says what is asked, and sees no row. `Aggregate.measure` names what has to be measured, with
public bounds from which the sensitivity follows (`cloister.queries._measurements`). `Aggregate.answer` computes the
answer and its error from what was measured, after the noise (`cloister.queries._release`). Privacy therefore rests on
the measurements alone: whatever `answer` does is post-processing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from numpy.typing import NDArray
from sqlglot import exp

from cloister.core.registry import Registry
from cloister.errors import InternalError
from cloister.queries._question import FixedPointNumber, expression_text
from cloister.queries._uncertainty import Uncertainty

if TYPE_CHECKING:
    from cloister.queries._measurements import MeasurementNeeds
    from cloister.queries._release import NoisyMeasurements

__all__ = [
    "Aggregate",
    "AggregateKind",
    "AggregateOperand",
    "NumberAggregate",
    "ValueAggregate",
    "aggregates",
    "register",
]

Answered: TypeAlias = tuple[NDArray[Any], Uncertainty]
"""The answer in every group, and its error."""


@dataclass(frozen=True, slots=True)
class Aggregate(ABC):
    """What is asked of the rows of each group."""

    words: ClassVar[str] = ""
    """What it is called in a preview, such as "mean of" before a column."""
    key: ClassVar[str] = ""
    """What stored answers call it, where that is not the name of the class."""
    needs_limit: ClassVar[bool] = True
    """Whether it moves with the number of rows of a person, which therefore has to be limited."""

    @abstractmethod
    def measure(self, needs: MeasurementNeeds) -> None:
        """Say what has to be measured."""

    @abstractmethod
    def answer(self, noisy: NoisyMeasurements) -> Answered:
        """Return the answer in every group, and its error, from what was measured."""

    @property
    def number(self) -> FixedPointNumber | None:
        """Return the number that is clamped to public bounds, if there is one."""
        return None

    @property
    def operand(self) -> exp.Expression | None:
        """Return what the engine computes in each row, if that is anything."""
        return None

    @property
    def title(self) -> str:
        """Return what it is called."""
        return self.words

    @property
    def name(self) -> str:
        """Return what stored answers and unnamed columns call it."""
        return _stored_name(type(self))

    def canonical(self) -> str:
        """Return a text that is the same for the same aggregate."""
        values = (getattr(self, item.name) for item in fields(self) if item.name != "label")
        kind = type(self)
        # Outside classes that `register` cannot see, behind a function that makes them, may have one name as well.
        home = "" if kind.__module__.startswith("cloister.") else f"{kind.__module__}.{kind.__qualname__}:"
        return f"{home}{self.name}({', '.join(map(_text, values))})"


@dataclass(frozen=True, slots=True)
class NumberAggregate(Aggregate):
    """An aggregate of a number within public bounds."""

    of: FixedPointNumber

    @property
    def number(self) -> FixedPointNumber:
        """Return the number."""
        return self.of

    @property
    def operand(self) -> exp.Expression:
        """Return the number in steps."""
        return self.of.steps

    @property
    def title(self) -> str:
        """Return what it is called."""
        return f"{self.words} {self.of.label}"


@dataclass(frozen=True, slots=True)
class ValueAggregate(Aggregate):
    """An aggregate of values of any type."""

    of: exp.Expression
    label: str

    @property
    def operand(self) -> exp.Expression:
        """Return the value."""
        return self.of

    @property
    def title(self) -> str:
        """Return what it is called."""
        return f"{self.words} {self.label}"


class AggregateOperand(StrEnum):
    """What an aggregate is of."""

    ROWS = "rows"
    VALUE = "value"
    NUMBER = "number"


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateKind:
    """How people ask for an aggregate.

    Attributes:
        make: makes it, from a number or a value (with a label) and further arguments.
        operand: what it is of.
        is_squared: whether numbers are squared, which then have fewer digits.
        sql: for each function of SQL, as the parser calls it, what makes the aggregate from a number and constants; a
            function that the parser does not know is called by its name in capitals.
        examples: further arguments, each by an example, in methods and in SQL.
    """

    make: Callable[..., Aggregate]
    operand: AggregateOperand = AggregateOperand.NUMBER
    is_squared: bool = False
    sql: Mapping[str, Callable[..., Aggregate]] = field(default_factory=dict)
    examples: tuple[str, ...] = ()


aggregates: Registry[AggregateKind] = Registry("aggregate")
"""The kinds that `PrivateTable.aggregate` knows by name."""
sql_functions: dict[str, tuple[AggregateKind, Callable[..., Aggregate]]] = {}
"""For each function of SQL over a number, its kind and what makes it."""


def register(name: str, kind: AggregateKind) -> None:
    """Make a kind known to `PrivateTable.aggregate` by a name, and to SQL by its functions."""
    for function in kind.sql:
        if function in sql_functions:
            raise InternalError(f'two aggregates are called "{function}" in SQL')
    known = [made for _, other in aggregates.items() for made in _classes(other)]
    for made in _classes(kind):
        # Stored answers are found by this name: each would be given the other's, which measured something else.
        if any(made is not other and _stored_name(made) == _stored_name(other) for other in known):
            raise InternalError(f'the answers of two aggregates are stored as "{_stored_name(made)}"')
    aggregates.register(name)(kind)
    # Only now: a kind that is refused must not stay in SQL.
    sql_functions.update({function: (kind, make) for function, make in kind.sql.items()})


def _classes(kind: AggregateKind) -> list[type[Aggregate]]:
    """Return the classes of what a kind makes, as far as they are stated."""
    return [made for made in (kind.make, *kind.sql.values()) if isinstance(made, type) and issubclass(made, Aggregate)]


def _stored_name(made: type[Aggregate]) -> str:
    return made.key or made.__name__


def _text(value: object) -> str:
    return expression_text(value) if isinstance(value, exp.Expression) else str(value)
