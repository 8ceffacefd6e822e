"""Accounts with passwords, on a hub whose hashing is quick."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from argon2 import PasswordHasher, Type

from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store.models import User
from cloister.hub.use_cases.accounts import passwords
from tests.hub.conftest import add_user

PASSWORD = "four unrelated wooden words"

AddPerson = Callable[..., str]


@pytest.fixture(autouse=True)
def quick_hashing(monkeypatch: pytest.MonkeyPatch) -> None:
    hasher = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1, type=Type.ID)
    monkeypatch.setattr(passwords, "_hasher", hasher)


@pytest.fixture
def add_person(hub: Hub) -> AddPerson:
    """A function that makes an account with the password ``PASSWORD``."""

    def add(name: str, *roles: AccountRole, of: str = "north") -> str:
        user_id = add_user(hub, name, *roles, of=of)
        with hub.store.writing() as session:
            user = session.get(User, user_id)
            assert user is not None
            user.password_hash = passwords.hash_password(PASSWORD)
        return user_id

    return add
