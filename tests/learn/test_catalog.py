from __future__ import annotations

import subprocess
import sys

import pytest

from cloister.errors import InternalError
from cloister.learn.base import estimators
from cloister.learn.catalog import load_all

FIRST_USES_AT_ONCE = """
import threading
from cloister.learn.catalog import load_all, names
at_once, found = threading.Barrier(4), []
def use():
    at_once.wait()
    found.append(set(names()) == set(load_all()))
threads = [threading.Thread(target=use) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(found)
"""


@pytest.mark.slow
def test_several_threads_may_be_the_first_to_use_estimators() -> None:
    made = subprocess.run([sys.executable, "-c", FIRST_USES_AT_ONCE], capture_output=True, text=True, check=False)
    assert made.stdout.strip() == str([True] * 4), made.stderr


def test_whoever_takes_the_name_of_an_estimator_is_not_trained_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimators, "_members", {})
    estimators.register("gaussian_nb")(object)
    with pytest.raises(InternalError, match='two members .* are called "gaussian_nb"'):
        load_all()
