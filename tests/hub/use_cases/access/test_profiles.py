from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from sqlalchemy import insert

from cloister.hub.domain.audit_chain import AuditRecord
from cloister.hub.domain.roles import AccountRole
from cloister.hub.store.models import AuditEntry, User
from cloister.hub.use_cases import audit_log
from cloister.hub.workers import do_upkeep
from tests.hub.use_cases.access.conftest import API, Scene


def note(scene: Scene, name: str, at: datetime, dataset: str, count: int = 1) -> None:
    """Write into the log that somebody used a dataset at some time."""
    with scene.hub.store.writing() as session:
        user = session.query(User).filter_by(name=name).one()
        for _ in range(count):
            head = audit_log.head_of(session)
            record = AuditRecord(
                number=head.number + 1,
                previous=head.digest,
                time=at.isoformat(),
                actor=user.id,
                action="service.run",
                target=f"dataset:{dataset}",
                dataset_id=dataset,
                outcome="allowed",
                details="{}",
            ).sealed()
            values = {field: getattr(record, field) for field in AuditEntry.__table__.columns.keys()}  # noqa: SIM118
            session.execute(insert(AuditEntry), values)


def test_an_unusual_day_is_pointed_out_once_and_blocks_nobody(scene: Scene) -> None:
    ada, bob = scene.user("ada"), scene.user("bob")
    auditor = scene.user("aron", AccountRole.AUDITOR, of="west")
    morning = datetime.now(UTC).replace(hour=9, minute=0, second=0, microsecond=0)
    for days in range(2, 22):
        for name in ("ada", "bob"):
            note(scene, name, morning - timedelta(days=days), scene.dataset, count=2)
    note(scene, "ada", morning - timedelta(days=200), scene.dataset, count=50)
    note(scene, "bob", morning - timedelta(days=1), scene.dataset, count=2)
    for number in range(50):
        note(scene, "ada", morning.replace(hour=3) - timedelta(days=1), f"ds_{number}")
    note(scene, "ada", morning.replace(hour=3) - timedelta(days=1), scene.dataset, count=40)

    found = auditor.get(f"{API}/audit/profiles").json()
    first, *others = found["items"]
    assert (first["person"], first["datasets"], first["suggestion"]) == ("ada", 51, "step_up")
    assert first["rank"] == 1 / len(found["items"])
    assert all(item["suggestion"] == "nothing" for item in others)
    assert "datasets used" in first["explanation"]

    own = scene.owner.get(f"{scene.place}/profiles").json()["items"]
    assert own[0]["person"] == "ada"
    assert {item["datasets"] for item in own} == {1}, "an owner does not learn what people do elsewhere"
    for outsider in (ada, bob):
        assert outsider.get(f"{API}/audit/profiles").status_code == 403
        assert outsider.get(f"{scene.place}/profiles").status_code == 403

    draft = scene.hub.blobs.folder / ".0011.draft"
    draft.touch()
    os.utime(draft, (0, 0))
    do_upkeep(scene.hub)
    do_upkeep(scene.hub)
    assert not draft.exists(), "what a crash left of an upload"
    yesterday = (morning - timedelta(days=1)).date()
    for told in (auditor, scene.owner):
        assert scene.notices(told).count(f"ada had an unusual day on {yesterday}.") == 1
    assert scene.notices(ada) == []
    scene.save(discoverable=True, roles=[])
    assert ada.get(scene.place).status_code == 200
    for page in (f"/datasets/{scene.dataset}/profiles", f"/datasets/{scene.dataset}/audit"):
        assert "ada" in scene.owner.get(page).text
    assert "Unusual days" in auditor.get("/audit/profiles").text
