from __future__ import annotations

from pathlib import Path

import pytest

from cloister.hub.gateway.identity import known_hosts
from cloister.hub.settings import Settings
from tests.hub.conftest import ClientFor


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:8080", "[::1]:8080"])
def test_the_own_address_is_answered(client_for: ClientFor, host: str) -> None:
    assert client_for().get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:9999", "localhost.evil.example:8080", ""])
def test_another_address_is_refused(client_for: ClientFor, host: str) -> None:
    refused = client_for().get("/health", headers={"Host": host})
    assert refused.status_code == 421


def test_a_proxy_names_the_public_address() -> None:
    hosts = known_hosts(Settings(folder=Path("hub"), public_url="https://hub.example.org"))
    assert "hub.example.org" in hosts
