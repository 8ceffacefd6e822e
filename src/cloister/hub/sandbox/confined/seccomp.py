"""The list of system calls that confined code may make (seccomp-BPF); everything else fails with "not permitted".

Enough for Python and NumPy to compute: memory, reading open files, opening files for reading, clocks. Not in the list,
among others: every kind of socket, new processes and threads, signals to anybody, tracing and reading other processes,
writing or creating files, locks, mounts, keys, shared memory, and facts about the machine's load (sysinfo, statfs),
which would let one block tell another that it was there.
"""

from __future__ import annotations

import ctypes
import errno
import struct

from . import kernel

_X86_64 = {
    "read": 0,
    "write": 1,
    "close": 3,
    "stat": 4,
    "fstat": 5,
    "lstat": 6,
    "poll": 7,
    "lseek": 8,
    "mmap": 9,
    "mprotect": 10,
    "munmap": 11,
    "brk": 12,
    "rt_sigaction": 13,
    "rt_sigprocmask": 14,
    "rt_sigreturn": 15,
    "pread64": 17,
    "pwrite64": 18,
    "readv": 19,
    "writev": 20,
    "access": 21,
    "select": 23,
    "sched_yield": 24,
    "mremap": 25,
    "madvise": 28,
    "dup": 32,
    "nanosleep": 35,
    "getpid": 39,
    "exit": 60,
    "uname": 63,
    "getcwd": 79,
    "readlink": 89,
    "gettimeofday": 96,
    "getrlimit": 97,
    "getrusage": 98,
    "times": 100,
    "getuid": 102,
    "getgid": 104,
    "geteuid": 107,
    "getegid": 108,
    "getppid": 110,
    "sigaltstack": 131,
    "gettid": 186,
    "time": 201,
    "futex": 202,
    "sched_getaffinity": 204,
    "getdents64": 217,
    "restart_syscall": 219,
    "clock_gettime": 228,
    "clock_getres": 229,
    "clock_nanosleep": 230,
    "exit_group": 231,
    "newfstatat": 262,
    "readlinkat": 267,
    "faccessat": 269,
    "pselect6": 270,
    "ppoll": 271,
    "getcpu": 309,
    "getrandom": 318,
    "statx": 332,
    "rseq": 334,
    "faccessat2": 439,
}
_AARCH64 = {
    "getcwd": 17,
    "dup": 23,
    "faccessat": 48,
    "close": 57,
    "getdents64": 61,
    "lseek": 62,
    "read": 63,
    "write": 64,
    "readv": 65,
    "writev": 66,
    "pread64": 67,
    "pwrite64": 68,
    "pselect6": 72,
    "ppoll": 73,
    "readlinkat": 78,
    "newfstatat": 79,
    "fstat": 80,
    "exit": 93,
    "exit_group": 94,
    "futex": 98,
    "nanosleep": 101,
    "clock_gettime": 113,
    "clock_getres": 114,
    "clock_nanosleep": 115,
    "sched_getaffinity": 123,
    "sched_yield": 124,
    "restart_syscall": 128,
    "sigaltstack": 132,
    "rt_sigaction": 134,
    "rt_sigprocmask": 135,
    "rt_sigreturn": 139,
    "times": 153,
    "uname": 160,
    "getrlimit": 163,
    "getrusage": 165,
    "getcpu": 168,
    "gettimeofday": 169,
    "getpid": 172,
    "getppid": 173,
    "getuid": 174,
    "geteuid": 175,
    "getgid": 176,
    "getegid": 177,
    "gettid": 178,
    "brk": 214,
    "munmap": 215,
    "mremap": 216,
    "mmap": 222,
    "mprotect": 226,
    "madvise": 233,
    "getrandom": 278,
    "statx": 291,
    "rseq": 293,
    "faccessat2": 439,
}
ALLOWED = {"x86_64": _X86_64, "aarch64": _AARCH64}
_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_OPEN_AT = {"x86_64": 257, "aarch64": 56}
_OPEN = {"x86_64": 2}
_FILE_CONTROL = {"x86_64": 72, "aarch64": 25}
_ABSENT = {"x86_64": (435, 437), "aarch64": (435, 437)}
"""clone3 and openat2: said not to exist, so that libraries fall back to what can be looked at."""

_X32_BIT = 0x40000000
# Access for writing, O_CREAT, O_TRUNC, O_APPEND, and the bit that O_TMPFILE adds.
_WRITING = 0o3 | 0o100 | 0o1000 | 0o2000 | 0o20000000
_CONTROLS = (0, 1, 2, 3, 1030)
"""F_DUPFD, F_GETFD, F_SETFD, F_GETFL and F_DUPFD_CLOEXEC."""

_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16


def is_known() -> bool:
    """Return whether this machine's system calls are listed here."""
    return kernel.MACHINE in ALLOWED


def install() -> None:
    """Confine this process to the list, for good."""
    code = b"".join(struct.pack("<HBBI", *step) for step in program(kernel.MACHINE))
    steps = ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    kernel.install_filter(Program(len(code) // 8, ctypes.addressof(steps)))


def program(machine: str) -> list[tuple[int, int, int, int]]:
    """Return the filter as steps of BPF: (code, jump if true, jump if false, constant)."""
    steps = [
        # The same number is another call on another architecture, that of 32-bit programs among them.
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, _ARCHITECTURE[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        # Calls of x32 have the same architecture, and numbers of their own that no list here names.
        (_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _KILL),
    ]
    for number in sorted(ALLOWED[machine].values()):
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    for number in _ABSENT[machine]:
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _FAIL | errno.ENOSYS)]
    steps += _reading_only(_OPEN_AT[machine], argument=2)
    if machine in _OPEN:
        steps += _reading_only(_OPEN[machine], argument=1)
    steps += _few_controls(_FILE_CONTROL[machine])
    steps.append((_RETURN, 0, 0, _FAIL | errno.EPERM))
    return steps


def _reading_only(number: int, *, argument: int) -> list[tuple[int, int, int, int]]:
    return [
        (_EQUAL, 0, 5, number),
        (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument),
        (_AND, 0, 0, _WRITING),
        (_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _FAIL | errno.EACCES),
    ]


def _few_controls(number: int) -> list[tuple[int, int, int, int]]:
    checks = [step for command in _CONTROLS for step in ((_EQUAL, 0, 1, command), (_RETURN, 0, 0, _ALLOW))]
    return [
        (_EQUAL, 0, len(checks) + 2, number),
        (_LOAD, 0, 0, _ARGUMENTS_AT + 8),
        *checks,
        (_RETURN, 0, 0, _FAIL | errno.EPERM),
    ]
