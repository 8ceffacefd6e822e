from __future__ import annotations

import pytest

import cloister as cl
from cloister.anonymize.risk import SafeHarborItem, safe_harbor


def _checked(*columns: cl.Column) -> dict[int, SafeHarborItem]:
    return {item.number: item for item in safe_harbor(cl.Schema(columns))}


def test_all_eighteen_are_listed() -> None:
    found = _checked(cl.Column(name="diagnosis"))
    assert list(found) == list(range(1, 19))
    assert {str(item.finding) for item in found.values()} == {"not found", "cannot tell"}


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("last_name", 1),
        ("ZipCode", 2),
        ("birthDate", 3),
        ("age", 3),
        ("mobile", 4),
        ("fax", 5),
        ("e-mail", 6),
        ("SSN", 7),
        ("patient_id", 8),
        ("policy number", 9),
        ("IBAN", 10),
        ("passport", 11),
        ("VIN", 12),
        ("device_serial", 13),
        ("url", 14),
        ("ip_address", 15),
        ("fingerprint", 16),
        ("photo", 17),
        ("customer_id", 18),
    ],
)
def test_columns_are_found_by_name(name: str, number: int) -> None:
    item = _checked(cl.Column(name=name))[number]
    assert (str(item.finding), item.columns) == ("found", (name,))
    assert item.advice
    assert item.to_dict()["columns"] == [name]


@pytest.mark.parametrize("name", ["shipping", "validity", "language", "average", "wage", "vineyard"])
def test_words_inside_words_are_not_found(name: str) -> None:
    assert all(not item.columns for item in _checked(cl.Column(name=name)).values())


def test_kinds_are_to_be_looked_at() -> None:
    found = _checked(
        cl.Column(name="where", kind="location"),
        cl.Column(name="when", kind="datetime"),
        cl.Column(name="remarks", kind="text"),
    )
    assert [str(found[number].finding) for number in (2, 3, 18)] == ["look"] * 3
    assert found[18].columns == ("remarks",)


def test_identifiers_of_an_unknown_kind_are_to_be_looked_at() -> None:
    found = _checked(cl.Column(name="token", role="identifier"), cl.Column(name="x"))
    assert found[18].columns == ("token",)
