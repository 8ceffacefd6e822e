from __future__ import annotations

import subprocess
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import cloister as cl
from benchmarks import anonymize_tools, harness, local, local_accuracy, local_people, local_theory as theory
from benchmarks.local_accuracy import Case
from cloister.local.frequency.support import FrequencyProtocol
from cloister.local.numeric.base import MeanProtocol
from cloister.testing.samplers import gaussian

pytestmark = pytest.mark.no_cover  # tracing would double their time; quicker tests reach the same lines

USERS, SIZE = 2000, 8
COUNTS = np.array([50.0, 30, 15, 5])


class Stand:
    """A protocol whose counts are true up to Gaussian noise, which may be more than it says."""

    def __init__(self, *, sigma: float = 1.0, excess: float = 1.0, domain: list[int] | None = None, **_: Any) -> None:
        self.sigma, self.excess, self.domain = sigma, excess, domain or []
        self.filters = np.eye(len(self.domain), dtype=np.bool_)[None]

    def randomize(self, people: np.ndarray | list[list[int]]) -> np.ndarray:
        return np.asarray(people).ravel()

    def estimate(self, reports: np.ndarray) -> Any:
        if not self.domain:
            return self._mean(reports)
        noise = gaussian(self.sigma * self.excess, len(self.domain))
        counts = np.bincount(reports, minlength=len(self.domain)) + noise
        half = 1.96 * self.sigma
        intervals = dict(enumerate(zip(counts - half, counts + half, strict=True)))
        return types.SimpleNamespace(counts=counts, frequencies=counts / len(reports), intervals=lambda _: intervals)

    def _mean(self, reports: np.ndarray) -> Any:
        value = float(reports.mean() + gaussian(self.sigma * self.excess, 1)[0])
        return types.SimpleNamespace(
            value=value, interval=lambda _: (value - 1.96 * self.sigma, value + 1.96 * self.sigma)
        )


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put the same stand-in for every protocol."""

    def put(**facts: float) -> None:
        class Every:
            def __getattr__(self, _: str) -> Callable[..., Stand]:
                return lambda **options: Stand(**{**options, **facts})

        monkeypatch.setattr(cl, "local", Every(), raising=False)

    return put


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Let peers need a millisecond for each person, without being run, and return what they are told to do."""
    told: list[dict[str, Any]] = []

    def run(peer: local.Peer, wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
        told.extend(wanted)
        return [{**job, "cpu": job["users"] / 1000, "most": 0} for job in wanted if job["protocol"] not in peer.lacks]

    monkeypatch.setattr(local, "run_peer", run)
    monkeypatch.setattr(anonymize_tools, "REPEATS", 1)
    return told


def test_the_local_benchmarks_are_found_and_their_parts_are_not() -> None:
    assert {"local", "local_accuracy"} <= set(harness.names())
    assert not {"local_people", "local_theory"} & set(harness.names())


def test_one_person_in_four_gives_the_first_answer_and_nobody_an_undeclared_one() -> None:
    people = local_people.answers(USERS, SIZE)
    assert len(people) == USERS
    assert set(people) == set(range(SIZE))
    assert people.count(0) == max(people.count(value) for value in range(SIZE)) >= USERS / 4


def test_peers_are_timed_after_a_first_question_to_few_people() -> None:
    asked: list[int] = []

    def make(size: int, epsilon: float) -> local_people.Ask:
        def ask(people: Sequence[int]) -> list[float]:
            asked.append(len(people))
            return [people.count(value) * epsilon for value in range(size)]

        return ask

    job = {"protocol": "counting", "size": SIZE, "epsilon": 1.0, "users": USERS}
    found = local_people.measure({"counting": make}, [job, {**job, "protocol": "nothing"}])
    assert asked == [20, USERS]
    assert [(done["protocol"], done["most"]) for done in found] == [("counting", 0)]
    assert found[0]["cpu"] >= 0


def test_every_protocol_stands_beside_every_peer_that_has_it(
    stand: Callable[..., None], jobs: list[dict[str, Any]]
) -> None:
    stand()
    rows = local.main(users=USERS, sizes=(4, SIZE))
    names = [(row["name"], row["peer_name"]) for row in rows]
    assert ("OUE, 8 values", "multi-freq-ldpy") in names
    assert ("OLH, 4 values", "pure-ldp, OLH of 1,000 hashes") in names
    assert ("HR, 4 values", "pure-ldp") in names
    assert not any(name.startswith("HR") and peer == "multi-freq-ldpy" for name, peer in names)
    assert len(rows) == 2 * (2 + 3 + 1 + 2 + 2)
    assert {job["users"] for job in jobs} == {USERS}
    assert {row["target"] for row in rows if row["name"].startswith("OLH, 8")} == {"<= 3"}
    assert not any("target" in row for row in rows if row["name"].startswith("SUE"))


def test_a_peer_that_takes_long_is_scaled_and_the_row_says_so(
    stand: Callable[..., None], jobs: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand()
    for full, scaled in (("", True), ("1", False)):
        jobs.clear()
        monkeypatch.setenv("CLOISTER_BENCH_FULL", full)
        rows = [row for row in local.main(users=40_000, sizes=(2, 3)) if row["peer_name"] == "pure-ldp"]
        assert {job["users"] for job in jobs if job["protocol"] == "OLH"} == {20_000 if scaled else 40_000}
        slow = next(row for row in rows if row["name"].startswith("OLH, 2 values"))
        assert slow["peer"] == pytest.approx(40)
        assert slow["name"].endswith(", peer scaled from 20,000 people") is scaled
        assert not any("scaled" in row["name"] for row in rows if not row["name"].startswith("OLH"))


def test_a_peer_that_cannot_be_run_is_said_to_be_so(
    stand: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise subprocess.CalledProcessError(1, ["pip"])

    stand()
    monkeypatch.setattr(harness, "run_peer", fail)
    monkeypatch.setattr(anonymize_tools, "REPEATS", 1)
    rows = local.main(users=USERS, sizes=(4, SIZE))
    assert len(rows) == 2 * (2 + 2 + 1 + 2 + 2)
    assert all(row["peer"] == "not run" and "ratio" not in row for row in rows)


@pytest.mark.usefixtures("jobs")
def test_an_estimate_of_no_use_is_not_timed(stand: Callable[..., None]) -> None:
    """Ten estimates of noise alone all hit the first of a thousand values with a probability of 1e-30."""
    stand(sigma=1e12)
    with pytest.raises(ValueError, match="its time means nothing"):
        local.main(users=USERS, sizes=(1000, 1000))


@pytest.mark.parametrize(
    ("law", "rare"),
    [
        (theory.symmetric_unary, 3.9177),
        (theory.optimized_unary, 3.6827),
        (theory.local_hashing, 3.6917),
        (theory.summation, 8.0),
        (theory.threshold, 4.8072),
        (theory.hadamard, 4.6827),
    ],
)
def test_theory_by_its_published_table(law: theory.Law, rare: float) -> None:
    assert law(np.array([10**9, 0, 0]), 1.0)[1] / 10**9 == pytest.approx(rare, rel=2e-5)


def test_theory_of_direct_encoding_by_its_published_table() -> None:
    assert theory.direct(np.array([1e9, *[0] * 13]), 1.0)[1] / 1e9 == pytest.approx(4.9850, abs=5e-5)


def test_direct_encoding_and_subsets_of_one_are_matrices() -> None:
    kept = np.exp(1) / (np.exp(1) + 3)
    matrix = np.full((4, 4), (1 - kept) / 3) + (kept - (1 - kept) / 3) * np.eye(4)
    assert theory.transition(COUNTS, matrix) == pytest.approx(theory.direct(COUNTS, 1.0))
    assert theory.subset_selection(COUNTS, 1.0) == pytest.approx(theory.direct(COUNTS, 1.0))


def test_bloom_filters_with_a_bit_for_each_value_are_plain_rappor() -> None:
    filters = np.eye(len(COUNTS))[None]
    assert theory.bloom(COUNTS, 1.0, filters=filters, hashes=1) == pytest.approx(theory.rappor(COUNTS, 1.0))


def test_theory_of_numbers_by_its_published_values() -> None:
    ends = np.array([0.0, 1.0])
    assert theory.piecewise(ends, 1.0) == pytest.approx([3.682103, 5.223597], abs=1e-6)
    assert theory.duchi(ends, 1.0) == pytest.approx([2.163953**2, 2.163953**2 - 1], abs=1e-5)
    share = 1 - np.exp(-0.5)
    assert theory.hybrid(ends, 1.0) == pytest.approx(
        share * theory.piecewise(ends, 1.0) + (1 - share) * theory.duchi(ends, 1.0)
    )


@pytest.mark.parametrize(("excess", "met"), [(1.0, True), (1.1, False), (0.9, False)])
def test_too_much_and_too_little_noise_are_both_seen(stand: Callable[..., None], excess: float, *, met: bool) -> None:
    stand(sigma=20.0, excess=excess)
    case = Case(protocol="stand-in", law=lambda counts, _: np.full(len(counts), 400.0), users=160, values=SIZE)
    ratio, coverage = local_accuracy.frequencies(case, 40_000)
    assert ratio == pytest.approx(excess**2, rel=0.08)
    rows = local_accuracy.judged("stand-in", ratio, coverage)
    assert [row["met"] for row in rows] == [met, met]


def test_means_are_judged_alike(stand: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    stand(sigma=0.1)
    monkeypatch.setattr(local_accuracy, "MEAN_USERS", 10)
    monkeypatch.setattr(local_accuracy, "POPULATION", np.array([0.5]))
    ratio, coverage = local_accuracy.means("stand-in", lambda values, _: np.full(len(values), 0.1), 20_000)
    assert ratio == pytest.approx(1, rel=0.08)
    assert coverage == pytest.approx(95, abs=1.2)


@pytest.mark.slow
@pytest.mark.statistical
def test_people_who_differ_are_part_of_the_theory_of_means(
    stand: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand(sigma=0.01)
    monkeypatch.setattr(local_accuracy, "MEAN_USERS", 10)
    monkeypatch.setattr(local_accuracy, "POPULATION", np.array([-1.0, 1.0]))
    ratio, _ = local_accuracy.means("stand-in", lambda values, _: np.full(len(values), 0.001), 20_000)
    assert ratio == pytest.approx(1, rel=0.08)


def test_every_mean_is_measured(stand: Callable[..., None]) -> None:
    stand()
    names = {row["name"].partition(":")[0] for row in local_accuracy.main(squares=2)}
    assert names == {case.protocol + case.note for case in local_accuracy.FREQUENCIES} | {
        f"{name}, mean" for name in local_accuracy.MEANS
    }


@pytest.mark.parametrize(
    ("base", "measured"),
    [
        (FrequencyProtocol, {case.protocol for case in local_accuracy.FREQUENCIES}),
        (MeanProtocol, set(local_accuracy.MEANS)),
    ],
)
def test_every_protocol_is_measured(base: type, measured: set[str]) -> None:
    exported = [getattr(cl.local, name) for name in cl.local.__all__]
    protocols = {kind.__name__ for kind in exported if isinstance(kind, type) and issubclass(kind, base)}
    assert protocols - {base.__name__} == measured


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("name", "law"), local_accuracy.MEANS.items())
def test_means_are_as_accurate_as_theory_says(name: str, law: theory.Law) -> None:
    ratio, coverage = local_accuracy.means(name, law, 2000)
    assert ratio == pytest.approx(1, abs=0.25)
    assert coverage == pytest.approx(95, abs=4)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("case", local_accuracy.FREQUENCIES, ids=lambda case: case.protocol + case.note)
def test_protocols_are_as_accurate_as_theory_says(case: Case) -> None:
    """With 2,000 squares the ratio's standard deviation is 3%, and that of the coverage half a percent."""
    ratio, coverage = local_accuracy.frequencies(case, 2000)
    assert ratio == pytest.approx(1, abs=0.25)
    assert coverage == pytest.approx(95, abs=4)


@pytest.mark.statistical
def test_the_wrong_inverse_of_a_matrix_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(case for case in local_accuracy.FREQUENCIES if case.protocol == "Pram")
    turned = property(lambda self: np.linalg.inv(self._floats))
    monkeypatch.setattr(cl.local.Pram, "_back", turned)
    ratio, coverage = local_accuracy.frequencies(case, 2000)
    assert ratio > 2
    assert coverage < 80
