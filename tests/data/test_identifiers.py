from __future__ import annotations

from typing import Any

import pytest

from cloister.data._identifiers import (
    find_identifier,
    form_of,
    identifier_by_name,
    is_turkish_identity,
    names_subject,
    plain_name,
    uniqueness,
)
from cloister.data.values import ColumnProfile, StorageType


def profile(values: list[Any], *, name: str = "column", kind: StorageType = StorageType.TEXT) -> ColumnProfile:
    present = [value for value in values if value is not None]
    distinct = list(dict.fromkeys(present))
    return ColumnProfile(
        name=name,
        type=kind,
        rows=len(values),
        missing=len(values) - len(present),
        distinct=len(distinct),
        common=tuple(distinct[:1000]),
    )


def turkish(count: int) -> list[str]:
    bodies = (str(body) for body in range(100_000_001, 10**9, 7_654_321))
    tails = [f"{body}{tail:02}" for body in list(bodies)[:count] for tail in range(100)]
    return [text for text in tails if is_turkish_identity(text)]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["ann@example.org", "bob@example.com"], "an e-mail address"),
        (["123e4567-e89b-12d3-a456-426614174000"], "a UUID"),
        (["192.0.2.1", "2001:db8::1"], "an IP address"),
        (["00:1B:44:11:3A:B7"], "a device address"),
        (["GB82 WEST 1234 5698 7654 32"], "an IBAN"),
        (["123-45-6789", "078-05-1120"], "a US social security number"),
        (["AB123456C"], "a UK national insurance number"),
        (["12345678Z"], "a Spanish identity number"),
        (["131052-308T"], "a Finnish identity code"),
        (turkish(8), "a Turkish identity number"),
        (
            ["+44 20 7946 0000", "+1 202 555 0123", "(202) 555-0123", "202-555-0199", "0044 20 7946 0001"],
            "a phone number",
        ),
        (["4111111111111111", "5500000000000004", "4012888888881881", "4222222222222220", "6011111111111117"], None),
    ],
)
def test_identifiers_are_known_by_their_form(values: list[str], kind: str | None) -> None:
    found = find_identifier(profile(values))
    if kind is None:
        values = [*values[:3], "5105105105105100", "6011111111111117"]
        found = find_identifier(profile(values))
        kind = "a payment card number"
    assert found is not None
    assert found.kind == kind
    assert found.by_value
    assert kind in found.evidence
    assert not any(value in found.evidence for value in values)


def test_numbers_stored_as_integers_are_seen_too() -> None:
    found = find_identifier(profile([int(text) for text in turkish(8)], kind=StorageType.INTEGER))
    assert found is not None
    assert found.kind == "a Turkish identity number"


def test_some_strays_do_not_hide_a_form_and_some_matches_do_not_make_one() -> None:
    mail = [f"p{number}@example.org" for number in range(8)]
    assert form_of([*mail, "unknown", "none"]) == ("an e-mail address", 0.8)
    assert form_of([*mail, "unknown", "none", "lost"]) is None
    assert form_of([None, *mail]) == ("an e-mail address", 1.0)
    assert form_of([]) is None


def test_a_few_digits_that_fit_by_chance_are_no_identifier() -> None:
    assert form_of(["9434765919"]) is None
    assert form_of([f"{number}" for number in range(1_000_000_000, 1_000_001_000)]) is None


@pytest.mark.parametrize(
    "values", [["2020-01-01"] * 9, ["01.02.2020"] * 9, ["1/2/20"] * 9, ["12.5"] * 9, ["90210"] * 9]
)
def test_dates_and_plain_numbers_are_no_phones(values: list[str]) -> None:
    assert form_of(values) is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Name", "a person's name"),
        ("first_name", "a person's name"),
        ("patientName", "a person's name"),
        ("e-mail", "an e-mail address"),
        ("home_phone", "a phone number"),
        ("Street", "a street address"),
        ("SSN", "a national identity number"),
        ("patient_id", "a record number"),
        ("PatientID", "a record number"),
        ("ID", "a record number"),
        ("MRN", "a record number"),
        ("credit_card_number", "an account or card number"),
        ("ip_address", "a device or vehicle number"),
        ("username", "a user name"),
        ("drug_name", None),
        ("country", None),
        ("age", None),
        ("idle_time", None),
    ],
)
def test_identifiers_are_known_by_their_name(name: str, kind: str | None) -> None:
    assert identifier_by_name(name) == kind
    found = find_identifier(profile(["a", "a", "b"], name=name))
    assert (found.kind if found else None) == kind
    assert found is None or not found.by_value


def test_names_are_split_into_words() -> None:
    assert plain_name("patientID") == plain_name("patient_id") == plain_name("Patient-Id ") == "patient id"
    assert plain_name("HTTPCode2") == "http code2"


def test_an_id_of_few_different_values_is_a_code() -> None:
    assert find_identifier(profile(["a", "b"] * 20, name="country_id")) is None
    found = find_identifier(profile([str(number) for number in range(9)], name="sample_id"))
    assert found is not None
    assert "ends in id" in found.evidence


def test_near_unique_columns_are_found() -> None:
    words = [f"word {number}" for number in range(100)]
    found = find_identifier(profile(words))
    assert found is not None
    assert found.evidence == "different values are 100% of all values"
    assert find_identifier(profile([*words[:90], *words[:10]])) is None
    assert find_identifier(profile(words[:10])) is None
    numbers = list(range(100))
    assert find_identifier(profile(numbers, kind=StorageType.INTEGER)) is not None
    assert find_identifier(profile([*numbers[:96], *numbers[:4]], kind=StorageType.INTEGER)) is None
    assert find_identifier(profile([number / 7 for number in numbers], kind=StorageType.REAL)) is None


def test_missing_values_do_not_count() -> None:
    assert uniqueness(profile([None, None, "a", "b"])) == 1.0
    assert uniqueness(profile([None])) == 0.0
    assert find_identifier(profile([None] * 30)) is None


def test_the_subject_has_several_rows() -> None:
    assert names_subject(profile(["a", "a", "b"], name="patient_id"))
    assert not names_subject(profile(["a", "b"], name="patient_id"))
    assert not names_subject(profile(["a", "a"], name="visit_id"))
