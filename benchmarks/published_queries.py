"""Published experiments with private queries, run again and put beside the published figures.

``python -m benchmarks.published_queries --out FOLDER`` also draws them, as SVG and PNG, and writes the table as
Markdown and JSON. A figure that is a simulation agrees when it is within 6.2 standard errors, ours and the published
one's together; one that is arithmetic agrees to the digits printed. Where a publication is wrong, the row has the
corrected figure, from theory. Adult comes from the folder CLOISTER_DATA, by default ``../shared/data``; without it
those rows are left out.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import harness
from cloister import plotting
from cloister.core import random
from cloister.mechanisms import ClampedLaplace, DiscreteLaplace, Laplace, Select
from cloister.queries.postprocessing import combine, james_stein, nonnegative, shrink_counts

TITLE = "Published experiments with private queries"
DRAWS = 10_000
SIGMAS = 6.2
DATA = Path(os.environ.get("CLOISTER_DATA", Path(__file__).parents[2] / "shared" / "data"))

BOOK = "Chang, Zhuang, Samaraweera"
SLIDES = "Torra"
THESIS = "Mothali"
CHAPTER = "Data and Model Privacy"

Floats = NDArray[np.float64]


@dataclass
class Experiment:
    """Rows for the table and figures for the eye."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, plotting.Figure] = field(default_factory=dict)

    def exact(self, name: str, ours: float, published: float, *, source: str, digits: float = 0.0) -> None:
        """Add a figure that must agree to the digits printed."""
        met = abs(ours - published) <= digits + 1e-9 * abs(published)
        self.add(name, ours, published, source, "to the digits printed" if digits else "the same", met=met)

    def simulated(self, name: str, ours: float, published: float, *, source: str, error: float) -> None:
        """Add a figure that must agree within the standard error of the difference."""
        room = SIGMAS * error
        shown = f"{room:,.0f}" if room >= 10 else f"{room:.2g}"
        self.add(name, ours, published, source, f"within {shown}", met=abs(ours - published) <= room)

    def add(self, name: str, ours: float, published: float, source: str, target: str, *, met: bool) -> None:
        """Add a row."""
        row = {"name": name, "ours": ours, "peer": published, "peer_name": source, "target": target, "met": met}
        self.rows.append(row)


def main(out: Path | None = None, draws: int = DRAWS) -> list[dict[str, Any]]:
    """Run every experiment; with a folder, write its figures and the table there."""
    experiments = list(_experiments(draws))
    rows = [row for experiment in experiments for row in experiment.rows]
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for name, figure in ((name, figure) for item in experiments for name, figure in item.figures.items()):
            for ending in (".svg", ".png"):
                figure.save(out / f"{name}{ending}")
        (out / "table.md").write_text(f"# {TITLE}\n\n{harness.table(rows)}\n", encoding="utf-8")
        (out / "table.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return rows


def _experiments(draws: int) -> Iterator[Experiment]:
    folder = DATA / "adult"
    if folder.is_dir():
        training, test = (_columns(folder / name) for name in ("adult.csv", "adult_test.csv"))
        ages = np.array(training["age"], dtype=np.int64)
        yield counting_query(ages, draws)
        yield age_histogram(ages)
        yield marital_status(training["marital-status"] + test["marital-status"], draws)
    else:
        print(f"Adult is not in {folder}: set CLOISTER_DATA.")
    yield sequential_composition(draws)
    yield salary_means(draws)
    yield loan_ratings(draws)
    yield shrinkage(draws)


def _columns(path: Path) -> dict[str, list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in ("age", "marital-status")}


def _noise(scale: float, draws: int) -> Floats:
    """Return Laplace noise of a scale, drawn by the mechanism."""
    mechanism = Laplace(sensitivity=scale, epsilon=1, dimensions=draws)
    return np.asarray(mechanism.release(np.zeros(draws)).value)


def _variance_error(scale: float, draws: int) -> float:
    """Return the standard error of a measured variance of Laplace noise: E Y^4 - (E Y^2)^2 = 20 scale^4."""
    return math.sqrt(20 / draws) * scale**2


def counting_query(ages: NDArray[np.int64], draws: int) -> Experiment:
    """Count the people older than 50 in Adult (Book, section 2.2)."""
    found, true = Experiment(), int((ages > 50).sum())
    found.exact("Adult: rows", ages.size, 32561, source=BOOK)
    found.exact("Adult: people older than 50", true, 6460, source=BOOK)
    for epsilon, printed in ((0.1, 6472.02), (0.001, 7142.91)):
        mechanism = DiscreteLaplace(sensitivity=1, epsilon=epsilon)
        answers = np.asarray(mechanism.release(np.full(draws, true)).value)
        scale, ratio = 1 / epsilon, math.exp(-epsilon)
        found.exact(f"count at epsilon {epsilon}: scale of the noise", float(mechanism.scale), scale, source=BOOK)
        found.simulated(
            f"count at epsilon {epsilon}: mean absolute error",
            float(np.abs(answers - true).mean()),
            round(2 * ratio / (1 - ratio**2), 3),
            source="theory",
            error=scale / math.sqrt(draws),
        )
        further = float((np.abs(answers - true) >= abs(printed - true)).mean())
        chance = 2 * ratio ** math.ceil(abs(printed - true)) / (1 + ratio)
        found.simulated(
            f"count at epsilon {epsilon}: share further off than the printed answer {printed:,.2f}", further, chance,
            source="theory", error=math.sqrt(chance * (1 - chance) / draws),
        )  # fmt: skip
        found.figures[f"count-epsilon-{epsilon}"] = plotting.histogram_of_samples(
            {"answers": answers},
            title="How many people in Adult are older than 50?",
            subtitle=f"{draws:,} answers at epsilon = {epsilon}. The truth is {true:,}; published was {printed:,.2f}.",
            x="Answer",
        )
    return found


def age_histogram(ages: NDArray[np.int64]) -> Experiment:
    """Release a histogram of ages at epsilon 0.01, over public buckets instead of buckets fitted to the data."""
    found, edges = Experiment(), np.arange(0, 101, 5)
    counts = np.histogram(ages, bins=edges)[0].astype(np.int64)
    mechanism = DiscreteLaplace(sensitivity=1, epsilon=0.01)
    noisy = np.asarray(mechanism.release(counts).value)
    labels = [f"{low}–{low + 4}" for low in edges[:-2]] + ["95–100"]  # noqa: RUF001
    found.exact("age histogram at epsilon 0.01: scale of the noise", float(mechanism.scale), 100, source=BOOK)
    errors = np.abs(np.asarray(mechanism.release(np.tile(counts, (200, 1))).value) - counts)
    found.simulated(
        "age histogram at epsilon 0.01: mean absolute error of a bucket",
        float(errors.mean()),
        100.0,
        source="theory",
        error=100 / math.sqrt(errors.size),
    )
    for name, values, margins, how in (
        ("exact", counts, None, "Without privacy"),
        ("private", noisy, [mechanism.margin()] * counts.size, "Private, with epsilon = 0.01"),
    ):
        found.figures[f"ages-{name}"] = plotting.bars_with_errors(
            labels, values.tolist(), margins,
            title="Ages of the people in Adult", subtitle=f"{how}; public buckets from 0 to 100.", x="Age", y="People",
        )  # fmt: skip
    return found


MARITAL = {
    "Married-civ-spouse": 22379, "Never-married": 16117, "Divorced": 6633, "Separated": 1530, "Widowed": 1518,
    "Married-spouse-absent": 628, "Married-AF-spouse": 37,
}  # fmt: skip


def marital_status(values: list[str], draws: int) -> Experiment:
    """Choose the most common marital status in all of Adult."""
    found, counts = Experiment(), Counter(values)
    agree = sum(counts[status] == published for status, published in MARITAL.items())
    found.exact("Adult, both parts: counts of the 7 marital statuses that agree", agree, 7, source=BOOK)
    scores = [counts[status] for status in MARITAL]
    shares = {}
    for epsilon in (1, 0.001):
        mechanism = Select(candidates=tuple(MARITAL), score_sensitivity=1, epsilon=epsilon, method="exponential")
        chances = mechanism.probabilities(scores)
        chosen = Counter(mechanism.release(scores).index for _ in range(draws))
        shares[epsilon] = [chosen[index] / draws for index in range(len(scores))]
        if epsilon == 1:
            found.exact(
                "marital status at epsilon 1: probability of the right answer", float(chances[0]), 1, source="theory"
            )
    name = "marital status as the book ran it (really epsilon 0.001)"
    found.exact(f"{name}: probability of the right answer", float(chances[0]), 0.957719, source="theory", digits=5e-7)
    found.exact(f"{name}: probability of the runner-up", float(chances[1]), 0.041828, source="theory", digits=5e-7)
    spread = math.sqrt(0.9577 * 0.0423)
    found.simulated(
        f"{name}: share of right answers", shares[0.001][0], 0.9545,
        source=BOOK, error=spread * math.sqrt(1 / draws + 1 / 10_000),
    )  # fmt: skip
    groups = [f"epsilon = {epsilon}" for epsilon in shares for _ in MARITAL]
    found.figures["marital-status"] = plotting.grouped_bars_with_errors(
        [*MARITAL, *MARITAL], groups, [share for part in shares.values() for share in part],
        title="Which marital status is the most common in Adult?", x="Chosen status", y="Share of choices",
        subtitle=f"{draws:,} private choices each. Dividing scores by 1000, but not their sensitivity, does this to 1.",
    )  # fmt: skip
    return found


def sequential_composition(draws: int) -> Experiment:
    """Combine answers at epsilon 0.1 and 0.2, and compare them with one at 0.3 (Book, figures 2.12 and 2.13)."""
    found = Experiment()
    first, second, both = (_noise(1 / epsilon, draws) for epsilon in (0.1, 0.2, 0.3))
    weights = np.array(combine([0.0, 0.0], [200, 50]).weights)
    samples = {
        "epsilon 0.1": (first, 200.0, 10.0),
        "epsilon 0.2": (second, 50.0, 5.0),
        "epsilon 0.3": (both, 200 / 9, 10 / 3),
        "average of both": ((first + second) / 2, 62.5, 0.0),
        "inverse variance of both": (weights[0] * first + weights[1] * second, 40.0, 0.0),
    }
    for name, (sample, variance, scale) in samples.items():
        error = _variance_error(scale, draws) if scale else float((sample**2).std()) / math.sqrt(draws)
        found.simulated(
            f"composition, {name}: variance", float((sample**2).mean()), variance, source="theory", error=error
        )
    found.figures["composition"] = plotting.histogram_of_samples(
        {f"{name}: variance {variance:.3g}": 6460 + sample for name, (sample, variance, _) in samples.items()},
        title="Two answers are not as good as one with the budget of both",
        subtitle=f"{draws:,} private counts of the 6,460 people older than 50.", x="Answer", bounds=(6430, 6490),
    )  # fmt: skip
    found.figures["composition-variances"] = plotting.bars_with_errors(
        list(samples), [float((sample**2).mean()) for sample, _, _ in samples.values()],
        [1.96 * float((sample**2).std()) / math.sqrt(draws) for sample, _, _ in samples.values()],
        title="The variance of combined answers", x="", y="Variance",
        subtitle=f"Measured over {draws:,} draws; in theory 200, 50, 22.2, 62.5 and 40.",
    )  # fmt: skip
    return found


SALARIES = (1000, 2000, 3000, 2000, 1000, 6000, 2000, 10000, 2000, 4000)
RICH = 100_000
BOUNDS = (1000, 100_000)
TRUNCATED = (2000, 4000)


def salary_means(draws: int) -> Experiment:
    """Release mean salaries with and without one rich person (Slides)."""
    found, means = Experiment(), {"D": np.mean(SALARIES), "D and one rich person": np.mean([*SALARIES, RICH])}
    found.exact("mean salary of D", float(means["D"]), 3300, source=SLIDES)
    found.exact(
        "mean salary of D and one rich person",
        float(means["D and one rich person"]),
        12090.909,
        source=SLIDES,
        digits=5e-4,
    )
    width = BOUNDS[1] - BOUNDS[0]
    for size, published in ((5, 19800), (10**6, 0.099)):
        scale = Laplace(sensitivity=width / size, epsilon=1).scale
        found.exact(
            f"mean of at least {size:,} salaries, epsilon 1: scale", scale, published, source=SLIDES, digits=5e-4
        )
    sensitivity = min(width / 5, TRUNCATED[1] - TRUNCATED[0])
    for epsilon, published in ((1, 2000), (0.4, 5000), (2, 1000)):
        scale = ClampedLaplace(sensitivity=sensitivity, epsilon=epsilon, bounds=TRUNCATED).scale
        found.exact(f"truncated mean, epsilon {epsilon}: scale", scale, published, source=SLIDES)
    for epsilon in (1, 2):
        _draw_means(found, means, epsilon, draws, width, sensitivity)
    return found


def _draw_means(
    found: Experiment, means: dict[str, Any], epsilon: int, draws: int, width: int, sensitivity: float
) -> None:
    for size, bounds, note in (
        (5, (-80_000, 100_000), "At least 5 people are promised, and it is true."),
        (10**6, (0, 15_000), "A million people were promised; there are 10, so this is NOT private."),
    ):
        samples = {name: mean + _noise(width / size / epsilon, draws) for name, mean in means.items()}
        found.figures[f"mean-salary-{size}-epsilon-{epsilon}"] = plotting.histogram_of_samples(
            samples, title=f"Private mean salary, epsilon = {epsilon}", subtitle=note, x="Mean salary", bounds=bounds
        )
    truncated = {}
    for name, mean in means.items():
        mechanism = ClampedLaplace(sensitivity=sensitivity, epsilon=epsilon, bounds=TRUNCATED, dimensions=draws)
        start = min(max(float(mean), TRUNCATED[0]), TRUNCATED[1])
        truncated[name] = np.asarray(mechanism.release(np.full(draws, start)).value)
        chance = math.exp(-(TRUNCATED[1] - start) * epsilon / sensitivity) / 2
        found.simulated(
            f"truncated mean of {name}, epsilon {epsilon}: share at the upper end",
            float((truncated[name] == TRUNCATED[1]).mean()), chance, source="theory", error=0.5 / math.sqrt(draws),
        )  # fmt: skip
    found.figures[f"truncated-mean-epsilon-{epsilon}"] = plotting.histogram_of_samples(
        truncated, title=f"Private truncated mean salary, epsilon = {epsilon}", x="Mean salary within 2,000 to 4,000",
        subtitle=f"{draws:,} draws each; answers beyond the ends are moved to the ends.",
    )  # fmt: skip


RATINGS = {
    "C": 0.244160, "D": 0.205170, "B": 0.196178, "E": 0.169985,
    "A": 0.084515, "AA": 0.041652, "F": 0.033478, "HR": 0.024861,
}  # fmt: skip
NEARLY_UNIFORM = (0.1326, 0.1300, 0.1294, 0.1277, 0.1224, 0.1198, 0.1193, 0.1188)
LOANS = 10_000


def loan_ratings(draws: int) -> Experiment:
    """Choose the most common loan rating by its proportion (Chapter), with a wrong and with the right sensitivity."""
    found, shares = Experiment(), {}
    for name, sensitivity in (("sensitivity 1, as published", 1.0), (f"sensitivity 1/{LOANS:,}", 1 / LOANS)):
        mechanism = Select(candidates=tuple(RATINGS), score_sensitivity=sensitivity, epsilon=1, method="exponential")
        chances = mechanism.probabilities(list(RATINGS.values()))
        chosen = Counter(mechanism.release(list(RATINGS.values())).choice for _ in range(draws))
        shares[name] = [chosen[rating] / draws for rating in RATINGS]
        if sensitivity == 1:
            agree = int((np.abs(chances - NEARLY_UNIFORM) <= 5.1e-5).sum())
            found.exact(f"loan ratings, {name}: probabilities of 8 that agree", agree, 8, source=CHAPTER)
        else:
            found.exact(f"loan ratings, {name}: probability of C", float(chances[0]), 1, source="theory")
    found.figures["loan-ratings"] = plotting.grouped_bars_with_errors(
        [*RATINGS, *RATINGS], [name for name in shares for _ in RATINGS],
        [value for part in shares.values() for value in part],
        title="Which loan rating is the most common?", x="Chosen rating", y="Share of choices",
        subtitle=f"{draws:,} private choices each at epsilon = 1, scored by proportions of at least {LOANS:,} loans.",
    )  # fmt: skip
    return found


RISKS = {3: (600, 461, 454), 10: (1998, 1541, 1482), 50: (10031, 7718, 7350)}
DIMENSIONS = (3, 5, 7, 10, 15, 20, 30, 40, 50)
ESTIMATORS = {
    "as they are": lambda noisy: noisy,
    "clipped at 0": nonnegative,
    "clipped, empirical Bayes, clipped": lambda noisy: shrink_counts(noisy, scale=10),
    "James-Stein": lambda noisy: james_stein(noisy, variance=200),
}


def shrinkage(draws: int) -> Experiment:
    """Compare the risks of estimators of many noisy counts, against their number (Thesis, figures 7.1 and 7.2)."""
    found, curves = Experiment(), {name: [] for name in ESTIMATORS}  # type: ignore[var-annotated]
    for size in DIMENSIONS:
        losses = _losses(size, draws)
        for name, loss in losses.items():
            curves[name].append((size, loss.mean() / size))
        for name, published in zip(ESTIMATORS, RISKS.get(size, ()), strict=False):
            error = float(losses[name].std()) * math.sqrt(1 / draws + 1 / 50_000)
            found.simulated(
                f"risk of {size} counts {name}",
                float(losses[name].mean()),
                published,
                source="50,000 draws",
                error=error,
            )
    ratio = float(curves["James-Stein"][-1][1] / curves["as they are"][-1][1])
    name = f"risk of {size} counts: James-Stein over as they are"
    found.add(name, ratio, 1, THESIS, "nearly the same (2%)", met=abs(ratio - 1) < 0.02)
    found.figures["risk-against-dimension"] = plotting.lines(
        curves, title="The squared error of many noisy counts", x="Number of counts", y="Squared error per count",
        subtitle=f"Laplace noise of scale 10, {draws:,} draws for each point.", legend="Estimate",
    )  # fmt: skip
    return found


def _losses(size: int, draws: int) -> dict[str, Floats]:
    """Return squared errors on the same draws: 1 to size - 1 counts from U(0, 10), the others from U(0, 1000)."""
    source = random.random_source()
    small = 1 + random.integers_below(source, size - 1, draws)
    tops = np.where(np.arange(size) < small[:, None], 10.0, 1000.0)
    truth = tops * (source.words(draws * size) * 2.0**-64).reshape(draws, size)
    noisy = truth + _noise(10, draws * size).reshape(draws, size)
    return {
        name: ((np.array([estimate(row) for row in noisy]) - truth) ** 2).sum(axis=1)
        for name, estimate in ESTIMATORS.items()
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/published-queries"), help="where figures and table go")
    parser.add_argument("--draws", type=int, default=DRAWS, help="how many draws each simulation takes")
    options = parser.parse_args()
    table = main(options.out, options.draws)
    print(harness.table(table), f"\nFigures and table: {options.out}")
    raise SystemExit(any(not row["met"] for row in table))
