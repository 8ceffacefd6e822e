"""Namespaces: no network devices, no other processes, and a root folder that holds only what is listed, read-only."""

from __future__ import annotations

import os

from . import kernel

NOBODY = 65534
_BIND, _RECURSIVE, _PRIVATE, _READ_ONLY, _REMOUNT = 0x1000, 0x4000, 0x40000, 0x1, 0x20
_NO_SETUID, _NO_DEVICES = 0x2, 0x4
_KEPT = {2: 0x2, 4: 0x4, 8: 0x8, 1024: 0x400, 2048: 0x800, 4096: 0x200000}
"""Flags that a mount already has, from statvfs to mount: inside of a user namespace they cannot be taken away."""

_APART = kernel.NEW_NAMESPACE_MOUNT | kernel.NEW_NAMESPACE_NET | kernel.NEW_NAMESPACE_IPC | kernel.NEW_NAMESPACE_UTS


def enter() -> str:
    """Enter namespaces of this process's own: "root" if privileges allow it directly, else "user".

    Raises:
        OSError: if the kernel or its policy does not allow either.
    """
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        try:
            kernel.unshare(_APART)
        # In a container even the administrator may be refused, and a user namespace may still be allowed.
        except OSError:
            pass
        else:
            return "root"
    kernel.unshare(kernel.NEW_NAMESPACE_USER | _APART)
    # The kernel lets a process without privileges map its group only after this.
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{NOBODY} {user} 1")
    _write("/proc/self/gid_map", f"{NOBODY} {group} 1")
    return "user"


def show_only(paths: list[str], scratch: str) -> None:
    """Replace the root folder by an empty, read-only one with the paths in it, read-only, where they were."""
    # Nothing that is mounted from here on may show outside of this namespace.
    kernel.mount("none", "/", None, _RECURSIVE | _PRIVATE)
    kernel.mount("tmpfs", scratch, "tmpfs", _NO_SETUID | _NO_DEVICES, "size=1m,mode=755")
    for path in paths:
        _bind(path, scratch + path)
    os.chdir(scratch)
    # The old root lies on top of the new one at the same place, from where it is taken away for good.
    kernel.pivot_root(".", ".")
    kernel.detach(".")
    os.chdir("/")
    # Read-only at the end, since the folders that things are bound to had to be made before.
    kernel.mount("none", "/", None, _REMOUNT | _BIND | _READ_ONLY | _NO_SETUID | _NO_DEVICES)


def _bind(path: str, target: str) -> None:
    folder = target if os.path.isdir(path) else os.path.dirname(target)  # noqa: PTH112, PTH120  # no pathlib inside
    os.makedirs(folder, mode=0o755, exist_ok=True)  # noqa: PTH103
    if folder != target:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    # Binding takes no flags along: they count only when the place is mounted once more.
    kernel.mount(path, target, None, _BIND | _RECURSIVE)
    had = os.statvfs(target).f_flag
    kept = sum(flag for bit, flag in _KEPT.items() if had & bit)
    kernel.mount("none", target, None, _REMOUNT | _BIND | _READ_ONLY | _NO_SETUID | _NO_DEVICES | kept)


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
