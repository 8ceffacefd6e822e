from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

import cloister as cl
from cloister.cli import app
from cloister.cli.commands import CommandOutput
from cloister.crypto.signatures import SigningKey
from tests.attacks.gating.releases import patients
from tests.cli.test_gate import ASKED

SCHEMA = """\
columns:
  age: {role: quasi, kind: numeric, storage: integer, bounds: [0, 110]}
  district: {role: quasi, kind: nominal, storage: text, categories: ["0", "1", "2", "3", "4", "5"]}
  illness: {role: sensitive, kind: nominal, storage: text, categories: [asthma, cancer, flu, heart]}
"""
SYNTH = ["synth", "people.csv", "--schema", "people.yaml", "--epsilon", "1", "--method", "independent"]
PROTECT = ["anonymize", "people.csv", "--schema", "people.yaml", "--k", "5", "--l", "3"]


@pytest.fixture(autouse=True)
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with patients, and settings of one's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOISTER_SIGNING_KEY", str(tmp_path / "settings" / "signing.key"))
    patients().to_csv("people.csv", index=False)
    Path("people.yaml").write_text(SCHEMA, encoding="utf-8")
    return tmp_path


def said(capsys: pytest.CaptureFixture[str]) -> str:
    shown = capsys.readouterr()
    return " ".join(f"{shown.out} {shown.err}".split())


def test_made_up_rows_are_judged_by_their_certificate(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run([*SYNTH, "-o", "made-up.csv"]) == 0
    assert "The certificate of made-up.csv is in made-up.csv.certificate.json" in said(capsys)
    assert stat.S_IMODE(Path("settings/signing.key").stat().st_mode) == 0o600
    assert app.run(["gate", "made-up.csv", *ASKED]) == 0
    shown = said(capsys)
    assert "with your own signing key" in shown
    assert "epsilon = 1 per row is promised" in shown
    assert app.run(["attack", "closest-rows", "made-up.csv", *ASKED]) == 0
    assert "with your own signing key" in said(capsys)
    assert app.run(["attack", "linkage", "made-up.csv", *ASKED]) == 2
    assert "synthetic table" in said(capsys)


def test_a_protected_table_is_judged_by_its_certificate(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run([*PROTECT, "-o", "protected.csv"]) == 0
    assert "protected.csv.certificate.json" in said(capsys)
    assert app.run(["gate", "protected.csv", *ASKED]) == 0
    assert "with your own signing key" in said(capsys)
    for wrong in (["--kind", "synthetic"], ["--epsilon", "1"]):
        assert app.run(["gate", "protected.csv", *ASKED, *wrong]) == 2
        assert "Fix: drop" in said(capsys)


def test_a_certificate_tells_nothing_that_was_counted() -> None:
    assert app.run([*PROTECT, "-o", "protected.csv"]) == 0
    assert app.run([*SYNTH, "-o", "made-up.csv"]) == 0
    for name, kind in (("protected.csv", "anonymized table"), ("made-up.csv", "synthetic table")):
        certificate = json.loads(Path(f"{name}.certificate.json").read_text(encoding="utf-8"))
        assert certificate["kind"] == kind
        assert certificate.keys() == {
            "schema", "kind", "promise", "guarantee", "recipe", "files", "made", "signer", "signature",
        }  # fmt: skip
        assert [item.keys() for item in certificate["files"]] == [{"name", "sha256"}]
        assert "600" not in json.dumps({name: certificate[name] for name in ("promise", "guarantee", "recipe")})


def test_the_recipe_is_the_same_for_neighbors() -> None:
    recipes = []
    for rows in (patients(), patients()[1:]):
        rows.to_csv("people.csv", index=False)
        for made in ([*PROTECT, "-o", "protected.csv"], [*SYNTH, "-o", "made-up.csv"]):
            assert app.run([*made, "--force"]) == 0
            certificate = json.loads(Path(f"{made[-1]}.certificate.json").read_text(encoding="utf-8"))
            recipes.append((certificate["recipe"], certificate["promise"]))
    assert recipes[:2] == recipes[2:]


@pytest.mark.parametrize("command", [["gate"], ["attack", "closest-rows"]], ids=["gate", "attack"])
def test_a_file_that_was_changed_after_it_was_certified_is_refused(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run([*SYNTH, "-o", "made-up.csv"]) == 0
    Path("made-up.csv").write_text(Path("people.csv").read_text(encoding="utf-8"), encoding="utf-8")
    capsys.readouterr()
    assert app.run([*command, "made-up.csv", *ASKED]) != 0
    assert "was changed after it was certified" in said(capsys)


def test_a_key_that_nobody_knows_proves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.key").write_text(SigningKey.generate().to_text(), encoding="utf-8")
    Path("other.key").chmod(0o600)
    assert app.run([*SYNTH, "-o", "made-up.csv", "--signing-key", "other.key"]) == 0
    assert not Path("settings").exists()
    assert app.run(["gate", "made-up.csv", *ASKED, "--json"]) == 1
    out = capsys.readouterr().out
    found = json.loads(out[out.index('{\n  "schema": "cloister.gate/1"') :])
    assert "stated, not proven" in found["findings"][0]["reason"]
    assert "excuses nothing" in found["reasons"][0]
    Path("settings").mkdir()
    signer = json.loads(Path("made-up.csv.certificate.json").read_text(encoding="utf-8"))["signer"]
    Path("settings/signers").write_text(f"{signer} clinic\n", encoding="utf-8")
    assert app.run(["gate", "made-up.csv", *ASKED]) == 0
    assert app.run([*SYNTH, "-o", "again.csv", "--signing-key", "missing.key"]) != 0
    assert not Path("again.csv").exists()


def test_without_a_certificate_the_kind_must_be_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert app.run([*SYNTH, "-o", "made-up.csv", "--no-certificate"]) == 0
    assert not Path("made-up.csv.certificate.json").exists()
    assert not Path("settings").exists()
    capsys.readouterr()
    assert app.run(["gate", "made-up.csv", *ASKED]) == 2
    assert "Fix: add --kind anonymized, --kind synthetic or --kind anatomy" in said(capsys)
    monkeypatch.setattr(CommandOutput, "is_interactive", property(lambda output: not output.as_json))
    monkeypatch.setattr("click.prompt", lambda *asked, **how: "synthetic")  # what a person types
    assert app.run(["gate", "made-up.csv", *ASKED, "--epsilon", "1"]) == 0


def test_nobody_is_asked_in_a_pipe() -> None:
    assert not CommandOutput().is_interactive
    assert not CommandOutput(as_json=True).is_interactive


def test_where_no_key_can_be_kept_nothing_is_paid_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOISTER_SIGNING_KEY", "people.csv/signing.key")
    assert app.run([*SYNTH, "-o", "made-up.csv"]) != 0
    assert "--no-certificate" in said(capsys)
    assert not Path("made-up.csv").exists()
    monkeypatch.undo()


def test_a_certificate_that_is_there_is_not_replaced_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    Path("made-up.csv.certificate.json").write_text("{}", encoding="utf-8")
    assert app.run([*SYNTH, "-o", "made-up.csv"]) == 2
    assert "--force" in said(capsys)
    assert app.run([*SYNTH, "-o", "made-up.csv", "--force"]) == 0


def test_rows_of_a_saved_model_are_certified_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run([*SYNTH, "-o", "made-up.csv", "--model", "m.cloister"]) == 0
    assert app.run(["synth", "sample", "m.cloister", "-n", "50", "--where", "district=1", "-o", "more.csv"]) == 0
    recipe = json.loads(Path("more.csv.certificate.json").read_text(encoding="utf-8"))["recipe"]
    assert recipe["conditions"] == ["district=1"]
    assert "more.csv.certificate.json" in said(capsys)


def _edit_promise(model: str) -> None:
    """Write another epsilon into what a model says of itself."""
    document = json.loads(Path(model).read_text(encoding="utf-8"))
    document["guarantee"] = json.loads(json.dumps(document["guarantee"]).replace("100000", "1"))
    Path(model).write_text(json.dumps(document), encoding="utf-8")


def test_what_an_edited_model_says_is_not_signed(capsys: pytest.CaptureFixture[str]) -> None:
    weak = ["100000" if part == "1" else part for part in SYNTH]
    assert app.run([*weak, "-o", "made-up.csv", "--model", "m.cloister"]) == 0
    _edit_promise("m.cloister")
    asked = ["synth", "sample", "m.cloister", "-n", "50", "-o", "more.csv"]
    capsys.readouterr()
    assert app.run(asked) != 0
    assert "was changed after it was certified" in said(capsys)
    assert not Path("more.csv").exists()
    Path("m.cloister.certificate.json").unlink()
    assert app.run(asked) == 0
    assert "No certificate was written" in said(capsys)
    assert not Path("more.csv.certificate.json").exists()
    assert app.run(["gate", "more.csv", *ASKED]) == 2
    assert "--kind synthetic" in said(capsys)


def test_rows_of_a_model_are_signed_by_the_key_that_signed_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("other.key", "third.key"):
        Path(name).write_text(SigningKey.generate().to_text(), encoding="utf-8")
        Path(name).chmod(0o600)
    assert app.run([*SYNTH, "-o", "made-up.csv", "--model", "m.cloister", "--signing-key", "other.key"]) == 0
    for key, is_signed in (("other.key", True), ("third.key", False)):
        assert app.run(["synth", "sample", "m.cloister", "-o", f"{key}.csv", "--signing-key", key]) == 0
        assert Path(f"{key}.csv.certificate.json").exists() is is_signed


def test_a_certificate_of_a_model_is_not_replaced_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.cloister.certificate.json").write_text("{}", encoding="utf-8")
    assert app.run([*SYNTH, "-o", "made-up.csv", "--model", "m.cloister"]) == 2
    assert "--force" in said(capsys)
    assert not Path("made-up.csv").exists()


def test_two_tables_are_found_and_judged_by_their_certificate(capsys: pytest.CaptureFixture[str]) -> None:
    frame = patients(240).assign(age=range(240))
    frame.to_csv("people.csv", index=False)
    Path("people.yaml").write_text(SCHEMA.replace("110", "300"), encoding="utf-8")
    asked = ["anonymize", "people.csv", "--schema", "people.yaml", "--l", "2", "--algorithm", "anatomy"]
    assert app.run([*asked, "-o", "two.csv"]) == 0
    assert "two.quasi.csv.certificate.json" in said(capsys)
    assert app.run(["gate", "two.quasi.csv", *ASKED, "--json"]) in {0, 1}
    out = capsys.readouterr().out
    found = {item["attack"]: item for item in json.loads(out[out.index("{") :])["findings"]}
    assert "could not be run" not in found["learning over groups"]["reason"]
    assert "with your own signing key" in found["certificate"]["reason"]
    Path("two.sensitive.csv").unlink()
    assert app.run(["gate", "two.quasi.csv", *ASKED]) == 2
    assert "--sensitive-table" in said(capsys)


def test_people_who_look_alike_cannot_be_scored_from_two_files(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["anonymize", "people.csv", "--schema", "people.yaml", "--l", "2", "--algorithm", "anatomy"]
    assert app.run([*asked, "-o", "two.csv"]) == 0
    assert app.run(["gate", "two.quasi.csv", *ASKED]) == 1
    assert "Too many people look alike" in said(capsys)


def test_the_library_reads_the_certificate_of_a_file() -> None:
    table = cl.open_table("people.csv", schema="people.yaml")
    key = SigningKey.from_file(create=True)
    release = cl.anonymize(table, models=[cl.KAnonymity(k=5), cl.LDiversity("illness", l=3)], algorithm="mondrian")
    release.write("protected.csv", signing_key=key)
    found = cl.attacks.gate("protected.csv", original=table)
    assert found.kind == "anonymized table"
    assert found.publish, found.verdict
    with pytest.raises(cl.errors.ParameterError, match="leave the kind out"):
        cl.attacks.gate("protected.csv", original=table, kind="synthetic table")
    with pytest.raises(cl.errors.ParameterError, match="leave the promise out"):
        cl.attacks.gate("protected.csv", original=table, guarantee=cl.PureDP(epsilon=1))
