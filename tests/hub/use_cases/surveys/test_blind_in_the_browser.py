from __future__ import annotations

import importlib.resources
from pathlib import Path

import pytest

from cloister.crypto.blind_signatures import BlindPublicKey
from tests.crypto import rfc9474 as vector
from tests.support import browser

CODE = Path(str(importlib.resources.files("cloister.hub"))) / "web" / "static" / "survey"


@pytest.mark.chromium
@pytest.mark.slow
def test_the_browser_reproduces_the_published_vector() -> None:
    key = BlindPublicKey(int(vector.N, 16))
    argument = {
        "modulus": vector.N,
        "exponent": "10001",
        "prepared": vector.PREFIX + vector.MESSAGE,
        "salt": vector.SALT,
        "factor": f"{pow(int(vector.INVERSE, 16), -1, key.modulus):x}",
        "blindSignature": vector.BLIND_SIGNATURE,
        "other": vector.SIGNATURE,
    }
    folders = {"/survey": CODE, "/tests": Path(__file__).parent / "js"}
    found = browser.run_module("/tests/blind.mjs", argument, folders=folders)
    assert found == {
        "fingerprint": key.fingerprint,
        "blinded": vector.BLINDED,
        "signature": vector.SIGNATURE,
        "isFresh": True,
        "wrongSignature": "The hub did not sign the invitation.",
        "smallKey": "This is no key for signatures.",
        "otherExponent": "This is no key for signatures.",
        "evenKey": "This is no key for signatures.",
    }
