"""Guarantees about others, all of several or none at all, and reading any guarantee from its dictionary form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from cloister.core.guarantees.base import KNOWN_CAVEATS, Caveat, Guarantee, find_kind, register
from cloister.core.guarantees.syntactic import CLOSING, Syntactic
from cloister.errors import ParameterError, ParameterTypeError


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class NoGuarantee(Guarantee):
    """Nothing is promised, said aloud."""

    kind: ClassVar[str] = "none"
    reason: str

    @property
    def holds(self) -> bool:
        """Return False: there is no promise that could hold."""
        return False

    def _promise(self) -> str:
        return f"Nothing is promised: {self.reason}."


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class AllOf(Guarantee):
    """Several promises about one release, all of which are kept."""

    kind: ClassVar[str] = "all_of"
    parts: tuple[Guarantee, ...]

    @property
    def holds(self) -> bool:
        """Return whether every promise holds."""
        return not any(caveat.breaks for caveat in self.caveats) and all(part.holds for part in self.parts)

    def brief(self) -> str:
        """Return the numbers of every promise."""
        return "; ".join(part.brief() for part in self.parts)

    def _promise(self) -> str:
        shared = self._common_assumptions()
        told = " ".join(part.without_assumptions(shared).explain() for part in self.parts)
        if told.count(CLOSING) > 1 and all(isinstance(part, Syntactic) for part in self.parts):
            told = f"{told.replace(CLOSING, '')} These are properties of the table, not differential privacy."
        return f"{told} This assumes: {'; '.join(shared)}." if shared else told

    def _common_assumptions(self) -> tuple[str, ...]:
        """Return what every promise assumes, so that it is said once."""
        first = self.parts[0].assumptions if self.parts else ()
        return tuple(text for text in first if all(text in part.assumptions for part in self.parts))


def guarantee_from_dict(values: Mapping[str, Any]) -> Guarantee:
    """Return the guarantee that `Guarantee.to_dict` wrote."""
    if not isinstance(values, Mapping):
        raise ParameterTypeError("This is not a dictionary.", fix="use the dictionary as to_dict() wrote it.")
    kind, _, version = str(values.get("schema", "")).removeprefix("cloister.guarantee.").partition("/")
    cls = find_kind(kind)
    if cls is None or version != "1":
        raise ParameterError(
            "This is not a guarantee that this version of cloister can read.",
            fix="use a dictionary written by to_dict(), or a newer cloister.",
        )
    known = {item.name for item in fields(cls)}
    # Nothing may be missing: a guarantee that lost its caveats would promise more than was promised.
    if values.keys() != known | {"schema", "holds"} or not isinstance(values["unit"], str):
        raise ParameterError("This is not a whole guarantee.", fix="use the dictionary as to_dict() wrote it.")
    arguments: dict[str, Any] = {name: values[name] for name in known}
    arguments["assumptions"] = tuple(_check_list(values["assumptions"], of=str))
    arguments["caveats"] = tuple(_caveat(item) for item in _check_list(values["caveats"], of=dict))
    # The field is called after the literature's "kind" in the constructor, a name that classes use for themselves.
    if "variant" in arguments:
        arguments["kind"] = arguments.pop("variant")
    if "parts" in arguments:
        arguments["parts"] = tuple(guarantee_from_dict(part) for part in _check_list(arguments["parts"], of=dict))
    guarantee = cls(**arguments)
    if values["holds"] is not guarantee.holds:
        raise ParameterError(
            "This guarantee says otherwise than its caveats whether it holds: it was changed.",
            fix="use the dictionary as to_dict() wrote it.",
        )
    return guarantee


def _check_list(values: Any, *, of: type) -> list[Any]:  # from outside, hence anything
    if not isinstance(values, list | tuple) or not all(isinstance(item, of) for item in values):
        raise ParameterTypeError("This is not a guarantee.", fix="use the dictionary as to_dict() wrote it.")
    return list(values)


def _caveat(values: Mapping[str, Any]) -> Caveat:
    """Return a caveat; what is known to break a promise breaks it, whatever the dictionary says."""
    kinds = {name: type(value) for name, value in values.items()}
    if kinds != {"code": str, "text": str, "breaks": bool}:
        raise ParameterTypeError("This is not a caveat.", fix="use the dictionary as to_dict() wrote it.")
    return KNOWN_CAVEATS.get(values["code"]) or Caveat(**values)
