from __future__ import annotations

import time
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient

from cloister.errors import ParameterError
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store.models import ApiToken, RecoveryCode, SignInTries, User, now
from cloister.hub.use_cases.accounts import own_account, passwords, second_factor
from tests.hub.conftest import ClientFor, sign_in
from tests.hub.use_cases.accounts.conftest import PASSWORD, AddPerson
from tests.hub.use_cases.accounts.qr_reader import read_qr_picture

NEW = "seven quite different wooden spoons"


@pytest.fixture
def browser(hub: Hub, client_for: ClientFor, add_person: AddPerson) -> TestClient:
    """The browser of Ada, who is signed in."""
    client = client_for()
    sign_in(hub, client, add_person("ada", AccountRole.DATA_USER))
    return client


def _code(secret: str, *, steps: int = 0) -> str:
    import base64

    return second_factor.code_at(base64.b32decode(secret), int(time.time()) // second_factor.STEP + steps)


def _sign_in(client: TestClient, **given: str) -> int:
    return client.post("/api/v1/session", json={"name": "ada", "password": PASSWORD, **given}).status_code


def _use_factor(browser: TestClient) -> tuple[str, list[str]]:
    secret = browser.post("/api/v1/account/totp", json={"password": PASSWORD}).json()["secret"]
    confirmed = browser.post("/api/v1/account/totp/confirmation", json={"code": _code(secret, steps=-1)})
    return secret, confirmed.json()["recovery_codes"]


@pytest.mark.parametrize(
    ("password", "says"),
    [
        ("short", "12 to 256"),
        ("x" * 257, "12 to 256"),
        ("Password1234", "many people"),
        ("aaaabbbbaaaabbbb", "many people"),
        ("ada.lovelace", "hardly more than the name"),
        ("ada.lovelace2026", "hardly more than the name"),
        ("cloisterada.lovelace", "hardly more than the name"),
    ],
)
def test_bad_passwords_are_refused(password: str, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        passwords.check_password(password, name="ada.lovelace")


def test_passwords_are_one_in_both_unicode_forms() -> None:
    kept = passwords.hash_password("four u\u0308ber wooden words")
    assert passwords.verify_password(kept, "four \u00fcber wooden words")
    assert not passwords.verify_password(kept, "four uber wooden words")
    assert not passwords.verify_password("not a hash", "four uber wooden words")


def test_the_real_parameters_are_those_of_the_standard(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    fresh = importlib.reload(passwords)
    assert (fresh._hasher.memory_cost, fresh._hasher.time_cost, fresh._hasher.parallelism) == (65536, 3, 4)
    assert fresh.hash_password("some long password").startswith("$argon2id$v=19$m=65536,t=3,p=4$")


def test_changing_the_password_ends_other_sign_ins(hub: Hub, browser: TestClient, client_for: ClientFor) -> None:
    other = client_for()
    assert _sign_in(other) == 200
    wrong = browser.put("/api/v1/account/password", json={"current": "not my password", "new": NEW})
    assert wrong.status_code == 403
    assert browser.put("/api/v1/account/password", json={"current": PASSWORD, "new": NEW}).status_code == 200
    assert browser.get("/api/v1/session").status_code == 200
    assert other.get("/api/v1/session").status_code == 401
    assert _sign_in(client_for()) == 401
    assert _sign_in(client_for(), password=NEW) == 200


def test_the_present_password_cannot_be_guessed_from_a_stolen_sign_in(browser: TestClient) -> None:
    given = {"current": "not my password", "new": NEW}
    codes = [browser.put("/api/v1/account/password", json=given).status_code for _ in range(6)]
    assert codes == [403] * 5 + [429]


@pytest.mark.parametrize(
    ("moment", "code"),
    [
        (59, "287082"),
        (1111111109, "081804"),
        (1111111111, "050471"),
        (1234567890, "005924"),
        (2000000000, "279037"),
        (20000000000, "353130"),
    ],
)
def test_codes_are_those_of_rfc_6238(moment: int, code: str) -> None:
    secret = b"12345678901234567890"
    assert second_factor.code_at(secret, moment // second_factor.STEP) == code
    assert second_factor.matching_step(secret, code, time=moment, after=None) == moment // second_factor.STEP


def test_a_code_works_one_step_early_and_late_and_once() -> None:
    secret, step = b"12345678901234567890", 1000
    for offset in (-1, 0, 1):
        code = second_factor.code_at(secret, step + offset)
        assert second_factor.matching_step(secret, code, time=step * 30, after=None) == step + offset
        assert second_factor.matching_step(secret, code, time=step * 30, after=step + offset) is None
    for offset in (-2, 2):
        assert (
            second_factor.matching_step(
                secret, second_factor.code_at(secret, step + offset), time=step * 30, after=None
            )
            is None
        )
    for odd in ("", "\uff11\uff12\uff13\uff14\uff15\uff16", "abcdef", "1" * 60):
        assert second_factor.matching_step(secret, odd, time=step * 30, after=None) is None


def test_a_second_factor_is_needed_once_it_is_confirmed(hub: Hub, browser: TestClient, client_for: ClientFor) -> None:
    proposed = browser.post("/api/v1/account/totp", json={"password": PASSWORD}).json()
    assert proposed["address"].startswith("otpauth://totp/cloister:ada?secret=")
    assert read_qr_picture(proposed["picture"]) == proposed["address"]
    assert _sign_in(client_for()) == 200, "not before it is confirmed"
    assert browser.post("/api/v1/account/totp/confirmation", json={"code": "000000x"}).status_code == 403
    confirmed = browser.post("/api/v1/account/totp/confirmation", json={"code": _code(proposed["secret"], steps=-1)})
    assert len(confirmed.json()["recovery_codes"]) == 10
    client = client_for()
    assert _sign_in(client) == 401
    code = _code(proposed["secret"])
    assert _sign_in(client, code=code) == 200
    assert _sign_in(client_for(), code=code) == 401, "a code works once"
    with hub.store.reading() as session:
        user = session.query(User).filter_by(name="ada").one()
    assert user.totp_sealed is not None
    assert proposed["secret"].encode() not in user.totp_sealed


def test_the_sealed_secret_of_one_account_is_nothing_for_another(
    hub: Hub, browser: TestClient, client_for: ClientFor, add_person: AddPerson
) -> None:
    secret, _ = _use_factor(browser)
    eve = add_person("eve")
    with hub.store.writing() as session:
        session.get_one(User, eve).totp_sealed = session.query(User).filter_by(name="ada").one().totp_sealed
    answer = client_for().post("/api/v1/session", json={"name": "eve", "password": PASSWORD, "code": _code(secret)})
    assert answer.status_code != 200


def test_recovery_codes_work_once_and_are_kept_as_digests(hub: Hub, browser: TestClient, client_for: ClientFor) -> None:
    _, codes = _use_factor(browser)
    with hub.store.reading() as session:
        kept = {code.digest for code in session.query(RecoveryCode)}
    assert len(kept) == 10
    assert not kept & {code.replace("-", "") for code in codes}
    assert _sign_in(client_for(), code=codes[0].upper()) == 200
    assert _sign_in(client_for(), code=codes[0]) == 401
    assert browser.get("/api/v1/account").json()["recovery_codes_left"] == 9


def test_codes_are_tries_too(hub: Hub, browser: TestClient, client_for: ClientFor) -> None:
    _use_factor(browser)
    client = client_for()
    assert [_sign_in(client, code=f"{number:06d}") for number in range(6)] == [401] * 5 + [429]


def test_a_second_factor_is_removed_with_password_and_code(
    hub: Hub, browser: TestClient, client_for: ClientFor
) -> None:
    secret, codes = _use_factor(browser)
    path = "/api/v1/account/totp/removal"
    assert browser.post(path, json={"password": "not my password", "code": codes[0]}).status_code == 403
    assert browser.post(path, json={"password": PASSWORD, "code": "000000x"}).status_code == 403
    assert browser.post(path, json={"password": PASSWORD, "code": _code(secret)}).status_code == 200
    assert browser.post(path, json={"password": PASSWORD, "code": codes[0]}).status_code == 409
    assert _sign_in(client_for()) == 200
    with hub.store.reading() as session:
        assert session.query(RecoveryCode).count() == 0


def test_a_second_factor_is_replaced_with_one_of_its_codes_only(
    hub: Hub, browser: TestClient, client_for: ClientFor
) -> None:
    secret, codes = _use_factor(browser)
    path = "/api/v1/account/totp"
    assert browser.post(path, json={"password": PASSWORD}).status_code == 403
    assert browser.post(path, json={"password": PASSWORD, "code": "000000x"}).status_code == 403
    assert browser.post(f"{path}/confirmation", json={"code": _code(secret)}).status_code == 409
    proposed = browser.post(path, json={"password": PASSWORD, "code": codes[0]}).json()
    assert _sign_in(client_for(), code=_code(secret)) == 200, "the old one counts until the new one is confirmed"
    confirmed = browser.post(f"{path}/confirmation", json={"code": _code(proposed["secret"], steps=-1)})
    assert confirmed.status_code == 200
    assert _sign_in(client_for(), code=_code(secret)) == 401
    assert _sign_in(client_for(), code=codes[1]) == 401
    assert _sign_in(client_for(), code=_code(proposed["secret"])) == 200


def test_tokens_do_what_they_are_for_and_nothing_else(hub: Hub, browser: TestClient, client_for: ClientFor) -> None:
    made = browser.post("/api/v1/account/tokens", json={"name": "script", "scopes": ["account.see"]}).json()
    assert made["secret"].startswith("clst_")
    bearer = {"Authorization": f"Bearer {made['secret']}"}
    program = client_for()
    assert program.get("/api/v1/session", headers=bearer).json()["account"]["scopes"] == ["account.see"]
    refused = program.get("/api/v1/jobs", headers=bearer)
    assert refused.status_code == 403
    assert "jobs.list" in refused.json()["fix"]
    with hub.store.reading() as session:
        kept = session.query(ApiToken).one()
    assert made["secret"] not in str(vars(kept))
    assert "secret" not in browser.get("/api/v1/account/tokens").json()["items"][0]


@pytest.mark.parametrize("scopes", [["*"], ["account.*"]])
def test_no_token_makes_tokens_or_changes_the_account(
    browser: TestClient, client_for: ClientFor, scopes: list[str]
) -> None:
    made = browser.post("/api/v1/account/tokens", json={"name": "script", "scopes": scopes}).json()
    program = client_for()
    program.headers["Authorization"] = f"Bearer {made['secret']}"
    for method, path, body in (
        ("POST", "/api/v1/account/tokens", {"name": "more", "scopes": ["*"]}),
        ("PUT", "/api/v1/account/password", {"current": PASSWORD, "new": NEW}),
        ("POST", "/api/v1/account/totp", {"password": PASSWORD}),
        ("DELETE", "/api/v1/account/sign-ins", {}),
        ("POST", "/api/v1/account/identities", {}),
    ):
        answer = program.request(method, path, json=body)
        assert (answer.status_code, answer.json()["fix"]) == (403, "sign in yourself.")


def test_a_token_never_does_more_than_its_account(browser: TestClient, client_for: ClientFor) -> None:
    made = browser.post("/api/v1/account/tokens", json={"name": "script", "scopes": ["*"]}).json()
    bearer = {"Authorization": f"Bearer {made['secret']}"}
    assert client_for().get("/api/v1/people", headers=bearer).status_code == 403


def test_tokens_end(hub: Hub, browser: TestClient, client_for: ClientFor) -> None:
    made = browser.post("/api/v1/account/tokens", json={"name": "script", "scopes": ["*"], "days": 1}).json()
    bearer = {"Authorization": f"Bearer {made['secret']}"}
    program = client_for()
    assert program.get("/api/v1/session", headers=bearer).status_code == 200
    with hub.store.writing() as session:
        session.query(ApiToken).update({"expires": now() - timedelta(seconds=1)})
    assert program.get("/api/v1/session", headers=bearer).status_code == 401
    made = browser.post("/api/v1/account/tokens", json={"name": "script", "scopes": ["*"]}).json()
    bearer = {"Authorization": f"Bearer {made['secret']}"}
    assert browser.delete(f"/api/v1/account/tokens/{made['id']}").status_code == 200
    assert program.get("/api/v1/session", headers=bearer).status_code == 401
    assert browser.delete(f"/api/v1/account/tokens/{made['id']}").status_code == 404


@pytest.mark.parametrize(
    "given", [{"scopes": ["jobs.lst"]}, {"scopes": []}, {"scopes": ["account.change"]}, {"scopes": ["*"], "days": 0}]
)
def test_odd_tokens_are_refused(browser: TestClient, given: dict[str, object]) -> None:
    assert browser.post("/api/v1/account/tokens", json={"name": "script", **given}).status_code == 422


def test_tokens_of_others_cannot_be_seen_or_ended(browser: TestClient, client_for: ClientFor) -> None:
    made = browser.post("/api/v1/account/tokens", json={"name": "script", "scopes": ["*"]}).json()
    other = client_for("eve", AccountRole.OPERATOR)
    assert other.get("/api/v1/account/tokens").json()["items"] == []
    assert other.delete(f"/api/v1/account/tokens/{made['id']}").status_code == 404


def test_there_are_not_endlessly_many_tokens(browser: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_account, "MOST_TOKENS", 2)
    given = {"name": "script", "scopes": ["*"]}
    assert [browser.post("/api/v1/account/tokens", json=given).status_code for _ in range(3)] == [200, 200, 409]


def test_sign_ins_are_listed_and_ended(browser: TestClient, client_for: ClientFor) -> None:
    other = client_for()
    assert _sign_in(other) == 200
    listed = browser.get("/api/v1/account/sign-ins").json()["items"]
    assert sorted(item["is_this"] for item in listed) == [False, True]
    ending = next(item["id"] for item in listed if not item["is_this"])
    assert client_for("eve").delete(f"/api/v1/account/sign-ins/{ending}").status_code == 404
    assert browser.delete(f"/api/v1/account/sign-ins/{ending}").status_code == 200
    assert other.get("/api/v1/session").status_code == 401
    assert _sign_in(other) == 200
    assert browser.delete("/api/v1/account/sign-ins").json()["ended"] == 2
    assert other.get("/api/v1/session").status_code == browser.get("/api/v1/session").status_code == 401


def test_an_account_without_a_password_cannot_set_one_by_a_stolen_sign_in(hub: Hub, client_for: ClientFor) -> None:
    client = client_for("from-elsewhere")
    answer = client.put("/api/v1/account/password", json={"current": "", "new": NEW})
    assert answer.status_code == 409
    assert "operator" in answer.json()["fix"]
    with hub.store.reading() as session:
        assert session.query(SignInTries).count() == 0
