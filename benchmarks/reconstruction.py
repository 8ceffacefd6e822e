"""How many secrets follow from sums over random sets: beside the published figures, and against a private table.

The first rows repeat the experiment of Dinur and Nissim (2003): 128 secret bits, sums over random halves, uniform noise
of up to E, least squares, rounding. The figures beside them were computed independently, from 5 or 10 runs; 0.03 either
way is the tolerance. In theory an estimate is off by a standard deviation of about 2 E / sqrt(3 (questions - n)). The
other rows attack 500 bits through exact answers, an audited table, and a `PrivateTable` that spends epsilon 1 on all
questions together.
"""

from __future__ import annotations

import statistics
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import cloister as cl
from cloister.attacks import reconstruction
from cloister.attacks.interfaces.reconstruction import METHODS
from cloister.core.random import RandomSource, SeededRandomSource, SystemRandomSource, bits, integers_below, permutation
from cloister.errors import QueryRefusedError
from cloister.queries.inference_control import ControlledTable, Controls

TITLE = "Reconstruction from sums over random sets"
PEOPLE = 128
ROOT = PEOPLE**0.5
PUBLISHED = {
    (5, "1"): (1, 1.00),
    (5, "√n/4"): (ROOT / 4, 1.00),
    (5, "√n/2"): (ROOT / 2, 0.962),
    (5, "√n"): (ROOT, 0.826),
    (5, "2√n"): (2 * ROOT, 0.691),
    (5, "n/4"): (PEOPLE / 4, 0.638),
    (20, "√n"): (ROOT, 0.972),
    (20, "2√n"): (2 * ROOT, 0.825),
    (20, "n/4"): (PEOPLE / 4, 0.752),
}
RUNS = {5: 200, 20: 50}
TOLERANCE = 0.03
SECRETS, QUESTIONS, FEW, PRIME = 500, 1000, 50, 1009
AUDITED = 100


def share(error: float, each: int, seed: int) -> float:
    """Return the share of bits that least squares recovers in one run."""
    source = SeededRandomSource(seed)
    secret = bits(source, PEOPLE).astype(int)

    def ask(positions: Any) -> float:
        return float(secret[positions].sum() + error * (2 * int(source.words(1)[0]) / 2**64 - 1))

    return reconstruction(ask, truth=secret, queries=each * PEOPLE, random_state=source).success


def published_rows() -> list[dict[str, Any]]:
    """Return the published table, row by row."""
    rows = []
    for (each, name), (error, figure) in PUBLISHED.items():
        found = statistics.mean(share(error, each, seed) for seed in range(RUNS[each]))
        rows.append(
            {
                "name": f"bits recovered, n = {PEOPLE}, {each}n questions, noise up to E = {name}",
                "ours": f"{found:.3f}",
                "peer": f"{figure:.3f}",
                "peer_name": "independent figure",
                "unit": "share",
                "target": f"within {TOLERANCE}",
                "met": abs(found - figure) <= TOLERANCE,
            }
        )
    return rows


def table_of(secret: NDArray[np.int64]) -> Any:
    """Return a table of people with a secret bit each."""
    columns = {
        "id": {"kind": "numeric", "bounds": [0, PRIME - 1], "role": "quasi"},
        "sick": {"kind": "numeric", "bounds": [0, 1], "role": "sensitive"},
    }
    rows = pa.table({"id": range(len(secret)), "sick": secret.tolist()})
    return cl.open_table(rows, schema=cl.Schema.from_dict({"columns": columns}))


def conditions(people: int, many: int, source: RandomSource) -> tuple[NDArray[np.bool_], list[str]]:
    """Return random halves of the people, and different conditions that pick them."""
    factors, shifts = 1 + permutation(source, PRIME - 1)[:many], integers_below(source, PRIME, many)
    members = (np.arange(people) * factors[:, None] + shifts[:, None]) % PRIME < PRIME // 2
    pairs = zip(factors, shifts, strict=True)
    return members, [f"(id * {factor} + {shift}) % {PRIME} < {PRIME // 2}" for factor, shift in pairs]


def attacked(name: str, result: Any, target: str, *, met: bool) -> dict[str, Any]:
    """Return one row about an attack."""
    low, high = result.interval
    return {
        "name": name,
        "ours": f"{result.success:.3f} ({low:.3f} to {high:.3f})",
        "peer": f"{result.baseline:.3f}",
        "peer_name": "guessing",
        "unit": "share",
        "target": target,
        "met": met,
    }


def interface_rows() -> list[dict[str, Any]]:
    """Return how the same attack fares against three interfaces."""
    source = SystemRandomSource()
    secret = bits(source, SECRETS).astype(np.int64)
    members, wheres = conditions(SECRETS, QUESTIONS, source)
    private = cl.PrivateTable(table_of(secret), budget=cl.Budget(epsilon=1))
    answers = {where: private.sum("sick", where=where, epsilon=Fraction(1, QUESTIONS)) for where in wheres}
    rows = []
    for method in METHODS:
        solved = f"{SECRETS} bits, {QUESTIONS:,} questions, {method.replace('_', ' ')}"
        exact = reconstruction(lambda rows: secret[rows].sum(), truth=secret, members=members, method=method)
        rows.append(attacked(f"exact answers, {solved}", exact, "≥ 0.95", met=exact.success >= 0.95))
        ours = reconstruction(answers.get, truth=secret, members=members, questions=wheres, method=method)
        name = f"PrivateTable, epsilon 1 in total ({float(private.remaining.amount):g} left), {solved}"
        rows.append(attacked(name, ours, "≤ 0.6", met=ours.success <= 0.6))
    return [*rows, few_row(source), audited_row(source)]


def few_row(source: RandomSource) -> dict[str, Any]:
    """Return how the attack fares when it spends epsilon 1 on few questions, each with less noise."""
    secret = bits(source, SECRETS).astype(np.int64)
    members, wheres = conditions(SECRETS, FEW, source)
    private = cl.PrivateTable(table_of(secret), budget=cl.Budget(epsilon=1))
    result = reconstruction(
        lambda where: private.sum("sick", where=where, epsilon=Fraction(1, FEW)),
        truth=secret,
        members=members,
        questions=wheres,
    )
    left = float(private.remaining.amount)
    name = f"PrivateTable, epsilon 1 in total ({left:g} left), {SECRETS} bits, only {FEW} questions, least squares"
    return attacked(name, result, "≤ 0.6", met=result.success <= 0.6)


def audited_row(source: RandomSource) -> dict[str, Any]:
    """Return how the attack fares against exact answers that are refused once they would give a value away."""
    secret = bits(source, AUDITED).astype(np.int64)
    members, wheres = conditions(AUDITED, 2 * AUDITED, source)
    table = ControlledTable(table_of(secret), controls=Controls())
    result = reconstruction(
        lambda where: table.sum("sick", where),
        truth=secret,
        members=members,
        questions=wheres,
        method="linear_program",
        refusal=QueryRefusedError,
    )
    answered = f"{result.queries - result.refused} of {result.queries} questions answered"
    name = f"ControlledTable (size and audit), {AUDITED} bits, {answered}, linear program"
    return attacked(name, result, "no promise", met=True)


def main() -> list[dict[str, Any]]:
    """Return all rows."""
    return published_rows() + interface_rows()
