from __future__ import annotations

import pytest

from cloister.core.digests import GENESIS, chain_digest, chain_text


def test_a_value_has_one_text() -> None:
    assert chain_text({"b": 1, "a": "é"}) == chain_text({"a": "é", "b": 1}) == '{"a":"\\u00e9","b":1}'
    with pytest.raises(ValueError, match="JSON compliant"):
        chain_text(float("nan"))


def test_a_digest_follows_the_value() -> None:
    assert len(chain_digest([1])) == len(GENESIS) == 64
    assert chain_digest({"a": 1, "b": 2}) == chain_digest({"b": 2, "a": 1}) != chain_digest({"a": 1, "b": 3})
    assert chain_digest("") == "12ae32cb1ec02d01eda3581b127c1fee3b0dc53572ed6baf239721a03d82e126"
