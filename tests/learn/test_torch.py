"""Private PyTorch modules, in an environment of their own because PyTorch is large; what needs none is checked here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays

from benchmarks.harness import peer_python
from cloister.errors import MissingExtraError
from cloister.learn import PrivateTorch
from cloister.learn.torch import whole_contributions
from tests.support.tools import skip_or_fail

ROOT = Path(__file__).parents[2]
WORKER = ROOT / "tests" / "support" / "torch_worker.py"
PAGE = ROOT / "docs" / "how-to" / "private-neural-networks.md"
PACKAGES = ("torch==2.13.0", "opacus", "cryptography", "pyarrow", "scipy")


@pytest.mark.slow
def test_modules_train_privately_in_an_environment_of_their_own() -> None:
    try:
        python = peer_python(*PACKAGES)
    except subprocess.CalledProcessError:
        skip_or_fail("PyTorch and Opacus cannot be installed: connect to a package index to run this test.")
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    kept = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([python, str(WORKER), str(PAGE)], env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "done"


def test_the_extra_is_named_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opacus", None)
    trainer = PrivateTorch(module=None)
    for act in (lambda: trainer.fit([[1.0]], [0]), lambda: trainer.predict([[1.0]])):
        with pytest.raises(MissingExtraError, match=r"cloister\[torch\]"):
            act()


FLOATS = st.floats(allow_nan=True, allow_infinity=True, width=64)


@settings(max_examples=100, deadline=None)
@given(
    arrays.arrays(np.float64, st.tuples(st.integers(0, 4), st.integers(1, 5)), elements=FLOATS),
    st.sampled_from([1e-310, 1e-3, 1.0, 1e6]),
)
def test_no_row_adds_more_than_the_norm(gradients: np.ndarray, clip: float) -> None:
    for row in whole_contributions(gradients, clip=clip):
        assert sum(int(item) ** 2 for item in row) <= 4**30


def test_short_gradients_are_kept_and_rows_do_not_touch_each_other() -> None:
    rows = np.array([[0.3, -0.4], [30.0, -40.0], [np.nan, 1.0]])
    found = whole_contributions(rows, clip=1.0) / 2**30
    assert np.allclose(found, [[0.3, -0.4], [0.6, -0.8], [0.0, 0.0]], atol=1e-5)
    assert (whole_contributions(rows[:1], clip=1.0) / 2**30 == found[:1]).all()
    assert (whole_contributions(np.zeros((1, 2)), clip=1e-310) == 0).all()
