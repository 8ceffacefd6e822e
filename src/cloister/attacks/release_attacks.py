"""Attacks on releases by name: all that the command line and the gate have to know in order to run one.

An attack that is offered here is a command, ``cloister attack NAME``, without a further line of code. One that is
offered with a judge is run by the gate as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from cloister.attacks.result import AttackResult
from cloister.core.registry import Registry

if TYPE_CHECKING:
    from cloister.attacks.gating.judgments import GateJudgment

__all__ = ["PARAMETERS", "AttackChoice", "Given", "ReleaseAttack", "offer_attack", "release_attacks"]

Attack = TypeVar("Attack", bound=Callable[..., AttackResult])


class Given(StrEnum):
    """What a custodian gives to an attack: tables, and columns."""

    RELEASE = "release"
    ORIGINAL = "original"
    CONTROL = "control"
    TRUTH = "truth"
    QUASI = "quasi"
    SENSITIVE = "sensitive"
    SECRET = "secret"  # noqa: S105  # the name of a column

    @property
    def is_table(self) -> bool:
        """Return whether it is a table rather than the name of columns."""
        return self in (Given.RELEASE, Given.ORIGINAL, Given.CONTROL, Given.TRUTH)


PARAMETERS: Final[Mapping[str, Given]] = {
    "release": Given.RELEASE,
    "synthetic": Given.RELEASE,
    "original": Given.ORIGINAL,
    "auxiliary": Given.ORIGINAL,
    "control": Given.CONTROL,
    "truth": Given.TRUTH,
    "quasi_identifiers": Given.QUASI,
    "sensitive": Given.SENSITIVE,
    "secret": Given.SECRET,
}
"""By the name of a parameter of an attack, what is given to it."""


@dataclass(frozen=True, slots=True)
class AttackChoice:
    """One of a few words that an attack takes, with a sentence about what they decide."""

    allowed: Sequence[str]
    help: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseAttack:
    """An attack on a release.

    Attributes:
        name: its name on the command line.
        kind: the kind of release that it is for, as `cloister.core.provenance` names it.
        run: the attack itself.
        takes: the parameters that custodians give, each one of `PARAMETERS`.
        needs: those of them that must be given though the function has a default.
        choices: further parameters that take one of a few words.
        summary: what it does, for the command line.
        example: its arguments in an example.
        judge: what the gate concludes from its result; None if the gate does not run it by this entry.
    """

    name: str
    kind: str
    run: Callable[..., AttackResult]
    takes: tuple[str, ...]
    needs: tuple[str, ...] = ()
    choices: Mapping[str, AttackChoice] = field(default_factory=dict)
    summary: str
    example: str
    judge: Callable[..., GateJudgment] | None = None

    @property
    def words(self) -> str:
        """Return the name as people say it."""
        return self.name.replace("-", " ")

    def takes_given(self, given: Given) -> bool:
        """Return whether something is given to this attack."""
        return given in [PARAMETERS[parameter] for parameter in self.takes]

    def is_needed(self, parameter: str) -> bool:
        """Return whether a parameter must be given."""
        return parameter in self.needs or self.default_of(parameter) is inspect.Parameter.empty

    def default_of(self, parameter: str) -> Any:
        """Return the default of a parameter."""
        return inspect.signature(self.run).parameters[parameter].default

    def keep_accepted(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of some options that the attack has a parameter for."""
        known = inspect.signature(self.run).parameters
        return {name: value for name, value in options.items() if name in known}

    def run_on(self, given: Mapping[str, Any], **options: Any) -> AttackResult:
        """Run the attack on what is given; what is missing or None is left to its defaults."""
        values = {parameter: given.get(PARAMETERS[parameter]) for parameter in self.takes}
        return self.run(**{name: value for name, value in values.items() if value is not None}, **options)


release_attacks: Final[Registry[ReleaseAttack]] = Registry("attack")
"""The attacks that are offered, by their names on the command line."""


def offer_attack(name: str, **entry: Any) -> Callable[[Attack], Attack]:
    """Return a decorator that offers an attack on releases by name, with the other attributes of a `ReleaseAttack`."""

    def offer(attack: Attack) -> Attack:
        release_attacks.register(name)(ReleaseAttack(name=name, run=attack, **entry))
        return attack

    return offer
