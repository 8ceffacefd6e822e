from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given, strategies as st

from cloister.hub.use_cases.accounts import second_factor
from tests.hub.use_cases.accounts.qr_reader import read_qr_picture


@given(st.text(st.characters(codec="ascii", exclude_categories=["C"]), min_size=1, max_size=213))
def test_pictures_can_be_read_back(text: str) -> None:
    assert read_qr_picture(second_factor.qr_picture(text)) == text


@pytest.mark.parametrize("account", ["ada", "ada.lovelace@hospital", "Ольга", "名" * 64])
def test_the_picture_of_an_authenticator_holds_its_address(account: str) -> None:
    address = second_factor.otpauth_address(bytes(range(20)), account=account)
    assert read_qr_picture(second_factor.qr_picture(address)) == address


def test_a_picture_has_neither_style_nor_script() -> None:
    picture = unquote(second_factor.qr_picture("otpauth://totp/cloister:ada"))
    assert "style" not in picture
    assert "class" not in picture
    assert "script" not in picture
