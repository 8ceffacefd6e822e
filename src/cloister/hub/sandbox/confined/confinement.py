"""Giving up every right that computing does not need; limits of memory, time, open files and processes.

Rights are given up in the order in which they are needed to give up others.
"""

from __future__ import annotations

import os
import resource
import signal
from dataclasses import dataclass

from . import kernel, landlock, namespaces, seccomp


@dataclass(frozen=True)
class Walls:
    """What confines a process here.

    Attributes:
        mode: "root" or "user" if namespaces are there, else empty.
        has_own_files: whether the root folder holds only what is listed.
        landlock: the version of Landlock, 0 for none.
        rules: the descriptor of Landlock's rules, -1 for none.
    """

    mode: str
    has_own_files: bool
    landlock: int
    rules: int


@dataclass(frozen=True)
class Limits:
    """What one process may use: processor seconds, bytes of memory beyond the interpreter's, bytes of result."""

    cpu: int
    memory: int
    result: int


def die_with_parent() -> None:
    """Have the kernel end this process when its parent ends."""
    kernel.process_control(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)


def address_space() -> int:
    """Return how many bytes of address space this process has."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  # no pathlib inside
        return int(file.read().split()[0]) * resource.getpagesize()


def confine(walls: Walls, limits: Limits, *, base: int) -> None:
    """Give up everything, for good. ``base`` is the address space of the interpreter.

    Raises:
        OSError: if any wall cannot be built; the process must end then.
    """
    os.setsid()
    if walls.mode == "root":
        # Groups go first: once the user is nobody, they can no longer be given up.
        os.setgroups([])
        os.setresgid(namespaces.NOBODY, namespaces.NOBODY, namespaces.NOBODY)
        os.setresuid(namespaces.NOBODY, namespaces.NOBODY, namespaces.NOBODY)
    kernel.drop_capabilities()
    # Nobody of the same user may trace this process or read its memory.
    kernel.process_control(kernel.PR_SET_DUMPABLE, 0)
    # Asked for again here, since the kernel forgets it when a process changes its user.
    die_with_parent()
    for which, most in _limits(limits, base):
        resource.setrlimit(which, (most, most))
    # Without this the kernel takes no rules from a process that has no privileges.
    kernel.process_control(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if walls.rules >= 0:
        landlock.restrict(walls.rules)
        os.close(walls.rules)
    # Last, because the filter forbids the calls that the steps above need.
    seccomp.install()


def _limits(limits: Limits, base: int) -> list[tuple[int, int]]:
    return [
        (resource.RLIMIT_CPU, limits.cpu),
        (resource.RLIMIT_AS, base + limits.memory),
        (resource.RLIMIT_FSIZE, limits.result),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ]
