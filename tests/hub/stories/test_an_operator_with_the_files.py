"""An operator has every file of a hub but the key: databases, logs, sealed files, a backup. No value can be recovered.

The script that tries is the same with and without the key, so that its failure means something.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx2
import pyarrow.parquet as pq
import pytest

from cloister.crypto.keys import DataKey, MasterKey
from cloister.crypto.sealed_data import SealedReader, unseal
from cloister.errors import CloisterError, DecryptionError
from cloister.hub.backups import backup
from cloister.hub.domain.roles import AccountRole
from cloister.hub.gateway.identity import CSRF_COOKIE, CSRF_HEADER
from cloister.hub.hub import Hub
from cloister.local.survey import Survey
from tests.hub.conftest import add_user
from tests.hub.live import login_cookies, serving
from tests.hub.services.helpers import API, PURPOSE, allow, work
from tests.hub.use_cases.surveys.conftest import DOCUMENT, slug_of

pytestmark = pytest.mark.slow

PERSON, INCOME, NOTE = "marked-5f3a9c71", 48_151_623_427_108, "zanzibaritis-8d21"
MARKS = (PERSON, str(INCOME), NOTE)
TRUE_SLEEP = "7.34521"
ROWS = "patient,age,sex,income,note\n" + "".join(
    f"p{n},{20 + n % 60},{'FM'[n % 2]},{1000 + n},fine\n" for n in range(120)
)
SCHEMA = {
    "columns": {
        "patient": {"role": "identifier", "kind": "nominal", "storage": "text", "subject": True},
        "age": {"role": "quasi", "kind": "numeric", "bounds": [0, 110], "storage": "integer"},
        "sex": {"role": "quasi", "kind": "nominal", "categories": ["F", "M"], "storage": "text"},
        "income": {"role": "sensitive", "kind": "numeric", "bounds": [0, 10**15], "storage": "integer"},
        "note": {"role": "sensitive", "kind": "nominal", "storage": "text"},
    }
}
KEY_LINE = re.compile(rb"\d+:[A-Za-z0-9+/]{43}=")


# The hub ---------------------------------------------------------------------------------------------------------


class Person:
    """Somebody who talks with a hub that listens."""

    def __init__(self, hub: Hub, address: str, user_id: str) -> None:
        cookies = {one["name"]: one["value"] for one in login_cookies(hub, user_id, address)}
        headers = {CSRF_HEADER: cookies[CSRF_COOKIE]}
        self._client = httpx2.Client(base_url=f"{address}{API}", cookies=cookies, headers=headers, timeout=120)

    def ask(self, method: str, path: str, **given: Any) -> Any:
        answer = self._client.request(method, path, **given)
        assert answer.is_success, answer.text
        return answer.json() if "json" in answer.headers["content-type"] else answer.text

    def run(self, hub: Hub, dataset: str, service: str, **parameters: Any) -> str:
        body = {"parameters": parameters, "purpose": PURPOSE}
        job = self.ask("POST", f"/datasets/{dataset}/services/{service}/runs", json=body)["id"]
        work(hub)
        return str(job)

    def close(self) -> None:
        self._client.close()


def use_everything(hub: Hub, owner: Person, user: Person, user_id: str) -> None:
    """Upload, open, ask, measure, release and survey; what is marked goes through all of it."""
    dataset = owner.ask("POST", "/datasets", json={"name": "visits", "title": "Visits"})["id"]
    place, rows = f"/datasets/{dataset}", f"{ROWS}{PERSON},44,F,{INCOME},{NOTE}\n"
    owner.ask("POST", f"{place}/versions", content=rows, headers={"content-type": "text/csv"})
    assert NOTE in owner.ask("GET", f"{place}/schema")["text"], "the owner sees what is guessed"
    owner.ask("PUT", f"{place}/schema", json={"document": SCHEMA, "confirm": True})
    owner.ask("POST", f"{place}/opening", json={"budget": {"epsilon": "3"}, "max_rows_per_unit": 1})
    owner.ask("POST", f"{place}/versions", content=rows, headers={"content-type": "text/csv"})
    allow(hub, dataset, user_id)

    sql = f"SELECT AVG(income) AS income FROM data WHERE age = 44 AND note = '{NOTE[:4]}'"
    asked = user.run(hub, dataset, "query.sql", sql=sql, epsilon="1")
    assert user.ask("GET", f"/jobs/{asked}/result")["guarantee"]["epsilon"] == "1"
    owner.run(hub, dataset, "risk.assess")
    released = user.run(hub, dataset, "release.anonymize", k=3, columns=["age", "sex", "income"])
    owner.ask("POST", f"/jobs/{released}/decision", json={"approve": True, "reason": "for this study"})
    assert str(INCOME) in user.ask("GET", f"/jobs/{released}/files/protected.csv")

    draft = user.ask("POST", "/surveys", json={"document": DOCUMENT})["id"]
    survey = user.ask("POST", f"/surveys/{draft}/publish")
    said = Survey.from_dict(survey["document"]).answer({"sleep": TRUE_SLEEP, "smoke": "yes"}, day=survey["opened"])
    user.ask("POST", f"/surveys/{slug_of(survey)}/submissions", json={"submission": said.to_dict()})


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], bytes]:
    """The files of a hub while it runs, as somebody with its disk and its backups copies them, and its key."""
    place = tmp_path_factory.mktemp("machine")
    with serving(place / "hub", answer_seconds=0.0) as (hub, address):
        users = (
            add_user(hub, "olga", AccountRole.DATA_OWNER),
            add_user(hub, "uma", AccountRole.DATA_USER, of="university"),
        )
        owner, user = (Person(hub, address, who) for who in users)
        try:
            use_everything(hub, owner, user, users[1])
        finally:
            owner.close()
            user.close()
        backup(hub.settings, place / "backup.tar")
        files = {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}
    return files, files.pop("hub/keys/master.key")


# The operator ----------------------------------------------------------------------------------------------------


class Operator:
    """Somebody who knows the hub's code by heart and has these files."""

    def __init__(self, files: dict[str, bytes], place: Path) -> None:
        self.files = dict(files)
        for name, content in files.items():
            if name.endswith(".tar"):
                self.files |= {f"{name}/{inside}": found for inside, found in _archived(content).items()}
        self.rows = [row for name in self.files if name.endswith("hub.db") for row in self._rows(name, place)]
        self.blobs: dict[Path, str] = {}
        for name, content in self.files.items():
            if "/blobs/" in name:
                path = place / name.replace("/", "-")
                path.write_bytes(content)
                self.blobs[path] = name.rpartition("/")[2]

    def recovered(self) -> set[str]:
        """Return the marked values that can be found in any way."""
        opened = [form for content in self.opened() for form in (content, *_unpacked(content))]
        texts = [*self.files.values(), *self.values(), *opened]
        return {mark for mark in (*MARKS, TRUE_SLEEP) if any(_holds(text, mark) for text in texts)}

    def values(self) -> Iterator[bytes]:
        """Return every value of every table, as it is and decoded."""
        for row in self.rows:
            for value in row.values():
                content = value if isinstance(value, bytes) else str(value).encode()
                yield from (content, *_decoded(content))

    def candidates(self) -> Iterator[bytes]:
        """Return everything that could be a key: lines of key files, parts of short values, digests of values."""
        for content in self.files.values():
            yield from (base64.b64decode(line.partition(b":")[2]) for line in KEY_LINE.findall(content))
        for value in self.values():
            yield hashlib.sha256(value).digest()
            short = value[:128]
            yield from (short[at : at + 32] for at in range(max(0, len(short) - 31)))

    def opened(self) -> Iterator[bytes]:
        """Return whatever opens with any key that is in the files or can be made from what is in them."""
        wrapped = [
            (bytes(row["wrapped_key"]), purpose, str(row[name]))
            for row in self.rows
            for purpose, name in (("blob", "blob_id"), ("result", "job_id"))
            if row.get("wrapped_key") and row.get(name)
        ]
        assert len(wrapped) >= 5
        for secret in dict.fromkeys(self.candidates()):
            yield from self._opened_by(DataKey(secret))
            master = MasterKey({1: secret})
            for wrap, purpose, name in wrapped:
                with suppress(DecryptionError):
                    yield from self._opened_by(master.unwrap(wrap, purpose=purpose, object_id=name))

    def _opened_by(self, key: DataKey) -> Iterator[bytes]:
        for path, name in self.blobs.items():
            with suppress(CloisterError), SealedReader(path, key=key, associated=_of_blob(name)) as reader:
                yield reader.read()
        for row in self.rows:
            bound = {"sealed_schema": _of_blob(str(row.get("blob_id"))), "sealed": _of_job(str(row.get("job_id")))}
            for column, associated in bound.items():
                if row.get(column):
                    with suppress(DecryptionError):
                        yield unseal(bytes(row[column]), key=key, associated=associated)

    def _rows(self, name: str, place: Path) -> list[dict[str, Any]]:
        """Return every row of every table of a database, with what is still in its log."""
        path = place / f"{name.replace('/', '-')}"
        path.write_bytes(self.files[name])
        if f"{name}-wal" in self.files:
            path.with_name(f"{path.name}-wal").write_bytes(self.files[f"{name}-wal"])
        with closing(sqlite3.connect(path)) as database:
            database.row_factory = sqlite3.Row
            tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return [dict(row) for table in tables for row in database.execute(f'SELECT * FROM "{table}"')]


def _archived(content: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        found = {entry.name: archive.extractfile(entry) for entry in archive}
        return {name: inside.read() for name, inside in found.items() if inside is not None}


def _of_blob(name: str) -> bytes:
    return f"cloister blob {name}".encode()


def _of_job(name: str) -> bytes:
    return f"result of {name}".encode()


def _decoded(content: bytes) -> Iterator[bytes]:
    """Return what a text stands for, where it looks like an encoding of bytes."""
    with suppress(ValueError):
        yield bytes.fromhex(content.decode("ascii"))
    with suppress(ValueError):
        yield base64.b64decode(content, validate=True)


def _unpacked(content: bytes) -> Iterator[bytes]:
    """Return what is inside of an opened table or result."""
    if content.startswith(b"PAR1"):
        yield str(pq.read_table(io.BytesIO(content)).to_pylist()).encode()
    with suppress(ValueError):
        for _, _, file in json.loads(content).get("files", ()):
            unpacked = base64.b64decode(file)
            yield from (unpacked, *_unpacked(unpacked))


def _holds(content: bytes, mark: str) -> bool:
    """Return whether bytes hold a value in any usual form: text, wide text, hex, base64, and numbers in binary."""
    plain = mark.encode()
    forms = [plain, mark.encode("utf-16-le"), plain.hex().encode(), plain.hex().upper().encode()]
    forms += [base64.b64encode(b"\0" * skip + plain + b"\0" * (-(skip + len(plain)) % 3))[4:-4] for skip in range(3)]
    if mark.isdigit():
        forms += [int(mark).to_bytes(size, order) for size in (6, 8) for order in ("little", "big")]
    return any(form in content for form in forms)


def test_without_the_key_no_value_is_recovered(taken: tuple[dict[str, bytes], bytes], tmp_path: Path) -> None:
    files, _ = taken
    operator = Operator(files, tmp_path)
    names = {name.rpartition("/")[2] for name in operator.files}
    assert {"hub.db", "hub.db-wal", "backup.tar", "manifest.json"} <= names
    assert len(operator.blobs) >= 4, "two versions, on the disk and in the backup"
    assert sum(bool(row.get("sealed")) for row in operator.rows) >= 6, "an answer, a risk and a release, twice"
    assert len(set(operator.candidates())) > 1_000
    assert operator.recovered() == set()


def test_with_the_key_the_same_script_recovers_all_but_survey_answers(
    taken: tuple[dict[str, bytes], bytes], tmp_path: Path
) -> None:
    files, key = taken
    assert Operator({**files, "found.key": key}, tmp_path).recovered() == set(MARKS)


@pytest.mark.parametrize("form", ["text", "wide", "hex", "base64", "binary", "archived", "row"])
def test_the_script_sees_what_is_in_plain(form: str, tmp_path: Path) -> None:
    files = {
        "some.file": {
            "text": f"a row with {PERSON} in it".encode(),
            "wide": f"a row with {PERSON} in it".encode("utf-16-le"),
            "hex": f"a row with {PERSON} in it".encode().hex().encode(),
            "base64": base64.b64encode(f"a row with {PERSON} in it".encode()),
            "binary": b"\1\2" + INCOME.to_bytes(8, "little"),
        }.get(form, b"")
    }
    if form == "archived":
        with tarfile.open(tmp_path / "a.tar", "w") as archive:
            archive.addfile(tarfile.TarInfo("empty"))
            entry = tarfile.TarInfo("inside")
            entry.size = len(NOTE)
            archive.addfile(entry, io.BytesIO(NOTE.encode()))
        files["a.tar"] = (tmp_path / "a.tar").read_bytes()
    if form == "row":
        with closing(sqlite3.connect(tmp_path / "made.db")) as database:
            database.execute("CREATE TABLE kept (value TEXT)")
            database.execute("INSERT INTO kept VALUES (?)", (base64.b64encode(f"a {PERSON}".encode()).decode(),))
            database.commit()
        files["hub/hub.db"] = (tmp_path / "made.db").read_bytes()
    operator = Operator(files, tmp_path)
    texts = [*operator.files.values(), *operator.values()]
    assert {mark for mark in MARKS if any(_holds(text, mark) for text in texts)}
