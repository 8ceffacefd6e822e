from __future__ import annotations

import sys

import pytest

from cloister.core.lazy_imports import late_module, need_learning
from cloister.errors import MissingExtraError


def test_a_module_is_loaded_at_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "this", raising=False)
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    module = late_module("colorsys")
    assert "colorsys" not in sys.modules
    assert repr(module) == "<module 'colorsys', loaded when it is used>"
    assert module.rgb_to_hls(0.0, 0.0, 0.0) == (0.0, 0.0, 0.0)
    assert late_module("colorsys") is sys.modules["colorsys"]
    with pytest.raises(AttributeError):
        _ = module.nothing


def test_what_needs_scikit_learn_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    need_learning("Attribute inference")
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match=r'pip install "cloister\[learn\]"'):
        need_learning("Attribute inference")
