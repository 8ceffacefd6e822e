"""Published examples and numbers made to fit the check; none belongs to a person."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cloister.data import _identifiers as ids


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (ids.is_us_social_security, ["123-45-6789"], ["000-12-3456", "666-12-3456", "912-12-3456", "123-00-6789"]),
        (ids.is_us_social_security, ["078-05-1120"], ["123456789", "123-45-0000", "123-45-678"]),
        (ids.is_uk_national_insurance, ["QQ123456C".replace("QQ", "AB"), "AB 12 34 56 C"], ["QQ123456C", "GB123456A"]),
        (ids.is_nhs_number, ["943 476 5919", "9434765919"], ["9434765918", "943476591"]),
        (ids.is_turkish_identity, ["10000000146"], ["10000000147", "00000000146", "1000000014", "10000000156"]),
        (ids.is_german_tax_id, ["86095742719", "86 095 742 719"], ["86095742718", "06095742719", "8609574271"]),
        (ids.is_spanish_identity, ["12345678Z", "12345678-z", "X1234567L"], ["12345678A", "1234567Z", "A1234567L"]),
        (ids.is_swedish_personal, ["811228-9874", "198112289874"], ["811228-9873", "811328-9874", "81122-9874"]),
        (ids.is_french_social_security, ["255081416802538"], ["255081416802539", "955081416802538", "2550814168025"]),
        (ids.is_dutch_service_number, ["111222333", "123456782"], ["123456789", "000000000", "12345678"]),
        (ids.is_polish_pesel, ["44051401359"], ["44051401358", "44991401359", "4405140135"]),
        (ids.is_brazilian_cpf, ["529.982.247-25", "52998224725"], ["529.982.247-24", "111.111.111-11", "5299822472"]),
        (ids.is_finnish_identity, ["131052-308T"], ["131052-308U", "321352-308T", "131052308T"]),
        (ids.is_iban, ["DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432"], ["DE89370400440532013001", "DE89"]),
        (ids.is_card_number, ["4111 1111 1111 1111", "5500-0000-0000-0004"], ["4111111111111112", "411111111111"]),
    ],
)
def test_check_digits(check: Callable[[str], bool], right: list[str], wrong: list[str]) -> None:
    assert [text for text in right if not check(text)] == []
    assert [text for text in wrong if check(text)] == []


OTHERS = {"is_called", "is_luhn", "is_missing"}  # about names, digits and single values


@pytest.mark.parametrize("name", [name for name in dir(ids) if name.startswith("is_") and name not in OTHERS])
@pytest.mark.parametrize("text", ["", "x", "\u0663" * 11, "-", "1" * 40, "nothing of the kind"])
def test_anything_else_is_refused_quietly(name: str, text: str) -> None:
    assert getattr(ids, name)(text) is False


@pytest.mark.parametrize(
    "name", ["is_nhs_number", "is_dutch_service_number", "is_german_tax_id", "is_turkish_identity"]
)
def test_a_check_sees_every_changed_digit(name: str) -> None:
    check: Callable[[str], bool] = getattr(ids, name)
    right = {"is_nhs_number": "9434765919", "is_dutch_service_number": "123456782"}
    text = right.get(name, "86095742719" if name == "is_german_tax_id" else "10000000146")
    for place, old in enumerate(text):
        for digit in "0123456789":
            if digit != old:
                assert not check(text[:place] + digit + text[place + 1 :])
