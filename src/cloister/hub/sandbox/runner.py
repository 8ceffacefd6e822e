"""Running one artifact in confined processes, a fresh one for each block.

A block goes in through a sealed buffer in memory, which stays as it is, and the result comes back through another one
of exactly the declared size, read only when the process and everything that it started is dead. There is no third way
out: output streams lead nowhere, there is no network, no file can be written, and how a block ended is told to nobody
but the caller, who must not tell it on. What the bytes mean is decided by `cloister.hub.domain.algorithms.outputs`.

What this machine offers to confine foreign code is told in words; with less than enough, none is run.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from cloister.errors import SandboxUnavailableError
from cloister.hub.domain.algorithms import Artifact, Resources
from cloister.hub.sandbox import confined
from cloister.hub.sandbox.confined.harness import MARK, MOST_WORDS
from cloister.hub.sandbox.sample_and_aggregate import SandboxBlock

__all__ = [
    "BlockEnding",
    "BlockOutcome",
    "BlockRunner",
    "Runner",
    "allocate_memory",
    "detect_isolation",
    "seal_in_memory",
]


_SIZE_IS_FIXED = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL


@contextlib.contextmanager
def seal_in_memory(content: bytes) -> Iterator[int]:
    """Yield a descriptor of memory that holds a content and cannot be changed by anybody."""
    with _memory("block") as descriptor:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | _SIZE_IS_FIXED)
        yield descriptor


@contextlib.contextmanager
def allocate_memory(size: int) -> Iterator[int]:
    """Yield a descriptor of empty memory whose size cannot be changed by anybody."""
    with _memory("result") as descriptor:
        os.ftruncate(descriptor, size)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SIZE_IS_FIXED)
        yield descriptor


@contextlib.contextmanager
def _memory(name: str) -> Iterator[int]:
    descriptor = os.memfd_create(name, os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


_FIX = (
    "run the hub's workers on Linux (x86-64 or ARM64, kernel 5.13 or newer) with seccomp, and with Landlock or "
    "unprivileged user namespaces allowed"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """The walls that were built and tried on this machine.

    Attributes:
        namespaces: "root" or "user" for how namespaces were made, empty if they could not be.
        own_files: whether confined code has a root folder with nothing in it but libraries and itself.
        landlock: the version of Landlock, 0 for none.
        seccomp: whether system calls are filtered.
        problems: what failed, in words.
    """

    namespaces: str = ""
    own_files: bool = False
    landlock: int = 0
    seccomp: bool = False
    problems: tuple[str, ...] = ()

    @classmethod
    def read(cls, hello: Mapping[str, Any]) -> Isolation:
        """Return what the process that builds the walls said about them."""
        return cls(
            namespaces=str(hello["namespaces"]),
            own_files=bool(hello["own_files"]),
            landlock=int(hello["landlock"]),
            seccomp=bool(hello["seccomp"]),
            problems=tuple(map(str, hello["problems"])),
        )

    @property
    def is_enough(self) -> bool:
        """Return whether foreign code may run: a filter of system calls, and a wall around files."""
        return self.seccomp and (self.own_files or self.landlock > 0)

    def require(self) -> None:
        """Return nothing if foreign code may run, else raise.

        Raises:
            SandboxUnavailableError: with what is missing and what to change.
        """
        if self.is_enough:
            return
        missing = []
        if not self.seccomp:
            missing.append("no filter of system calls (seccomp)")
        if not self.own_files and not self.landlock:
            missing.append("no wall around files (mount namespace or Landlock)")
        detail = f" ({'; '.join(self.problems)})" if self.problems else ""
        raise SandboxUnavailableError(
            f"Foreign algorithms do not run here: {' and '.join(missing)}{detail}.", fix=f"{_FIX}."
        )

    def describe(self) -> tuple[str, ...]:
        """Return what holds for confined code, one sentence each, and what does not."""
        if not self.is_enough:
            return ("Foreign code does not run on this machine.",)
        network = " Its network namespace is empty, too." if self.namespaces else ""
        lines = [
            "No network and no sockets: the calls are refused by a seccomp filter." + network,
            "No new processes, threads or programs, no signals, no tracing: the calls are refused.",
            "Nothing can be written: no file can be opened for writing, and there is no temporary folder.",
            "Each block runs in a fresh process with limits on processor time, memory and wall time.",
        ]
        if self.own_files:
            lines.append("It sees a root folder with the libraries, its own files and nothing else, read-only.")
        else:
            lines.append(
                "Landlock lets it open the libraries and its own files only, for reading. Names, sizes and times of "
                "other files remain visible; a reading may leave a mark in a file's time of last access."
            )
        if self.namespaces:
            lines.append("It is alone in its process namespace, which ends with it.")
        if self.landlock and self.own_files:
            lines.append(f"Landlock (version {self.landlock}) stands behind that.")
        lines.append("Not closed: what the processor's caches and clocks tell about work that ran before.")
        return tuple(lines)


_START = (
    "import sys; sys.path.insert(0, {folder!r}); from confined import zygote; sys.path.pop(0); zygote.main({socket})"
)
_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
_START_SECONDS = 60.0
_FOR_TRIALS = Resources(cpu_seconds=10, wall_seconds=Fraction(30))
_GRACE_SECONDS = 5.0


class BlockEnding(StrEnum):
    """How a block ended. Private, like the block's data: for checks on synthetic data only."""

    DONE = "done"
    FAILED = "failed"
    KILLED = "killed"
    LATE = "late"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockOutcome:
    """What came out of one block: numbers, or nothing; and, for synthetic data, words about why."""

    values: NDArray[np.float64] | None
    ending: BlockEnding
    words: str = ""

    def __repr__(self) -> str:
        return "<Outcome>"


class BlockRunner(Protocol):
    """Something that runs the foreign function on a block."""

    def run(self, block: SandboxBlock) -> BlockOutcome:
        """Return what came out."""
        ...


class _SilentError(SandboxUnavailableError):
    """The process that blocks are forked from did not answer in time."""


class Runner:
    """Confined processes for one artifact; a context manager that starts and ends them.

    Args:
        artifact: the checked sources.
        tells: whether reasons of failures are wanted; for synthetic data only.
        without: walls to leave out, for trying what remains; with too few left nothing runs.
    """

    def __init__(self, artifact: Artifact, *, tells: bool = False, without: tuple[str, ...] = ()) -> None:
        self._artifact, self._tells, self._without = artifact, tells, without
        self._room = contextlib.ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._folder = self._scratch = ""
        self.isolation = Isolation()

    def __enter__(self) -> Self:
        _require_linux()
        try:
            room = Path(self._room.enter_context(tempfile.TemporaryDirectory(prefix="cloister-sandbox-")))
            self._unpack(room)
            self._scratch = str(room / "root")
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the processes and delete the unpacked sources."""
        self._stop()
        self._room.close()

    def run(self, block: SandboxBlock) -> BlockOutcome:
        """Return what the function gives for one block, in a process of its own.

        Raises:
            SandboxUnavailableError: if the walls could not be built; the block was not read then.
        """
        count = sum(int(np.prod(shape, dtype=np.int64)) for _, shape in block.outputs)
        size = len(MARK) + 8 * count
        content = block.encode(size=size)
        try:
            ending, result, words = self._ask("check" if self._tells else "run", content, size)
        # Started anew for the next block; that this one was late is known to the caller alone.
        except _SilentError:
            self._start()
            return BlockOutcome(values=None, ending=BlockEnding.LATE)
        complete = ending is BlockEnding.DONE and result[: len(MARK)] == MARK
        values = np.frombuffer(result, dtype="<f8", offset=len(MARK)).astype(np.float64) if complete else None
        said = _one_line(words) if self._tells else ""
        return BlockOutcome(values=values, ending=ending, words=said)

    def _unpack(self, room: Path) -> None:
        """Write the sources where the confined process, which may be nobody, can read them."""
        (room / "root").mkdir()
        base = room / "algorithm"
        for name, content in self._artifact.files.items():
            target = base / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        for path in (room, base, *base.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        self._folder = str(base)

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = ours
        ours.settimeout(_START_SECONDS)
        with theirs:
            code = _START.format(folder=str(Path(confined.__file__).parents[1]), socket=theirs.fileno())
            self._process = subprocess.Popen(  # noqa: S603  # our own interpreter and our own code
                # Isolated from environment, current folder and the user's packages, any of which could slip code in.
                [sys.executable, "-I", "-B", "-X", "utf8", "-c", code],
                env=_ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        request = {
            "packages": list(self._artifact.manifest.packages),
            "folder": self._folder,
            "scratch": self._scratch,
            "without": list(self._without),
        }
        with contextlib.suppress(OSError):
            ours.send(json.dumps(request).encode())
        self.isolation = Isolation.read(self._answer())
        # What the kernel says that it offers is not believed before the walls were tried.
        self.isolation.require()
        self._try_walls()

    def _try_walls(self) -> None:
        _, _, words = self._ask("probe", b"", len(MARK), resources=_FOR_TRIALS)
        try:
            failures = json.loads(words.rstrip(b"\0"))
        except ValueError:
            failures = ["the trial of the walls did not end"]
        if failures:
            raise SandboxUnavailableError(
                f"Foreign algorithms do not run here: {'; '.join(failures)}.",
                fix="update the kernel, or report this with the kernel's version.",
            )

    def _ask(
        self, task: str, content: bytes, size: int, *, resources: Resources | None = None
    ) -> tuple[BlockEnding, bytes, bytes]:
        """Have one confined process do a task, and return how it ended and what it left."""
        allowed = resources or self._artifact.manifest.resources
        if self._socket is None:
            raise SandboxUnavailableError("The sandbox is not open.", fix="use the runner in a with statement.")
        job = {
            "task": task,
            "wall": float(allowed.wall_seconds),
            "cpu": allowed.cpu_seconds,
            "memory": allowed.memory_mb * 2**20,
            "result": size,
        }
        with seal_in_memory(content) as data, allocate_memory(size) as result, allocate_memory(MOST_WORDS) as words:
            self._socket.settimeout(float(allowed.wall_seconds) + _GRACE_SECONDS)
            # If the other side is gone already, the answer that does not come says so.
            with contextlib.suppress(OSError):
                socket.send_fds(self._socket, [json.dumps(job).encode()], [data, result, words])
            ending = _ending(self._answer())
            return ending, os.pread(result, size, 0), os.pread(words, MOST_WORDS, 0)

    def _answer(self) -> dict[str, Any]:
        if self._socket is None:
            raise SandboxUnavailableError("The sandbox is not open.", fix="use the runner in a with statement.")
        try:
            answer = self._socket.recv(65536)
        except OSError:
            answer = b""
        if not answer:
            self._stop()
            raise _SilentError(
                "The sandbox stopped answering.",
                fix="check that the packages of the manifest are installed and that the machine has free memory.",
            )
        return dict(json.loads(answer))

    def _stop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def detect_isolation(*, without: tuple[str, ...] = ()) -> Isolation:
    """Return what this machine offers; building and trying the walls takes about half a second."""
    from cloister.hub.sandbox.folders import nothing

    if not _is_linux():
        return Isolation(problems=(f"{platform.system()} is not supported",))
    runner = Runner(nothing(), without=without)
    try:
        with runner:
            return runner.isolation
    except SandboxUnavailableError as error:
        return Isolation(problems=(*runner.isolation.problems, error.problem))


def _ending(answer: dict[str, Any]) -> BlockEnding:
    from cloister.hub.sandbox.confined import zygote

    endings = {
        zygote.DONE: BlockEnding.DONE,
        zygote.FAILED: BlockEnding.FAILED,
        zygote.KILLED: BlockEnding.KILLED,
        zygote.LATE: BlockEnding.LATE,
    }
    found = endings.get(answer["end"])
    if found is None:
        raise SandboxUnavailableError(
            "The walls of the sandbox could not be built for this block.",
            fix="check that the machine has free memory and process numbers, and try again.",
        )
    return found


def _one_line(words: bytes) -> str:
    """Return the first line of what foreign code may have written, without characters that command a terminal."""
    lines = words.rstrip(b"\0").decode("utf-8", errors="replace").splitlines()
    return "".join(letter for letter in lines[0] if letter.isprintable())[:300] if lines else ""


def _is_linux() -> bool:
    return sys.platform == "linux"


def _require_linux() -> None:
    if not _is_linux():
        Isolation(problems=(f"{platform.system()} is not supported",)).require()
