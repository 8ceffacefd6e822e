"""System calls that Python does not offer, through ctypes; failures are OSErrors."""

from __future__ import annotations

import ctypes
import os
import platform

NEW_NAMESPACE_MOUNT = 0x00020000
NEW_NAMESPACE_UTS = 0x04000000
NEW_NAMESPACE_IPC = 0x08000000
NEW_NAMESPACE_USER = 0x10000000
NEW_NAMESPACE_PID = 0x20000000
NEW_NAMESPACE_NET = 0x40000000

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NO_NEW_PRIVS = 38
PR_CAPBSET_DROP = 24

MACHINE = platform.machine()

_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITIES_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def check_outcome(outcome: int, what: str) -> int:
    """Return what a call gave, or raise the error that it set."""
    if outcome < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return outcome


def system_call(number: int, *arguments: object) -> int:
    """Return the outcome of a system call by number."""
    return check_outcome(_libc.syscall(ctypes.c_long(number), *arguments), f"system call {number}")


def unshare(flags: int) -> None:
    """Leave the namespaces named by flags for new ones."""
    check_outcome(_libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount a file system, or change how one is mounted."""
    encoded = [None if text is None else text.encode() for text in (source, target, kind, data)]
    check_outcome(
        _libc.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]), f"mount on {target}"
    )


def detach(target: str) -> None:
    """Take a mount out of the tree."""
    check_outcome(_libc.umount2(target.encode(), ctypes.c_int(2)), "umount2")


def pivot_root(new: str, old: str) -> None:
    """Make a mount the root of this process."""
    system_call(_PIVOT_ROOT[MACHINE], new.encode(), old.encode())


def process_control(option: int, value: int = 0) -> None:
    """Call prctl."""
    check_outcome(
        _libc.prctl(ctypes.c_int(option), *(ctypes.c_ulong(item) for item in (value, 0, 0, 0))), f"prctl {option}"
    )


def drop_capabilities() -> None:
    """Give up every capability, also those that could be gained again."""
    for capability in range(64):
        try:
            process_control(PR_CAPBSET_DROP, capability)
        # Either the kernel knows no further ones, or this process has none to give up.
        except OSError:
            break
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION_3, 0)
    system_call(_CAPSET[MACHINE], header, (ctypes.c_uint32 * 6)())


def install_filter(program: object) -> None:
    """Install a seccomp filter on this thread."""
    system_call(_SECCOMP[MACHINE], ctypes.c_uint(1), ctypes.c_uint(0), ctypes.byref(program))  # type: ignore[arg-type]  # a ctypes structure
