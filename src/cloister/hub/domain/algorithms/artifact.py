"""The artifact of a foreign algorithm: a zip of Python source with its manifest, read with suspicion.

The digest is over the files in the order of their names, not over the zip: the same sources packed twice, or by another
tool, are the same artifact. A file that differs in one byte, or is renamed, is another one.
"""

from __future__ import annotations

import hashlib
import io
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from cloister.errors import ArtifactError, CloisterError
from cloister.hub.domain.algorithms.manifest import Manifest

MANIFEST = "manifest.yaml"
MOST_PACKED = 2**20
MOST_UNPACKED = 4 * 2**20
MOST_FILES = 200
_ENDINGS = (".py", ".md", ".txt", ".yaml", ".yml", ".json")
_BARE = ("LICENSE", "NOTICE", "README")
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)
_DEEPEST = 8
_UNREADABLE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, OSError)
_EARLIEST = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """The checked sources of one version of an algorithm, its manifest and its digest."""

    manifest: Manifest
    files: Mapping[str, bytes] = field(repr=False)
    digest: str

    @classmethod
    def from_files(cls, files: Mapping[str, bytes]) -> Artifact:
        """Return the artifact made of files by name.

        Raises:
            ArtifactError: if a name or size is not allowed, or the entry point is not there.
            ManifestError: if the manifest is wrong.
        """
        _check_names(list(files))
        if sum(map(len, files.values())) > MOST_UNPACKED:
            raise _too_large()
        ordered = {name: bytes(files[name]) for name in sorted(files)}
        if MANIFEST not in ordered:
            raise ArtifactError(f"The artifact has no {MANIFEST}.", fix=f"put {MANIFEST} at the top of the zip.")
        for name, content in ordered.items():
            _check_text(name, content)
        manifest = Manifest.parse(ordered[MANIFEST].decode("utf-8"))
        module = manifest.entrypoint.partition(":")[0].replace(".", "/")
        if not {f"{module}.py", f"{module}/__init__.py"} & set(ordered):
            raise ArtifactError(
                f"The module of the entry point {manifest.entrypoint} is not in the artifact.",
                fix=f"add {module}.py, or mend the entry point.",
            )
        return cls(manifest=manifest, files=ordered, digest=_digest(ordered))

    @classmethod
    def read(cls, packed: bytes) -> Artifact:
        """Return the artifact inside of a zip, nothing of which is trusted.

        Raises:
            ArtifactError: if it is no zip, or holds anything but a few plain source files.
            ManifestError: if the manifest is wrong.
        """
        if len(packed) > MOST_PACKED:
            raise _too_large()
        try:
            with zipfile.ZipFile(io.BytesIO(packed)) as archive:
                return cls.from_files(_unpack(archive))
        except CloisterError:
            raise
        except (*_UNREADABLE, ValueError):
            raise ArtifactError("The artifact is not a readable zip.", fix="pack the folder again.") from None

    def to_zip(self) -> bytes:
        """Return the canonical zip: sorted, uncompressed, without times."""
        return pack(self.files)


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return files as a zip that is the same for the same files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name, _EARLIEST), files[name])
    return buffer.getvalue()


def _unpack(archive: zipfile.ZipFile) -> dict[str, bytes]:
    members = [member for member in archive.infolist() if not _is_plain_folder(member)]
    if len(members) > MOST_FILES:
        raise ArtifactError(f"The artifact has more than {MOST_FILES} files.", fix="leave out what is not needed.")
    _check_names([member.filename for member in members])
    files: dict[str, bytes] = {}
    room = MOST_UNPACKED
    for member in members:
        _check_member(member)
        with archive.open(member) as stream:
            # One byte more than there is room for: a member may unpack to more than it says of itself.
            content = stream.read(room + 1)
        room -= len(content)
        if room < 0:
            raise _too_large()
        files[member.filename] = content
    return files


def _is_plain_folder(member: zipfile.ZipInfo) -> bool:
    return member.filename.endswith("/") and member.file_size == 0 and _is_safe(member.filename[:-1])


def _check_member(member: zipfile.ZipInfo) -> None:
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise ArtifactError("The artifact holds a link or a device.", fix="pack plain files only.")
    if member.flag_bits & 0x1:
        raise ArtifactError("The artifact is encrypted.", fix="pack it without a password.")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ArtifactError("The artifact is compressed in an unusual way.", fix="use plain zip compression.")
    if member.file_size > MOST_UNPACKED:
        raise _too_large()


def _check_names(names: list[str]) -> None:
    # Names that differ in case alone are one file on some systems.
    if len({name.casefold() for name in names}) != len(names):
        raise ArtifactError("The artifact has a file twice.", fix="give every file its own name.")
    if len(names) > MOST_FILES:
        raise ArtifactError(f"The artifact has more than {MOST_FILES} files.", fix="leave out what is not needed.")
    for name in names:
        if not _is_safe(name):
            raise ArtifactError(
                "The artifact has a file with an unsafe name.",
                fix="use relative names of letters, digits, dots, hyphens and underscores, with forward slashes.",
            )
        if not name.endswith(_ENDINGS) and name.rpartition("/")[2] not in _BARE:
            raise ArtifactError(
                f'"{name[:80]}" is not plain source.',
                fix=f"pack pure Python only: {', '.join(_ENDINGS)}, and no compiled files.",
            )


def _is_safe(name: str) -> bool:
    parts = name.split("/")
    return len(parts) <= _DEEPEST and all(_PART.fullmatch(part) for part in parts)


def _check_text(name: str, content: bytes) -> None:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ArtifactError(f'"{name[:80]}" is not UTF-8 text.', fix="save it as UTF-8; compiled files are refused.")


def _digest(files: Mapping[str, bytes]) -> str:
    total = hashlib.sha256(b"cloister.artifact/1\n")
    for name, content in files.items():
        for part in (name.encode(), content):
            # With its length before each part, no two different sets of files give the same bytes.
            total.update(struct.pack(">Q", len(part)) + part)
    return total.hexdigest()


def _too_large() -> ArtifactError:
    return ArtifactError(
        "The artifact is too large.",
        fix=f"keep the zip below {MOST_PACKED >> 20} MB and its files below {MOST_UNPACKED >> 20} MB together.",
    )
