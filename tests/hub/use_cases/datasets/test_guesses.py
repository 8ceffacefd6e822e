"""What is guessed from the rows of an upload is in no file in plain, until the owner makes it public."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from fastapi.testclient import TestClient

from cloister.data.schema_file import dump_yaml
from cloister.errors import ConflictError, DecryptionError
from cloister.hub.domain.policy_edits import open_to_organisation
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub, open_hub
from cloister.hub.store.models import DatasetVersion
from cloister.hub.store.sealed_schemas import blob_of, working_schema
from tests.hub.conftest import ClientFor
from tests.support.hub_datasets import set_policy

API = "/api/v1"
RARE = ("zanzibaritis", "48151623", "kappa@example.org")
ROWS = "illness,income,contact\n" + "".join(f"flu,{n},a{n}@example.org\n" for n in range(50)) + ",".join(RARE) + "\n"


def uploaded(owner: TestClient, content: str = ROWS) -> str:
    """Return the address of a new dataset with rows."""
    place = f"{API}/datasets/{owner.post(f'{API}/datasets', json={'name': 'visits'}).json()['id']}"
    sent = owner.post(f"{place}/versions", content=content, headers={"Content-Type": "text/csv"})
    assert sent.status_code == 201, sent.text
    return place


def found_in_files(hub: Hub) -> list[str]:
    """Return the values of the rare row that are in plain in some file of the hub."""
    content = b"".join(path.read_bytes() for path in hub.settings.folder.rglob("*") if path.is_file())
    return [value for value in RARE if value.encode() in content]


def version_of(hub: Hub, number: int = 1) -> DatasetVersion:
    with hub.store.reading() as session:
        return session.query(DatasetVersion).filter_by(number=number).one()


def test_no_cell_of_an_unconfirmed_upload_is_in_plain(hub: Hub, client_for: ClientFor) -> None:
    owner = client_for("olga", AccountRole.DATA_OWNER)
    place = uploaded(owner)
    guessed = owner.get(f"{place}/schema").json()
    assert RARE[0] in guessed["document"]["columns"]["illness"]["categories"], "the owner sees the guess"
    assert guessed["is_confirmed"] is False
    assert found_in_files(hub) == []

    saved = owner.put(f"{place}/schema", json={"text": guessed["text"]})
    assert saved.json()["is_confirmed"] is False
    assert found_in_files(hub) == []
    owner.post(f"{place}/versions", content=ROWS, headers={"Content-Type": "text/csv"})
    assert owner.get(f"{place}/schema").json()["document"] == guessed["document"]
    assert found_in_files(hub) == []

    confirmed = owner.put(f"{place}/schema", json={"text": guessed["text"], "confirm": True})
    assert confirmed.json()["is_confirmed"] is True
    assert found_in_files(hub) == [RARE[0]], "categories that the owner has confirmed are public"


def test_guesses_are_shown_to_nobody_else(hub: Hub, client_for: ClientFor) -> None:
    owner, user = client_for("olga", AccountRole.DATA_OWNER), client_for("uma", AccountRole.DATA_USER)
    place = uploaded(owner)
    dataset = version_of(hub).dataset_id
    with hub.store.reading() as session:
        organisation = session.get_one(DatasetVersion, version_of(hub).id).dataset.organisation_id
    set_policy(hub, dataset, open_to_organisation(dataset, organisation=organisation))
    for client in (owner, user):
        shown = client.get(place)
        assert shown.status_code == 200
        assert [column["name"] for column in shown.json()["columns"]] == ["illness", "income", "contact"]
        assert not any(value in shown.text for value in RARE)


def test_nothing_is_asked_before_everything_is_confirmed(client_for: ClientFor) -> None:
    owner = client_for("olga", AccountRole.DATA_OWNER)
    place = uploaded(owner)
    for mode in ({"budget": {"epsilon": "3"}}, {"mode": "sdc"}):
        refused = owner.post(f"{place}/opening", json=mode)
        assert refused.status_code == 422
        assert "confirm them" in refused.json()["fix"]


def test_identifiers_that_are_guesses_are_hidden_by_templates(client_for: ClientFor) -> None:
    owner = client_for("olga", AccountRole.DATA_OWNER)
    place = uploaded(owner, "patient_id,age\n" + "".join(f"p{n},{n}\n" for n in range(80)))
    assert owner.get(f"{place}/schema").json()["document"]["columns"]["patient_id"]["role"] == "identifier"
    body = {"template": "research by request", "based_on": 1}
    policy = owner.post(f"{place}/policy/template", json=body)
    assert "patient_id" in str(policy.json()["document"]), policy.text


def test_guesses_go_with_the_key_of_the_rows(hub: Hub, client_for: ClientFor) -> None:
    owner = client_for("olga", AccountRole.DATA_OWNER)
    place = uploaded(owner)
    owner.post(f"{place}/versions", content=ROWS, headers={"Content-Type": "text/csv"})
    first, second = version_of(hub), version_of(hub, 2)
    assert first.sealed_schema is not None
    with pytest.raises(DecryptionError):
        hub.blobs.open_note(blob_of(second), first.sealed_schema)
    assert owner.delete(place).status_code == 204
    assert version_of(hub).sealed_schema is None
    with pytest.raises(ConflictError, match="deleted"):
        blob_of(version_of(hub))


def test_a_hub_seals_the_guesses_of_an_earlier_version_when_it_starts(hub: Hub, client_for: ClientFor) -> None:
    owner = client_for("olga", AccountRole.DATA_OWNER)
    place = uploaded(owner)
    schema = working_schema(hub.blobs, version_of(hub))
    assert schema is not None
    hub.store.close()
    with closing(sqlite3.connect(hub.settings.folder / "hub.db")) as database:
        database.execute("ALTER TABLE dataset_versions DROP COLUMN sealed_schema")
        database.execute("ALTER TABLE enrolments DROP COLUMN confirmed_by")
        database.execute("ALTER TABLE users DROP COLUMN factor_reset_asked_by")
        database.execute("UPDATE dataset_versions SET schema_text = ?", (dump_yaml(schema.to_dict()),))
        database.execute("UPDATE alembic_version SET version_num = '0001'")
        database.commit()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert found_in_files(hub) == [RARE[0]], "the control"

    again = open_hub(hub.settings)
    try:
        assert working_schema(again.blobs, version_of(again)) == schema
        assert version_of(again).schema_text == ""
    finally:
        again.close()
    assert found_in_files(again) == []
    assert owner.get(f"{place}/schema").json()["document"] == schema.to_dict()
