"""How a hub gets its first operator: ``cloister hub invite``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from cloister.cli.app import run
from cloister.hub.app import create_app
from cloister.hub.hub import open_hub
from cloister.hub.settings import Settings

PASSWORD = "four unrelated wooden words"


def invited(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, object]:
    assert run(["hub", "invite", "otis", *more, "--folder", str(folder), "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_the_first_operator_sets_a_password_and_signs_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = invited(tmp_path, capsys, "--role", "operator", "--organisation", "Hub office")
    assert (made["schema"], made["account"], made["roles"]) == ("cloister.invitation/1", "otis", ["operator"])
    token = str(made["address"]).rpartition("/")[2]
    hub = open_hub(Settings(folder=tmp_path, workers=0))
    with TestClient(create_app(hub), base_url="http://127.0.0.1:8080") as client:
        assert client.post(f"/api/v1/enrolments/{token}", json={"password": PASSWORD}).status_code == 200
        signed = client.post("/api/v1/session", json={"name": "otis", "password": PASSWORD})
        assert signed.json()["account"]["roles"] == ["operator"]
        assert client.get("/api/v1/people").status_code == 200
    hub.close()


def test_a_known_account_gets_a_new_link_but_no_roles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = invited(tmp_path, capsys, "--role", "operator")
    second = invited(tmp_path, capsys)
    assert first["address"] != second["address"]
    assert run(["hub", "invite", "otis", "--role", "auditor", "--folder", str(tmp_path)]) == 1
    assert "leave the roles out" in capsys.readouterr().err
