from __future__ import annotations

import json
import threading

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from cloister.errors import AuditDamagedError, CloisterError, ForbiddenError, NotSignedInError
from cloister.hub.domain import actions
from cloister.hub.domain.audit_chain import AuditHead
from cloister.hub.domain.roles import AccessSubject, AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store.models import AuditEntry, Dataset, User
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases.audit_log import ALLOWANCE, AuditFilter, RefusalCounts
from tests.hub.conftest import ClientFor

ADA = AccessSubject(user_id="usr_ada", name="ada", roles=frozenset({AccountRole.DATA_USER}))
COLUMNS = "time, actor, action, target, dataset_id, outcome, details, previous"


def _append(hub: Hub, count: int = 1) -> None:
    for number in range(count):
        with hub.store.writing() as session:
            audit_log.append(session, actions.CREATE_DATASET, by=ADA, target=f"dataset:ds_{number}", number=number)


def _verify(hub: Hub, known: AuditHead | None = None) -> AuditHead:
    with hub.store.reading() as session:
        return audit_log.verify(session, known=known)


def _tamper(hub: Hub, *statements: str) -> None:
    """Do what somebody with the database file, and enough rights to drop the triggers, could do."""
    with hub.store.engine.begin() as connection:
        for change in ("update", "delete"):
            connection.execute(text(f"DROP TRIGGER audit_entries_no_{change}"))
        connection.execute(text("DROP TRIGGER audit_entries_in_order"))
        for statement in statements:
            connection.execute(text(statement))


def test_entries_form_one_chain_that_verifies(any_hub: Hub) -> None:
    _append(any_hub, 3)
    head = _verify(any_hub)
    assert head.number == 3
    assert _verify(any_hub, AuditHead(number=3, digest=head.digest)) == head
    with any_hub.store.reading() as session:
        entries, following = audit_log.read_entries(session, AuditFilter(), limit=2)
    assert [entry["number"] for entry in entries] == [3, 2]
    assert following == 2


def test_an_entry_is_kept_exactly_when_its_transaction_is(any_hub: Hub) -> None:
    with pytest.raises(RuntimeError):
        _fail_after_append(any_hub)
    with any_hub.store.writing() as session:
        audit_log.append(session, "test.lost", by=ADA)
        session.rollback()
    with any_hub.store.writing() as session:
        audit_log.append(session, "test.kept", by=audit_log.HUB)
        audit_log.append(session, "test.too", by=None)
    with any_hub.store.reading() as session:
        found = [(entry.action, entry.actor) for entry in session.query(AuditEntry).order_by(AuditEntry.number)]
    assert found == [("test.kept", "hub"), ("test.too", "anonymous")]


def _fail_after_append(hub: Hub) -> None:
    with hub.store.writing() as session:
        audit_log.append(session, "test.lost", by=ADA)
        raise RuntimeError


def test_an_entry_is_not_part_of_a_part(hub: Hub) -> None:
    with hub.store.writing() as session, session.begin_nested(), pytest.raises(CloisterError, match="bug"):
        audit_log.append(session, "test.part", by=ADA)


def test_many_writers_make_one_chain(any_hub: Hub) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            _append(any_hub, 10)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert _verify(any_hub).number == 60


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_entries SET actor = 'usr_eve' WHERE number = 2",
        "DELETE FROM audit_entries WHERE number = 3",
        f"INSERT INTO audit_entries SELECT 2, {COLUMNS}, 'x' FROM audit_entries WHERE number = 1",
        f"INSERT INTO audit_entries SELECT 9, {COLUMNS}, 'x' FROM audit_entries WHERE number = 1",
    ],
)
def test_the_database_refuses_to_change_the_log(any_hub: Hub, statement: str) -> None:
    _append(any_hub, 3)
    with pytest.raises(DBAPIError, match="append-only"), any_hub.store.engine.begin() as connection:
        connection.execute(text(statement))
    assert _verify(any_hub).number == 3


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.parametrize("any_hub", ["postgres"], indirect=True)
def test_the_database_refuses_to_empty_the_log(any_hub: Hub) -> None:
    _append(any_hub)
    with pytest.raises(DBAPIError, match="append-only"), any_hub.store.engine.begin() as connection:
        connection.execute(text("TRUNCATE audit_entries"))


def test_replacing_an_entry_is_refused_too(hub: Hub) -> None:
    _append(hub, 3)
    statement = "INSERT OR REPLACE INTO audit_entries SELECT * FROM audit_entries WHERE number = 2"
    with pytest.raises(DBAPIError, match="append-only"), hub.store.engine.begin() as connection:
        connection.execute(text(statement))


@pytest.mark.parametrize(
    ("statements", "entry"),
    [
        (["UPDATE audit_entries SET details = '{}' WHERE number = 2"], 2),
        (["UPDATE audit_entries SET actor = 'usr_eve' WHERE number = 4"], 4),
        (["UPDATE audit_entries SET dataset_id = 'ds_other' WHERE number = 1"], 1),
        (["DELETE FROM audit_entries WHERE number = 2"], 2),
        (["DELETE FROM audit_entries WHERE number = 1"], 1),
        (
            [
                "DELETE FROM audit_entries WHERE number = 2",
                "UPDATE audit_entries SET number = number - 1 WHERE number > 2",
            ],
            2,
        ),
        (
            [
                "UPDATE audit_entries SET number = 99 WHERE number = 2",
                "UPDATE audit_entries SET number = 2 WHERE number = 3",
                "UPDATE audit_entries SET number = 3 WHERE number = 99",
            ],
            2,
        ),
    ],
)
def test_edits_deletions_and_moves_are_found(hub: Hub, statements: list[str], entry: int) -> None:
    _append(hub, 4)
    _tamper(hub, *statements)
    with pytest.raises(AuditDamagedError, match="compare it with a backup") as caught:
        _verify(hub)
    assert caught.value.entry == entry


def test_a_cut_end_or_another_history_is_found_with_a_head_noted_before(hub: Hub) -> None:
    _append(hub, 4)
    noted = _verify(hub)
    _tamper(hub, "DELETE FROM audit_entries WHERE number > 2")
    assert _verify(hub).number == 2, "without a noted head a cut end cannot be seen"
    with pytest.raises(AuditDamagedError, match="missing"):
        _verify(hub, noted)
    _append(hub, 3)
    with pytest.raises(AuditDamagedError, match="noted"):
        _verify(hub, AuditHead(number=4, digest=noted.digest))


def test_refusals_cannot_fill_the_log(hub: Hub) -> None:
    problem = ForbiddenError("No.", fix="ask.")
    for number in range(200):
        audit_log.record_refusal(hub.store, actions.SEE_DATASET, subject=ADA, target_id=f"ds_{number}", problem=problem)
        audit_log.record_refusal(
            hub.store, actions.SEE_HOME, subject=None, target_id=None, problem=NotSignedInError("No.", fix="sign in.")
        )
    with hub.store.reading() as session:
        assert session.query(AuditEntry).count() == ALLOWANCE + 1
    audit_log.write_counts(hub.store)
    audit_log.write_counts(hub.store)
    with hub.store.reading() as session:
        counted = session.query(AuditEntry).filter_by(action="audit.count").order_by(AuditEntry.actor).all()
    assert [json.loads(entry.details)["more"] for entry in counted] == [
        {"home.see NotSignedInError": 199},
        {"dataset.see ForbiddenError": 190},
    ]
    assert _verify(hub).number == ALLOWANCE + 3


def test_a_new_minute_has_a_new_allowance_and_writes_what_was_counted(hub: Hub) -> None:
    time = [0.0]
    counts = RefusalCounts(clock=lambda: time[0])
    assert [counts.note(hub.store, "anonymous", "a")[1] for _ in range(3)] == [True, False, False]
    time[0] = 59.0
    assert counts.note(hub.store, "anonymous", "b") == ({}, False)
    time[0] = 60.0
    assert counts.note(hub.store, "usr_ada", "a") == ({"anonymous": {"a": 2, "b": 1}}, True)
    assert counts.note(hub.store, "anonymous", "a") == ({}, True)


def test_what_somebody_types_as_an_id_is_not_kept_unless_it_is_one(hub: Hub) -> None:
    problem = ForbiddenError("No.", fix="ask.")
    for target in ("ds_k3v", "Robert'); DROP TABLE patients", "a" * 500):
        audit_log.record_refusal(hub.store, actions.SEE_DATASET, subject=ADA, target_id=target, problem=problem)
    with hub.store.reading() as session:
        assert [entry.target for entry in session.query(AuditEntry)] == ["dataset:ds_k3v", "", ""]


def test_details_that_could_hold_data_are_too_long(hub: Hub) -> None:
    with pytest.raises(CloisterError, match="report"), hub.store.writing() as session:
        audit_log.append(session, "test.long", by=ADA, rows="x" * 5_000)


def test_auditors_read_and_verify_everything_and_others_nothing(hub: Hub, client_for: ClientFor) -> None:
    auditor, user = client_for("tom", AccountRole.AUDITOR), client_for("ada", AccountRole.DATA_USER)
    assert user.get("/api/v1/audit").status_code == 403
    assert user.get("/api/v1/audit/verification").status_code == 403
    found = auditor.get("/api/v1/audit", params={"actor": "ada", "outcome": "refused"}).json()["items"]
    assert [entry["actor"]["name"] for entry in found] == ["ada", "ada"]
    assert found[0]["details"]["problem"] == "ForbiddenError"
    verified = auditor.get("/api/v1/audit/verification").json()
    assert verified["entries"] >= 2
    noted = {"number": verified["entries"], "digest": verified["head"]}
    assert auditor.get("/api/v1/audit/verification", params=noted).status_code == 200
    wrong = auditor.get("/api/v1/audit/verification", params={**noted, "digest": "f" * 64})
    assert wrong.json()["error"] == "AuditDamagedError"


def test_owners_read_what_is_about_their_dataset_only(hub: Hub, client_for: ClientFor) -> None:
    owner, other = client_for("olga", AccountRole.DATA_OWNER), client_for("otto", AccountRole.DATA_OWNER, of="south")
    with hub.store.writing() as session:
        olga = session.query(User).filter_by(name="olga").one()
        session.add(Dataset(id="ds_mine", name="mine", organisation_id=str(olga.organisation_id), creator_id=olga.id))
        audit_log.append(session, actions.RUN_SERVICE, by=ADA, target="job:job_1", dataset_id="ds_mine")
        audit_log.append(session, actions.RUN_SERVICE, by=ADA, target="job:job_2", dataset_id="ds_other")
    found = owner.get("/api/v1/datasets/ds_mine/audit").json()["items"]
    assert [entry["target"] for entry in found] == ["job:job_1"]
    assert other.get("/api/v1/datasets/ds_mine/audit").status_code == 404
    assert owner.get("/api/v1/audit").status_code == 403
    found = owner.get("/api/v1/datasets/ds_mine/audit").json()["items"]
    assert [(entry["actor"]["name"], entry["outcome"]) for entry in found] == [("otto", "refused"), ("usr_ada", "done")]


def test_the_log_has_no_column_for_an_address(hub: Hub, client_for: ClientFor) -> None:
    client_for("ada", AccountRole.DATA_USER).get("/api/v1/audit")
    with hub.store.reading() as session:
        text_of_all = " ".join(str(vars(entry)) for entry in session.query(AuditEntry))
    assert "testclient" not in text_of_all
    assert "127.0.0.1" not in text_of_all


def test_allowed_changes_are_in_the_log(hub: Hub, client_for: ClientFor) -> None:
    operator = client_for("oper", AccountRole.OPERATOR)
    assert operator.post("/api/v1/organisations", json={"name": "East"}).status_code == 200
    with hub.store.reading() as session:
        found = [(entry.action, entry.outcome) for entry in session.query(AuditEntry).order_by(AuditEntry.number)]
    assert found == [("accounts.manage", "allowed"), ("accounts.manage", "done")]
