"""The result of measuring a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cloister.anonymize.risk.attained import AttainedValues
from cloister.anonymize.risk.disclosure import Disclosure
from cloister.anonymize.risk.measuring import Risk
from cloister.anonymize.risk.population import PopulationRisk
from cloister.anonymize.utility.measuring import Utility
from cloister.core.guarantees import Guarantee, NoGuarantee
from cloister.core.result import Result

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = ["Assessment"]

NOT_PROTECTED = NoGuarantee(reason="this table was measured, not protected")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment(Result):
    """What was measured about a table.

    Attributes:
        risk: what it gives away.
        utility: what it is still good for, if it was compared with its original.
        guarantee: the promise of the release that was measured, or that there is none.
    """

    schema: ClassVar[str] = "cloister.assessment/1"

    risk: Risk
    utility: Utility | None = None
    guarantee: Guarantee = NOT_PROTECTED

    def __repr__(self) -> str:
        return f"Assessment({self})"

    def __str__(self) -> str:
        found = self.risk.reidentification
        text = (
            f"k = {self.risk.models.k}, {percent(found.unique_share)} of {found.rows:,} {self.risk.units} unique, "
            f"risk at most {percent(found.prosecutor_max)} and {percent(found.prosecutor_average)} on average"
        )
        return text if self.utility is None else f"{text}; {self.utility}"

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        found, models, units = self.risk.reidentification, self.risk.models, self.risk.units
        rows = [
            ("attacker knows", ", ".join(self.risk.quasi_identifiers)),
            (
                f"{units} and classes",
                f"{found.rows:,} {units} in {found.classes:,} classes, {self.risk.suppressed:,} suppressed",
            ),
            ("k-anonymity", _k_text(self.risk)),
            (f"unique {units}", f"{found.unique:,} ({percent(found.unique_share)})"),
            (f"{units} at risk", f"{percent(found.at_risk)} above a risk of {percent(found.threshold)}"),
            ("prosecutor", f"{percent(found.prosecutor_max)} at most, {percent(found.prosecutor_average)} on average"),
            ("journalist", _journalist_text(self.risk)),
            ("marketer", f"{percent(found.marketer)} of all {units} matched rightly"),
        ]
        if self.risk.population is not None:
            rows.append(("population", _population_text(self.risk.population)))
        for told, attained in zip(self.risk.disclosure, models.sensitive, strict=True):
            rows += _sensitive_rows(told, attained)
        rows += [] if self.utility is None else list(self.utility.summary())
        return (*rows, ("promise", self.guarantee.explain()))

    def plot(self) -> Figure:
        """Return a chart of the risks."""
        from cloister.plotting import bars_with_errors

        found = self.risk.reidentification
        bars = {
            "highest risk": found.prosecutor_max,
            "average risk": found.prosecutor_average,
            f"rows above {percent(found.threshold)}": found.at_risk,
            "unique rows": found.unique_share,
            **{f"{told.attribute}: certain": told.homogeneous for told in self.risk.disclosure},
        }
        return bars_with_errors(
            list(bars),
            [100 * share for share in bars.values()],
            [None] * len(bars),
            title="What the table gives away",
            x="measure",
            y="%",
            subtitle=f"An attacker knows {', '.join(self.risk.quasi_identifiers)}",
        )

    def _fields(self) -> dict[str, Any]:
        return {
            "risk": self.risk.to_dict(),
            "utility": None if self.utility is None else self.utility.to_dict(),
        }


def _sensitive_rows(told: Disclosure, attained: AttainedValues) -> list[tuple[str, str]]:
    guess = f"right in {percent(told.posterior_average)} of rows (before: {percent(told.prior)})"
    models = (
        f"l = {attained.distinct} distinct, {attained.frequency:.3g} frequency, {attained.entropy:.3g} entropy; "
        f"t = {attained.equal:.3g}"
    )
    return [
        (told.attribute, f"certain for {percent(told.homogeneous)} of rows; the best guess is {guess}"),
        (
            f"{told.attribute}: models",
            models,
        ),
    ]


def _k_text(risk: Risk) -> str:
    models = risk.models
    text = f"{models.k:,} row{'' if models.k == 1 else 's'}"
    if models.k_persons is not None:
        text += f", {models.k_persons:,} person{'' if models.k_persons == 1 else 's'}"
    if models.k_all_columns not in (None, models.k):
        text += f"; {models.k_all_columns:,} if all columns that are not sensitive are known"
    return text if models.k_map is None else f"{text}; {models.k_map:,} people of the population"


def _journalist_text(risk: Risk) -> str:
    found = risk.reidentification
    if found.journalist_average is None:
        return found.journalist_basis
    most = "" if found.journalist_max is None else f"{percent(found.journalist_max)} at most, "
    return f"{most}{percent(found.journalist_average)} on average ({found.journalist_basis})"


def _population_text(found: PopulationRisk) -> str:
    low, high = map(percent, found.interval)
    return (
        f"about {percent(found.uniqueness)} of {found.population:,} people unique "
        f"({percent(found.confidence)} interval {low} to {high}, {found.model})"
    )


def percent(share: float) -> str:
    """Return a share as text."""
    return f"{100 * share:.3g}%"
