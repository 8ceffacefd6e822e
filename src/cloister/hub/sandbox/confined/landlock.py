"""Landlock: only the listed folders can be opened, for reading; no TCP, no signals or sockets to others outside."""

from __future__ import annotations

import ctypes
import os

from . import kernel

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many kinds of access to files each version of the interface knows."""

_NETWORK_SINCE, _SCOPES_SINCE = 4, 6


def version() -> int:
    """Return which version of the interface the kernel has, 0 for none."""
    try:
        return kernel.system_call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    except OSError:
        return 0


def prepare(paths: list[str]) -> int:
    """Return a descriptor of rules that allow reading below the paths and nothing else."""
    known = version()
    # All kinds of access that this kernel knows are taken away, and only reading is given back below.
    rights = (1 << _FILE_RIGHTS[min(known, max(_FILE_RIGHTS))]) - 1
    words = [rights]
    # Older kernels refuse a longer structure, so that it grows with the version.
    if known >= _NETWORK_SINCE:
        words.append(0b11)
    if known >= _SCOPES_SINCE:
        words.append(0b11)
    attributes = (ctypes.c_uint64 * len(words))(*words)
    rules = kernel.system_call(
        _CREATE, ctypes.byref(attributes), ctypes.c_size_t(ctypes.sizeof(attributes)), ctypes.c_uint32(0)
    )
    for path in paths:
        _allow_reading(rules, path)
    return rules


def restrict(rules: int) -> None:
    """Put this process under the rules, for good."""
    kernel.system_call(_RESTRICT, ctypes.c_int(rules), ctypes.c_uint32(0))


def _allow_reading(rules: int, path: str) -> None:
    class Below(ctypes.Structure):
        _pack_ = 1
        _layout_ = "ms"
        _fields_ = (("rights", ctypes.c_uint64), ("parent", ctypes.c_int32))

    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rights = _READ_FILE | _READ_FOLDER if os.path.isdir(path) else _READ_FILE  # noqa: PTH112  # no pathlib inside
        below = Below(rights, folder)
        kernel.system_call(_ADD, ctypes.c_int(rules), ctypes.c_int(1), ctypes.byref(below), ctypes.c_uint32(0))
    finally:
        os.close(folder)
