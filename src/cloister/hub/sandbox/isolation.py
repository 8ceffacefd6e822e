"""What this machine offers to confine foreign code, in words, and the refusal to run it with less than enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cloister.errors import SandboxUnavailableError

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
