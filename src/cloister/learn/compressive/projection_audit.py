"""What attackers find in the z of a projection: a measurement to attach to every release, which promises nothing.

An audit takes rows that are attacked and similar rows that attackers have, disjoint from the former. It measures how
well the utility task is learned from z, how far reconstructions are off, how often a privacy label or a person is found
(see `_attackers`), and for images how alike they look. It returns figures, a verdict in plain words, and no guarantee.
The verdict goes by the smallest normalized error of all attackers whose aim was declared: reconstruction always, labels
and people where they are given. Attackers who were not tried may find more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.core import validation
from cloister.core.guarantees import NoGuarantee
from cloister.core.random import RandomSource, RandomState, random_source
from cloister.core.result import Result
from cloister.core.whole_rows import Floats
from cloister.core.wordings import percent
from cloister.errors import DataError, ParameterError, ParameterTypeError, UnsafeMechanismError
from cloister.learn.compressive._attackers import (
    RECONSTRUCTIONS,
    Attempt,
    attribute_attempts,
    known_row_attempt,
    reconstruct_rows,
    reconstruction_error,
    reidentification_attempt,
    structural_similarity,
)
from cloister.learn.compressive._base import LinearProjection
from cloister.learn.compressive._labeled_rows import as_numbers, common_widths, read_codes
from cloister.learn.compressive.utility import svm

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = ["CompressiveAudit", "TaskUtility", "compressive_audit", "verdict_of"]


WEAK_BELOW, STRONG_FROM = 0.5, 0.9
"""Below the one, the best attacker is rid of half of the errors; from the other on, of a tenth at most."""

MEASURED = "This was measured against the attackers listed here. It is not a guarantee: others may find more."


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskUtility:
    """How well the utility task is learned from z, on the attacked rows, from 0 to 1.

    Attributes:
        accuracy: the share of rows that are classified rightly.
        f1: the F1 of the classes, weighted by their size.
        full: the accuracy of the same learner from the whole rows.
        chance: the share of the class that is the most common one among the public rows.
    """

    accuracy: float
    f1: float
    full: float
    chance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressiveAudit(Result):
    """What attackers found, and how useful z is. Not differential privacy, and no promise of any kind.

    Attributes:
        method: the class of the projection.
        components: how many numbers are published per row.
        features: how many features a row has.
        rank: in how many directions the rows that the model was fitted on vary: compare components with this.
        rows: how many rows were attacked.
        utility: how useful z is, if there were utility labels.
        attempts: what each attacker achieved.
    """

    schema: ClassVar[str] = "cloister.compressive_audit/1"

    method: str
    components: int
    features: int
    rank: int
    rows: int
    utility: TaskUtility | None
    attempts: tuple[Attempt, ...]

    @property
    def strongest(self) -> Attempt:
        """Return the attacker with the smallest normalized error, of those that count."""
        counted = [item for item in self.attempts if item.counted and item.normalized is not None]
        return min(counted, key=lambda item: item.normalized or 0.0)

    @property
    def minimum(self) -> float:
        """Return the smallest normalized error: 1 means that z tells nothing, 0 that it tells everything."""
        return self.strongest.normalized or 0.0

    @property
    def verdict(self) -> str:
        """Return "weak", "moderate" or "strong"."""
        return verdict_of(self.minimum)

    def normalized(self, name: str) -> float | None:
        """Return the normalized error of an attacker."""
        known = {item.name: item.normalized for item in self.attempts}
        return known[validation.check_choice(name, name="name", allowed=tuple(known))]

    def explain(self) -> str:
        """Return a few sentences for a data owner."""
        use = "" if self.utility is None else f" The utility task is right in {percent(self.utility.accuracy)} of rows."
        return (
            f"Protection is {self.verdict}: the best attacker ({self.strongest.name}) still makes "
            f"{percent(self.minimum)} of the errors of somebody who does not see z.{use} {MEASURED}"
        )

    def verify(self, *, at_least: float) -> None:
        """Do nothing if the smallest normalized error is large enough for a release, as its owner sees it.

        Raises:
            UnsafeMechanismError: if it is smaller.
        """
        limit = float(validation.check_probability(at_least, name="at_least"))
        if self.minimum < limit:
            raise UnsafeMechanismError(
                f"The best attacker ({self.strongest.name}) still makes {percent(self.minimum)} of the errors of "
                f"somebody who does not see z; the owner asks for {percent(limit)}.",
                fix="publish fewer components, use a larger rho_prime, or do not publish z.",
            )

    def __str__(self) -> str:
        use = "" if self.utility is None else f"utility {self.utility.accuracy:.3f}, "
        return (
            f"{self.verdict}: {use}smallest normalized error {self.minimum:.2f} ({self.strongest.name}); no guarantee"
        )

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        rows = [
            ("verdict", self.explain()),
            ("published", f"{self.components} numbers per row, of {self.rank} directions in which the rows vary"),
        ]
        if self.utility is not None:
            told = f"{self.utility.accuracy:.3f}; from the whole row {self.utility.full:.3f}"
            rows.append(("utility", f"{told}, by chance {self.utility.chance:.3f}"))
        rows += [(item.name, str(item)) for item in self.attempts]
        return (*rows, ("promise", self.guarantee.explain()))

    def plot(self) -> Figure:
        """Return a chart of the utility beside what each attacker still gets wrong."""
        from cloister.plotting import bars_with_errors

        bars = {} if self.utility is None else {"utility task right": self.utility.accuracy}
        counted = [item for item in self.attempts if item.counted and item.normalized is not None]
        bars |= {f"errors of {item.name}": item.normalized or 0.0 for item in counted}
        return bars_with_errors(
            list(bars),
            [100 * share for share in bars.values()],
            [None] * len(bars),
            title=f"Utility, and errors that attackers still make: {self.components} components",
            x="",
            y="%",
            subtitle=f"verdict: {self.verdict}; measured, not guaranteed",
        )

    def _fields(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "components": self.components,
            "features": self.features,
            "rank": self.rank,
            "rows": self.rows,
            "utility": None if self.utility is None else asdict(self.utility),
            "attempts": [item.to_dict() for item in self.attempts],
            "minimum": self.minimum,
            "strongest": self.strongest.name,
            "verdict": self.verdict,
            "explanation": self.explain(),
        }


def verdict_of(minimum: float) -> str:
    """Return the verdict for a smallest normalized error."""
    if minimum < WEAK_BELOW:
        return "weak"
    return "strong" if minimum >= STRONG_FROM else "moderate"


Codes = NDArray[np.int64]

_KNOWS = {
    "pseudo_inverse": "knows the model and the mean of similar rows, and turns the projection back",
    "ridge": "knows the model and similar rows, and learns a linear rule from z to rows",
    "kernel_ridge": "knows the model and similar rows, and learns a curved rule from z to rows",
}


def compressive_audit(
    model: Any,
    *,
    private: Any,
    public: Any,
    utility: tuple[Any, Any] | None = None,
    privacy: tuple[Any, Any] | None = None,
    identity: tuple[Any, Any] | None = None,
    released: Any = None,
    image_shape: tuple[int, int] | None = None,
    attacks: Sequence[str] = RECONSTRUCTIONS,
    units: str = "raw",
    random_state: RandomState = None,
) -> CompressiveAudit:
    """Attack a projection, and return what was found beside how useful it is.

    This costs no budget and gives no guarantee. Run it on data of your own; what it returns holds no rows.

    Args:
        model: a fitted projection.
        private: the rows that are attacked; better not those that the model was fitted on.
        public: rows that attackers have and that resemble the private ones, none of which they are.
        utility: the utility labels (of the private rows, of the public rows).
        privacy: the privacy labels, likewise; they make an attacker who guesses them.
        identity: whose row it is, likewise; it makes an attacker who looks for people.
        released: z of the private rows as published; it must agree with the model, row by row.
        image_shape: (height, width), if rows are images.
        attacks: which reconstructions to try.
        units: "raw" for distances in the units of the features, "standard" to give each feature the same weight.
        random_state: None; an integer is for tests.

    Raises:
        ParameterError: if the rows, labels or settings do not belong together.
        DataError: if ``released`` is in another order than the private rows, or of another model.
    """
    victims, similar = _rows(model, private, name="private"), _rows(model, public, name="public")
    _check_disjoint(victims, similar)
    z, seen = model.transform(victims), model.transform(similar)
    _check_released(z, released)
    source = random_source(random_state)
    attempts, best = _reconstructions(model, victims, z, similar, attacks=attacks, units=units, source=source)
    if image_shape is not None:
        attempts += _perceptual(victims, best, similar, image_shape)
    if privacy is not None:
        labels = _pair(privacy, len(victims), len(similar), what="privacy")
        attempts += attribute_attempts(seen, z, similar, victims, labels=labels, source=source)
    if identity is not None:
        people = _pair(identity, len(victims), len(similar), what="identity")
        attempts.append(reidentification_attempt(seen, z, similar, victims, people))
    attempts.append(known_row_attempt(z, source))
    wanted = None if utility is None else _pair(utility, len(victims), len(similar), what="utility")
    return CompressiveAudit(
        guarantee=NoGuarantee(reason=model.guarantee_.reason),
        method=type(model).__name__,
        components=z.shape[1],
        features=victims.shape[1],
        rank=int(model.rank_),
        rows=len(victims),
        utility=None if wanted is None else _useful(seen, z, similar, victims, wanted),
        attempts=tuple(attempts),
    )


def _rows(model: Any, rows: Any, *, name: str) -> Floats:
    found = as_numbers(rows, what=f"{name} rows")
    if not hasattr(model, "guarantee_"):
        raise ParameterError("The projection is not fitted.", fix="call model.fit(...) first.")
    if found.ndim != 2 or len(found) < 2 or found.shape[1] != model.n_features_in_ or not np.isfinite(found).all():
        raise ParameterError(
            f"The {name} rows are not two or more rows of finite numbers with the features of the model.",
            fix=f"give {name} with the columns that the model was fitted on.",
        )
    return found


def _check_disjoint(victims: Floats, similar: Floats) -> None:
    """Refuse attackers who were taught on the attacked rows; some equal rows are natural, most are not."""
    # Adding zero gives both zeros the same bytes.
    known = {row.tobytes() for row in similar + 0.0}
    if 2 * sum(row.tobytes() in known for row in victims + 0.0) > len(victims):
        raise ParameterError(
            "Most private rows are among the public ones, so that attackers would be tested on what they were taught.",
            fix="split the rows into two parts, and give one as private and the other as public.",
        )


def _check_released(z: Floats, released: Any) -> None:
    if released is None:
        return
    found = as_numbers(released, what="released z")
    if found.shape != z.shape or not np.allclose(found, z, rtol=1e-6, atol=1e-6 * np.abs(z).max()):
        raise DataError(
            "What was released is not the projection of the private rows in this order: errors would compare different "
            "rows.",
            fix="give released = model.transform(private), or bring the rows into the same order.",
        )


def _pair(labels: Any, victims: int, similar: int, *, what: str) -> tuple[Codes, Codes]:
    if not isinstance(labels, tuple) or len(labels) != 2:
        raise ParameterTypeError(
            f"{what} is not a pair.", fix=f"write {what}=(labels of the private rows, labels of the public rows)."
        )
    sizes = (victims, similar)
    parts = [np.asarray(part) for part in labels]
    if any(part.ndim != 1 or len(part) != size for part, size in zip(parts, sizes, strict=True)):
        raise ParameterError(
            f"The {what} labels are not one for each row.", fix=f"give {what} labels in the order of their rows."
        )
    codes, _ = read_codes(np.concatenate(parts), rows=victims + similar, what=what)
    return codes[:victims], codes[victims:]


def _reconstructions(
    model: Any, victims: Floats, z: Floats, similar: Floats, *, attacks: Sequence[str], units: str, source: RandomSource
) -> tuple[list[Attempt], Floats]:
    """Return every reconstruction, what the best one tells of a single feature, and the estimates of the best."""
    validation.check_choice(units, name="units", allowed=("raw", "standard"))
    tried = [name for name in attacks if name != "pseudo_inverse" or isinstance(model, LinearProjection)]
    if not tried or isinstance(attacks, str):
        raise ParameterError("There is no reconstruction to try.", fix=f"use some of {', '.join(RECONSTRUCTIONS)}.")
    weights = 1 / common_widths(similar) if units == "standard" else np.ones(similar.shape[1])
    nothing = np.broadcast_to(similar.mean(axis=0), victims.shape)
    baseline = reconstruction_error(victims * weights, nothing * weights)
    if baseline == 0:
        raise ParameterError("All private rows are the mean row: nothing to attack.", fix="give rows that differ.")
    attempts, best = [], (np.inf, nothing)
    for name in tried:
        estimates = reconstruct_rows(model, z, public=similar, attack=name, source=source)
        error = reconstruction_error(victims * weights, estimates * weights)
        attempts.append(
            Attempt(
                name=name,
                assumption=_KNOWS[name],
                measure="distance",
                value=error,
                baseline=baseline,
                normalized=error / baseline,
            )
        )
        best = min(best, (error, estimates), key=lambda pair: pair[0])
    return [*attempts, _most_exposed(victims, best[1], nothing)], best[1]


def _most_exposed(victims: Floats, estimates: Floats, nothing: Floats) -> Attempt:
    """Return how far the best reconstruction is off in the feature that it knows best."""
    errors, spread = np.abs(victims - estimates).mean(axis=0), np.abs(victims - nothing).mean(axis=0)
    varies = spread > 1e-9 * spread.max()
    place = int(np.argmin(np.where(varies, errors / np.where(varies, spread, 1.0), np.inf)))
    return Attempt(
        name="most exposed feature",
        assumption=f"is the best of the above, and looks at feature {place} only",
        measure="distance",
        value=float(errors[place]),
        baseline=float(spread[place]),
        normalized=float(errors[place] / spread[place]),
        counted=False,
    )


def _perceptual(victims: Floats, best: Floats, similar: Floats, shape: tuple[int, int]) -> list[Attempt]:
    """Return how alike images and the estimates of the best reconstruction look."""
    height, width = (validation.check_count(side, name="each side of image_shape", at_least=1) for side in shape)
    if height * width != victims.shape[1]:
        raise ParameterError("image_shape does not fit the features.", fix="give (height, width) of the images.")
    span = float(similar.max() - similar.min()) or 1.0
    nothing = np.broadcast_to(similar.mean(axis=0), victims.shape)
    alike, guessed = (
        structural_similarity(victims, part, shape=(height, width), span=span) for part in (best, nothing)
    )
    noise, plain = (_decibels(victims, part, span) for part in (best, nothing))
    assumption = "is the best reconstruction, looked at by a person"
    return [
        Attempt(
            name=name,
            assumption=assumption,
            measure=measure,
            value=value,
            baseline=baseline,
            normalized=None,
            counted=False,
        )
        for name, measure, value, baseline in (
            ("structural similarity", "similarity", alike, guessed),
            ("signal to noise", "decibels", noise, plain),
        )
    ]


def _decibels(rows: Floats, estimates: Floats, span: float) -> float:
    """Return the peak signal-to-noise ratio, at most 200."""
    squared = ((rows - estimates) ** 2).mean(axis=1)
    return float((10 * np.log10(span**2 / np.maximum(squared, span**2 * 1e-20))).mean())


def _useful(seen: Floats, z: Floats, similar: Floats, victims: Floats, labels: tuple[Codes, Codes]) -> TaskUtility:
    from sklearn.metrics import f1_score

    truth, known = labels
    if len(np.unique(known)) < 2:
        raise ParameterError("The public rows are of one utility class.", fix="give public rows of several classes.")
    guessed = svm().fit(seen, known).predict(z)
    return TaskUtility(
        accuracy=float((guessed == truth).mean()),
        f1=float(f1_score(truth, guessed, average="weighted")),
        full=float((svm().fit(similar, known).predict(victims) == truth).mean()),
        chance=float((truth == np.bincount(known).argmax()).mean()),
    )
