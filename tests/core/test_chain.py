from __future__ import annotations

import pytest

from cloister.core.chain import GENESIS, canonical, digest


def test_a_value_has_one_text() -> None:
    assert canonical({"b": 1, "a": "é"}) == canonical({"a": "é", "b": 1}) == '{"a":"\\u00e9","b":1}'
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical(float("nan"))


def test_a_digest_follows_the_value() -> None:
    assert len(digest([1])) == len(GENESIS) == 64
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}) != digest({"a": 1, "b": 3})
    assert digest("") == "12ae32cb1ec02d01eda3581b127c1fee3b0dc53572ed6baf239721a03d82e126"
