from __future__ import annotations

import io
import stat
import zipfile
import zlib
from collections.abc import Mapping

import pytest
from hypothesis import given, strategies as st

from cloister.errors import ArtifactError, CloisterError, ParameterError
from cloister.hub.domain.algorithms import (
    Artifact,
    Version,
    VersionAllowance,
    VersionState,
    VersionStep,
    next_state,
    pack,
    require_runnable,
)
from cloister.hub.sandbox.folders import k_means

FILES = dict(k_means().files)


def zipped(files: Mapping[str, bytes | str], *, mode: int = 0, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files.items():
            member = zipfile.ZipInfo(name, (2020, 2, 2, 2, 2, 2))
            member.external_attr = mode << 16
            member.compress_type = method
            archive.writestr(member, content)
    return buffer.getvalue()


def test_the_digest_is_of_the_files_and_not_of_the_zip() -> None:
    first = Artifact.read(zipped(FILES))
    second = Artifact.read(zipped(dict(reversed(FILES.items())), method=zipfile.ZIP_STORED))
    assert first.digest == second.digest == k_means().digest
    assert first.to_zip() == second.to_zip() == pack(FILES)
    assert Artifact.read(first.to_zip()).digest == first.digest


@pytest.mark.parametrize("name", ["clustering.py", "manifest.yaml"])
def test_one_byte_changes_the_digest(name: str) -> None:
    assert Artifact.from_files({**FILES, name: FILES[name] + b"\n"}).digest != k_means().digest


def test_bytes_cannot_move_between_files_unnoticed() -> None:
    moved = [{"a.txt": b"xy", "b.txt": b"z"}, {"a.txt": b"x", "b.txt": b"yz"}, {"a.txt": b"xyz"}]
    assert len({Artifact.from_files({**FILES, **files}).digest for files in moved}) == 3


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("../evil.py", "unsafe name"),
        ("/etc/evil.py", "unsafe name"),
        ("a/../../evil.py", "unsafe name"),
        ("a\\..\\evil.py", "unsafe name"),
        ("C:evil.py", "unsafe name"),
        ("a//b.py", "unsafe name"),
        ("a/./b.py", "unsafe name"),
        (".hidden.py", "unsafe name"),
        ("näme.py", "unsafe name"),
        ("/".join("abcdefghij") + ".py", "unsafe name"),
        ("fast.so", "not plain source"),
        ("cached.pyc", "not plain source"),
        ("data.pkl", "not plain source"),
        ("inner.zip", "not plain source"),
        ("other.PY", "not plain source"),
        ("path.pth", "not plain source"),
    ],
)
def test_names_that_are_refused(name: str, words: str) -> None:
    with pytest.raises(ArtifactError, match=words):
        Artifact.read(zipped({**FILES, name: b"x = 1"}))


def test_links_devices_and_passwords_are_refused() -> None:
    for kind in (stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO):
        with pytest.raises(ArtifactError, match="plain files only"):
            Artifact.read(zipped(FILES, mode=kind | 0o777))
    with pytest.raises(ArtifactError, match="unusual"):
        Artifact.read(zipped(FILES, method=zipfile.ZIP_BZIP2))
    locked = bytearray(zipped(FILES, method=zipfile.ZIP_STORED))
    place = locked.find(b"PK\x01\x02")
    while place >= 0:
        locked[place + 8] |= 1
        place = locked.find(b"PK\x01\x02", place + 1)
    with pytest.raises(ArtifactError, match="password"):
        Artifact.read(bytes(locked))


def test_bombs_are_refused_without_unpacking_them() -> None:
    bomb = zipped({**FILES, "big.txt": b"\0" * 50_000_000})
    assert len(bomb) < 100_000
    with pytest.raises(ArtifactError, match="too large"):
        Artifact.read(bomb)


def test_a_bomb_that_lies_about_its_size_is_refused() -> None:
    content = b" " * 20_000_000
    honest = zipped({**FILES, "big.txt": content})
    lying = honest.replace(len(content).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    assert lying != honest
    with pytest.raises(ArtifactError):
        Artifact.read(lying)


def test_sizes_and_numbers_are_limited() -> None:
    with pytest.raises(ArtifactError, match="too large"):
        Artifact.read(b"PK" * 2**20)
    with pytest.raises(ArtifactError, match="more than 200 files"):
        Artifact.read(zipped({**FILES, **{f"f{number}.py": b"" for number in range(300)}}))
    with pytest.raises(ArtifactError, match="too large"):
        Artifact.from_files({**FILES, "big.txt": b" " * 5_000_000})


def test_two_files_of_one_name_are_refused() -> None:
    with pytest.raises(ArtifactError, match="twice"):
        Artifact.read(zipped({**FILES, "Clustering.py": b""}))
    buffer = io.BytesIO(zipped(FILES))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("clustering.py", "x = 1")
    with pytest.raises(ArtifactError, match="twice"):
        Artifact.read(buffer.getvalue())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"clustering.py": b"\xff\xfe"}, "not UTF-8"),
        ({"clustering.py": b"x = '\0'"}, "not UTF-8"),
        ({"clustering.py": None}, "is not in the artifact"),
        ({"manifest.yaml": None}, "no manifest.yaml"),
    ],
)
def test_files_that_must_be_there(change: dict[str, bytes | None], words: str) -> None:
    files = {name: content for name, content in {**FILES, **change}.items() if content is not None}
    with pytest.raises(ArtifactError, match=words):
        Artifact.from_files(files)


def test_folders_in_a_zip_are_fine() -> None:
    assert Artifact.read(zipped({"docs/": b"", **FILES})).digest == k_means().digest


@given(st.binary(max_size=300))
def test_noise_is_refused_with_an_error_of_ours(content: bytes) -> None:
    with pytest.raises(CloisterError):
        Artifact.read(content)


@given(st.integers(0, 10**6), st.integers(0, 255))
def test_a_damaged_zip_is_refused_or_holds_the_same_files(place: int, value: int) -> None:
    damaged = bytearray(zipped(FILES))
    damaged[place % len(damaged)] = value
    try:
        found = Artifact.read(bytes(damaged))
    except CloisterError:
        return
    contents = sorted(zlib.crc32(content) for content in found.files.values())
    assert contents == sorted(zlib.crc32(content) for content in FILES.values())


# States ---------------------------------------------------------------------


def test_every_state_and_step() -> None:
    allowed = {
        ("draft", "pass_checks"): "checked",
        ("checked", "send_back"): "draft",
        ("checked", "publish"): "published",
        ("published", "deprecate"): "deprecated",
        ("deprecated", "restore"): "published",
        ("draft", "revoke"): "revoked",
        ("checked", "revoke"): "revoked",
        ("published", "revoke"): "revoked",
        ("deprecated", "revoke"): "revoked",
    }
    for state in VersionState:
        for step in VersionStep:
            if (state, step) in allowed:
                assert next_state(state, step) == allowed[state, step]
            else:
                with pytest.raises(ParameterError, match="possible now"):
                    next_state(state, step)


def test_a_new_version_is_not_allowed_until_the_owner_allows_it() -> None:
    first = VersionAllowance(algorithm="k-means", version=Version.parse("1.0.0"), digest="a" * 64)
    require_runnable(
        algorithm="k-means",
        version=Version.parse("1.0.0"),
        digest="a" * 64,
        state=VersionState.PUBLISHED,
        allowance=first,
    )
    for version, digest in (("1.1.0", "b" * 64), ("1.0.0", "b" * 64), ("1.1.0", "a" * 64)):
        with pytest.raises(ParameterError, match="ask the data owner"):
            require_runnable(
                algorithm="k-means",
                version=Version.parse(version),
                digest=digest,
                state=VersionState.PUBLISHED,
                allowance=first,
            )


@pytest.mark.parametrize("state", [VersionState.DRAFT, VersionState.CHECKED, VersionState.REVOKED])
def test_only_published_versions_run(state: VersionState) -> None:
    version = Version.parse("1.0.0")
    allowance = VersionAllowance(algorithm="x", version=version, digest="a")
    with pytest.raises(ParameterError, match="published version"):
        require_runnable(algorithm="x", version=version, digest="a", state=state, allowance=allowance)
    with pytest.raises(ParameterError, match="ask the data owner"):
        require_runnable(algorithm="x", version=version, digest="a", state=VersionState.DEPRECATED, allowance=None)
