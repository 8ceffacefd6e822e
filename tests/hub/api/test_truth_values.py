"""No truth value stands for a number, in any request body and in the parameters of any service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from pydantic import BaseModel, ValidationError

from cloister.errors import ParameterError
from cloister.hub.api import routers
from cloister.hub.domain.roles import AccountRole
from cloister.hub.domain.untrusted_input import RequestBody
from cloister.hub.hub import Hub
from cloister.hub.services.registry import service_registry
from cloister.hub.settings import read_settings
from cloister.hub.store.models import User
from tests.hub.conftest import ClientFor
from tests.support.hub_datasets import ready_dataset, subject

API = "/api/v1"


def leaves(annotation: Any) -> list[Any]:
    parts = get_args(annotation)
    return [annotation] if not parts else [leaf for part in parts for leaf in leaves(part)]


def models() -> Iterator[type[BaseModel]]:
    """Every model of a request: bodies of routes, parameters of services, and the models inside of them."""
    found: list[type[BaseModel]] = [service.parameters for _, service in service_registry.items()]
    for router in routers():
        for route in router.routes:
            assert isinstance(route, APIRoute)
            found += [leaf for field in route.dependant.body_params for leaf in leaves(field.field_info.annotation)]
    seen: set[type[BaseModel]] = set()
    while found:
        model = found.pop()
        if isinstance(model, type) and issubclass(model, BaseModel) and model not in seen:
            seen.add(model)
            yield model
            found += [leaf for field in model.model_fields.values() for leaf in leaves(field.annotation)]


MODELS = sorted(models(), key=lambda model: (model.__module__, model.__name__))


def test_the_search_finds_models() -> None:
    names = {model.__name__ for model in MODELS}
    assert {"SignIn", "BudgetBody", "Opening", "Invitations"} <= names
    assert len(MODELS) > 30


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_field_for_numbers_takes_no_truth_value(model: type[BaseModel]) -> None:
    assert issubclass(model, RequestBody)
    for name, field in model.model_fields.items():
        kinds = leaves(field.annotation)
        if bool in kinds or Any in kinds:
            continue
        for value in (True, [True], {"x": True}):
            if value is not True and any(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds):
                continue
            with pytest.raises(ValidationError) as refused:
                model.model_validate({field.alias or name: value})
            wrong = [error for error in refused.value.errors() if error["loc"][0] in (name, field.alias)]
            assert any("truth value" in error["msg"] for error in wrong), name


def test_an_epsilon_of_true_is_refused_by_the_api(hub: Hub, client_for: ClientFor) -> None:
    owner: TestClient = client_for("olga", AccountRole.DATA_OWNER)
    with hub.store.reading() as session:
        olga = session.query(User).one().id
    dataset = ready_dataset(hub, subject(hub, olga))
    for body in ({"epsilon": True}, {"epsilon": "1", "delta": False}):
        assert owner.put(f"{API}/datasets/{dataset}/budget", json=body).status_code == 422
    asked = {"parameters": {"sql": "SELECT COUNT(*) AS n FROM data", "epsilon": True}, "purpose": "research.health"}
    preview = owner.post(f"{API}/datasets/{dataset}/services/query.sql/preview", json=asked)
    assert preview.status_code == 422
    assert owner.post(f"{API}/datasets/{dataset}/services/query.sql/runs", json=asked).status_code == 422


def test_no_setting_for_a_number_or_a_text_takes_a_truth_value(tmp_path: Path) -> None:
    for name in ("port", "workers", "lease_seconds", "upload_limit", "host", "database"):
        with pytest.raises(ParameterError, match=f"correct {name}"):
            read_settings(environment={}, folder=tmp_path, **{name: True})
    assert read_settings(environment={"CLOISTER_HUB_DEMO": "true"}, folder=tmp_path, separate_duties=False).demo
