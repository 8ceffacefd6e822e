from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.core.random import SeededRandomSource, random_source
from cloister.errors import CryptoError, InternalError, ParameterError, ProtocolError, StatisticalError
from cloister.protocols.pca._blinded_scatter import BlindedScatterPlan
from cloister.protocols.pca._moments import MomentsPlan
from cloister.protocols.pca._parties import Owner, Proxy, read_key
from cloister.protocols.pca._plans import Released, Shares, symmetric
from cloister.testing import check_golden, distributions, load_goldens
from cloister.testing.statistics import check_distribution, check_independent, check_same_distribution, check_scale
from tests.protocols.pca import runs

FOLDER = Path(__file__).parents[2] / "golden" / "protocols"


def test_the_worked_example(monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(*, owners: Any, blinds: list[int]) -> dict[str, Any]:
        monkeypatch.setattr(BlindedScatterPlan, "blinds", lambda *_: blinds)
        plan = runs.scatter_plan()
        user = runs.run_plan(plan, owners).user
        assert user.seen is not None
        assert user.released is not None
        return {
            "sums": user.seen.alone,
            "products": symmetric(user.seen.packed, 2).tolist(),
            "scatter": user.released.scatter.tolist(),
        }

    (golden,) = load_goldens(FOLDER)
    check_golden(golden, seen)


def test_the_components_of_the_worked_example() -> None:
    for plan in (runs.scatter_plan(), runs.moments_plan()):
        released = runs.run_plan(plan, runs.TOY).user.released
        assert released is not None
        values, vectors = np.linalg.eigh(released.scatter)
        assert values == pytest.approx([0, 16], abs=1e-12)
        assert np.abs(vectors[:, 1]) == pytest.approx(np.array([1, 1]) / np.sqrt(2))
        assert released.count == 3
    assert released.mean == pytest.approx([3, 4])


@given(st.lists(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), max_size=5), min_size=2, max_size=4))
def test_both_plans_compute_the_scatter_exactly_without_encryption(tables: list[Any]) -> None:
    """The proxy's part is left out: sums of shares, blinded or not, are read as they would be decrypted."""
    rows = np.array([row for table in tables for row in table], dtype=np.float64).reshape(-1, 2)
    if len(rows) < 2:
        return
    centered = rows - rows.mean(axis=0)
    for plan in (runs.scatter_plan(rows=len(rows), owners=len(tables)), runs.moments_plan(owners=len(tables))):
        parts = [plan.shares(np.array(table, dtype=np.float64).reshape(-1, 2), random_source()) for table in tables]
        total = Shares(
            [sum(entries) for entries in zip(*(part.packed for part in parts), strict=True)],
            [sum(entries) for entries in zip(*(part.alone for part in parts), strict=True)],
        )
        assert plan.read(total).scatter == pytest.approx(centered.T @ centered, abs=1e-9)


# What the data user sees ---------------------------------------------------------------------------------------------


def test_the_user_sees_the_noisy_scatter_and_blinded_sums_only(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = runs.scatter_plan(rows=40, epsilon=1, fixed=runs.whole(1, 10, 3), columns=3, owners=2)
    noises: list[Any] = []
    blinds: list[list[int]] = []
    draw, blind = type(plan.noise).draw, BlindedScatterPlan.blinds

    def note_noise(*given: Any) -> Any:
        noises.append(draw(*given).astype(object))
        return noises[-1]

    def note_blinds(*given: Any) -> Any:
        blinds.append(blind(*given))
        return blinds[-1]

    monkeypatch.setattr(type(plan.noise), "draw", note_noise)
    monkeypatch.setattr(BlindedScatterPlan, "blinds", note_blinds)
    tables = np.array_split(runs.people(40, columns=3), [15])
    seen = runs.run_plan(plan, tables).user.seen
    assert seen is not None
    steps = np.concatenate([plan.whole.steps(table) for table in tables]).astype(np.int64).astype(object)
    sums, products = steps.sum(axis=0), steps.T @ steps
    assert [total - blind for total, blind in zip(seen.alone, blinds[0], strict=True)] == sums.tolist()
    wanted = 40 * products - np.outer(sums, sums) + symmetric(list(noises[0] + noises[1]), 3)
    blinded = np.array(seen.alone, dtype=object)
    assert (symmetric(seen.packed, 3) - np.outer(blinded, blinded) == wanted).all()
    assert max(abs(int(noise)) for noise in noises[0] + noises[1]) > 0


@pytest.mark.statistical
def test_what_is_added_to_the_sums_is_uniform_and_independent() -> None:
    plan = runs.scatter_plan(rows=100, columns=3)
    drawn = np.array([plan.blinds(random_source()) for _ in range(20_000)], dtype=object)
    top = 2.0**plan.blind_bits
    shares = (drawn / top).astype(np.float64)
    for column in range(3):
        check_distribution(shares[:, column], distributions.uniform(0, 1))
        with pytest.raises(StatisticalError):
            check_distribution(shares[:, column] * 0.9, distributions.uniform(0, 1))
        low = np.array([int(number) % 8 for number in drawn[:, column]])
        check_distribution(low, distributions.categorical(dict.fromkeys(range(8), 1 / 8)))
    check_independent(shares, what="The blinding")


@pytest.mark.statistical
def test_blinded_sums_of_shifted_rows_cannot_be_told_apart() -> None:
    """Rows and shifted rows have the same scatter and other sums."""
    plan = runs.scatter_plan(rows=2)
    apart = [[0, 0], [8, 8]]

    def view(sums: list[int], plan: BlindedScatterPlan) -> Any:
        drawn = [plan.blinds(random_source()) for _ in range(10_000)]
        return np.array([float(sums[0] + blinds[0]) for blinds in drawn])

    check_same_distribution(view(apart[0], plan), view(apart[1], plan))
    weak = BlindedScatterPlan(columns=2, rows=2, whole=plan.whole, hiding=1, noise=None, event=None)
    with pytest.raises(StatisticalError):
        check_same_distribution(view(apart[0], weak), view(apart[1], weak))


def test_what_hides_the_sums_is_as_wide_as_stated_and_paid_for_by_delta() -> None:
    for delta, hiding in ((Fraction(1, 10**6), 64), (Fraction(1, 10**30), 111)):
        plan = runs.plan_blinded_scatter(whole=runs.whole(), columns=2, rows=50, sharing=runs.sharing(1, delta=delta))
        assert plan.hiding == hiding
        assert 2**plan.blind_bits >= 2**hiding * 50 * plan.whole.largest
        assert Fraction(2, 2**hiding) <= delta / 1000


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["moments", "scatter"])
def test_the_noise_of_all_owners_together_has_the_stated_deviation(kind: str) -> None:
    columns = 30
    fixed = runs.whole(1, None, columns)
    plan: Any = (
        runs.moments_plan(epsilon=1, fixed=fixed, columns=columns, owners=3)
        if kind == "moments"
        else runs.scatter_plan(rows=1000, epsilon=1, fixed=fixed, columns=columns, owners=3)
    )
    nothing = np.zeros((0, columns))

    def draw(count: int) -> Any:
        calls = -(-count // plan.packed)
        totals = [sum(np.array(plan.shares(nothing, random_source()).packed) for _ in range(3)) for _ in range(calls)]
        return (np.concatenate(totals)[:count] / 2**20).astype(np.float64)

    check_scale(draw, distributions.gaussian, scale=plan.noise.deviation / 2**20)


# How far a row moves what is released --------------------------------------------------------------------------------


def test_no_row_moves_the_moments_farther_than_the_noise_is_made_for() -> None:
    plan = runs.moments_plan(epsilon=1, fixed=runs.whole(8))
    most = plan.constant**4 + plan.constant**2 * 64 + 64**2
    exact = MomentsPlan(columns=2, owners=2, whole=plan.whole, constant=plan.constant, noise=None)
    empty = np.array(exact.shares(np.zeros((0, 2)), random_source()).packed)
    moved = []
    for x in range(-9, 10):
        for y in range(-9, 10):
            alone = np.array(exact.shares(np.array([[x, y]], dtype=np.float64), random_source()).packed)
            moved.append(int(((alone - empty) ** 2).sum()))
    assert max(moved) == most
    assert plan.noise is not None
    assert plan.noise.honest * plan.noise.squared_share >= plan.noise.event.squared_multiplier * most + 4


def _moved(rows: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    def scatter(table: np.ndarray[Any, Any]) -> Any:
        sums = table.sum(axis=0)
        return len(table) * table.T @ table - np.outer(sums, sums)

    return float(np.linalg.norm(scatter(rows) - scatter(other)))


def test_no_replaced_row_moves_the_scatter_farther_than_the_noise_is_made_for() -> None:
    found = []
    for count in (2, 3, 5):
        for columns in (1, 2, 3):
            drawn = runs.samplers.gaussian(1, (4000, count + 1, columns))
            norms = np.linalg.norm(drawn, axis=2, keepdims=True)
            # Half of the rows on the sphere, where the extremes are.
            scaled = drawn / np.where(np.arange(4000)[:, None, None] % 2, norms, np.maximum(norms, 1))
            for rows in scaled:
                moved = _moved(rows[:-1], np.concatenate([rows[:1] * 0 + rows[-1], rows[1:-1]]))
                found.append(moved / (4 * (count - 1)))
    assert max(found) <= 1 + 1e-12
    assert max(found) > 0.97
    far, near = np.array([[-1.0, 0], [1, 0], [1, 0]]), np.array([[1.0, 0], [1, 0], [1, 0]])
    assert _moved(far, near) == pytest.approx(4 * 2)


def test_the_scatter_has_the_noise_that_its_sensitivity_needs() -> None:
    plan = runs.scatter_plan(rows=50, epsilon=1)
    assert plan.noise is not None
    assert plan.noise.honest * plan.noise.squared_share >= plan.noise.event.squared_multiplier * (4 * 64 * 49) ** 2


# Parties -------------------------------------------------------------------------------------------------------------


def test_what_travels_is_what_the_transcript_says() -> None:
    ran = runs.run_plan(runs.scatter_plan(), runs.TOY)
    kinds = [(entry.round, entry.sender, entry.receiver, entry.kind) for entry in ran.transcript.entries]
    assert kinds == [
        (1, "data user", "owner 0", "public key"),
        (1, "data user", "owner 1", "public key"),
        (1, "data user", "proxy", "public key"),
        (2, "owner 0", "proxy", "encrypted share"),
        (2, "owner 1", "proxy", "encrypted share"),
        (3, "proxy", "data user", "encrypted total"),
    ]
    assert {entry.size for entry in ran.transcript.seen_by("proxy")[1:]} == {3 * runs.KEY.public.size}
    assert ran.transcript.rounds == 4
    assert {entry.receiver for entry in ran.transcript.entries if entry.sender.startswith("owner")} == {"proxy"}


def test_an_upper_triangle_is_packed() -> None:
    plan = runs.moments_plan(fixed=runs.whole(1, None, 20), columns=20)
    ran = runs.run_plan(plan, [runs.people(5, columns=20), runs.people(5, columns=20)])
    ciphertexts = ran.transcript.entries[-1].size // runs.KEY.public.size
    assert plan.packed == 231
    assert ciphertexts < 231 / 12


def test_a_key_of_another_length_is_refused() -> None:
    with pytest.raises(ProtocolError, match="new key of 2048 bits"):
        read_key(runs.KEY.public.modulus.to_bytes(128, "big"), bits=2048)


def test_an_owner_does_not_show_rows() -> None:
    owner = Owner("east", np.ones((2, 2)), plan=runs.scatter_plan(), key_bits=1024, source=random_source())
    assert repr(owner) == "Owner('east')"
    assert repr(Shares([1, 2], [3])) == "Shares(packed=2, alone=1)"


def test_an_owner_refuses_too_many_rows_and_another_number_than_is_public(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"plan": runs.scatter_plan(), "key_bits": 1024, "source": random_source()}
    with pytest.raises(ParameterError, match="state public_rows"):
        Owner("east", np.ones((2, 2)), public_rows=3, **options)
    monkeypatch.setattr("cloister.protocols.pca._parties.MOST_ROWS", 1)
    with pytest.raises(ParameterError, match="split them between several owners"):
        Owner("east", np.ones((2, 2)), **options)


def test_a_proxy_refuses_what_is_no_ciphertext() -> None:
    plan = runs.scatter_plan()
    proxy = Proxy(["east"], plan=plan, key_bits=1024, source=random_source())
    key = runs.KEY.public.modulus.to_bytes(128, "big")
    inbox = {("data user", "public key"): key, ("east", "encrypted share"): bytes(3 * runs.KEY.public.size)}
    with pytest.raises(CryptoError, match="no ciphertext"):
        proxy.step(inbox)
    assert not proxy.is_done


def test_a_plan_refuses_other_ciphertexts_than_its_own() -> None:
    plan = runs.moments_plan()
    packing = runs_packing(plan)
    with pytest.raises(InternalError, match="other ciphertexts"):
        plan.forward(runs.KEY.public, packing, [], [], random_source())


def runs_packing(plan: Any) -> Any:
    from cloister.crypto.paillier import Packing

    return Packing.for_numbers(largest=plan.largest, bits=1024)


def test_the_user_never_gets_the_randomness_of_the_owners() -> None:
    """From the same shares and the same blinding the proxy makes other ciphertexts each time."""
    for plan in (runs.scatter_plan(), runs.moments_plan()):
        owner = Owner("east", np.ones((1, 2)), plan=plan, key_bits=1024, source=random_source())
        inbox = {("data user", "public key"): runs.KEY.public.modulus.to_bytes(128, "big")}
        (share,) = owner.step(inbox)
        inbox["east", "encrypted share"] = share.payload
        sent = [
            Proxy(["east"], plan=plan, key_bits=1024, source=SeededRandomSource(1)).step(inbox)[0] for _ in range(2)
        ]
        pairs = [runs.KEY.public.from_bytes(each.payload, count=len(each.payload) // 256) for each in sent]
        assert all(left != right for left, right in zip(*pairs, strict=True))
        numbers = [[runs.KEY.decrypt(ciphertext) for ciphertext in each] for each in pairs]
        assert numbers[0] == numbers[1]


def test_what_is_released_can_be_read_from_tiny_noisy_counts() -> None:
    plan = runs.moments_plan()
    released = plan.read(Shares([-5, 1, 1, 9, 0, 9], []))
    assert isinstance(released, Released)
    assert released.count == 1
    assert np.isfinite(released.scatter).all()
