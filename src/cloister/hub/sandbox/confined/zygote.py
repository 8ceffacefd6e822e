"""The process that foreign blocks are forked from: libraries imported once, walls built once, no data ever in it.

It never runs foreign code and never reads a block: descriptors of the block and of its result pass through unopened, so
that nothing of one block is in the memory that the next block's process inherits. For each block it forks a warden; the
warden makes a new process namespace, forks the confined process as its first process, ends it at the time limit, and
with it whatever it might have left behind. Everything dies with the hub's worker: the zygote when its socket closes,
wardens and blocks with their parents.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import sysconfig
from typing import Any

from . import confinement, harness, kernel, landlock, namespaces, seccomp, self_test
from .confinement import Limits, Walls

_MOST_FILES = 256
_MESSAGE = 65536

DONE, FAILED, KILLED, LATE, UNCONFINED = 10, 11, 12, 13, 20
"""How a block ended: with status 0, with another, by a signal, at the time limit, or before it was confined."""


def main(descriptor: int) -> None:
    """Serve the hub's worker on a socket until it closes."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (_MOST_FILES, _MOST_FILES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    worker = socket.socket(fileno=descriptor)
    request = json.loads(worker.recv(_MESSAGE))
    hello, walls = _prepare(request)
    worker.send(json.dumps(hello).encode())
    base = hello["address_space"]
    while True:
        message, descriptors, _, _ = socket.recv_fds(worker, _MESSAGE, 3)
        if not message:
            os._exit(0)
        job = json.loads(message)
        warden = os.fork()
        if warden == 0:
            # No block may have a way to speak with the hub's worker.
            worker.close()
            os._exit(_guard(job, walls, request["folder"], descriptors, base))
        for passed in descriptors:
            os.close(passed)
        worker.send(json.dumps({"end": _ending(warden, worker)}).encode())


def _prepare(request: dict[str, Any]) -> tuple[dict[str, Any], Walls]:
    """Import the libraries and build the walls; say what holds."""
    for name in request["packages"]:
        importlib.import_module(name)
    _warm_up()
    paths = _readable_paths(request["folder"])
    without, problems = set(request["without"]), []
    base, mode, has_own_files, version, rules = confinement.address_space(), "", False, 0, -1
    if "namespaces" not in without:
        try:
            mode = namespaces.enter()
            namespaces.show_only(paths, request["scratch"])
            has_own_files = True
        except OSError as problem:
            problems.append(f"namespaces: {problem.strerror}")
    if "landlock" not in without:
        version = landlock.version()
        rules = landlock.prepare(paths) if version else -1
    known = seccomp.is_known() and "seccomp" not in without
    walls = Walls(mode=mode, has_own_files=has_own_files, landlock=version, rules=rules)
    hello = {
        "namespaces": mode,
        "own_files": has_own_files,
        "landlock": version,
        "seccomp": known,
        "address_space": base,
        "problems": problems,
    }
    return hello, walls


def _warm_up() -> None:
    """Have scikit-learn look once for the thread pools that it limits: it reads /proc, which confined code cannot."""
    look = getattr(sys.modules.get("sklearn.utils.parallel"), "_get_threadpool_controller", None)
    if look is not None:
        look()


def _readable_paths(folder: str) -> list[str]:
    """Return what confined code can read: its folder, the standard library, the imported libraries, shared objects."""
    places = sysconfig.get_paths()
    sites = [places["purelib"], places["platlib"]]
    shown = {folder, places["stdlib"], sysconfig.get_path("stdlib", vars={"base": sys.base_prefix})}
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    for site in sites:
        tops = {path[len(site) + 1 :].split("/")[0] for path in files if path.startswith(f"{site}/")}
        libraries = {name for name in os.listdir(site) if name.endswith(".libs")}  # noqa: PTH208  # no pathlib inside
        shown |= {f"{site}/{name}" for name in tops | libraries}
    with open("/proc/self/maps", encoding="utf-8") as maps:  # noqa: PTH123
        mapped = {line.split(maxsplit=5)[5].strip() for line in maps if ".so" in line}
    shown |= {os.path.dirname(path) for path in mapped if path.startswith("/")}  # noqa: PTH120
    there = sorted(path for path in shown if os.path.exists(path))  # noqa: PTH110
    return [path for path in there if not any(path.startswith(f"{other}/") for other in there)]


def _ending(warden: int, worker: socket.socket) -> int:
    """Wait for a warden and return how its block ended; end at once if the hub's worker is gone."""
    watched = select.poll()
    process = os.pidfd_open(warden)
    watched.register(process, select.POLLIN)
    watched.register(worker, select.POLLIN | select.POLLHUP)
    while not any(descriptor == process for descriptor, _ in watched.poll()):
        if not worker.recv(1, socket.MSG_PEEK):
            os._exit(1)
    os.close(process)
    return os.waitstatus_to_exitcode(os.waitpid(warden, 0)[1])


def _guard(job: dict[str, Any], walls: Walls, folder: str, descriptors: list[int], base: int) -> int:
    """Run one block in a process of its own and return how it ended."""
    confinement.die_with_parent()
    if walls.mode:
        # The next child is the first process of a new namespace: when it ends, all that it started ends.
        kernel.unshare(kernel.NEW_NAMESPACE_PID | kernel.NEW_NAMESPACE_IPC)
    heard, spoken = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(heard)
        _inside(job, walls, folder, [*descriptors, spoken], base)
    os.close(spoken)
    process = os.pidfd_open(child)
    watched = select.poll()
    watched.register(process, select.POLLIN)
    late = not watched.poll(1000 * job["wall"])
    if late:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    # A process that could not be confined has run nothing, and its end must not be taken for that of a block.
    if os.read(heard, 1) != b"1":
        return UNCONFINED
    if late:
        return LATE
    return DONE if status == 0 else KILLED if status < 0 else FAILED


def _inside(job: dict[str, Any], walls: Walls, folder: str, descriptors: list[int], base: int) -> None:
    """Be the confined process: give everything up, say so, and run the function."""
    status = 1
    try:
        spoken = _arrange(descriptors, walls)
        limits = Limits(cpu=job["cpu"], memory=job["memory"], result=max(job["result"], harness.MOST_WORDS))
        # The descriptor of Landlock's rules has moved to the place behind the pipe.
        kept = Walls(mode=walls.mode, has_own_files=walls.has_own_files, landlock=walls.landlock, rules=spoken + 1)
        confinement.confine(kept if walls.rules >= 0 else walls, limits, base=base)
        os.write(spoken, b"1")
        os.close(spoken)
        if job["task"] == "probe":
            os.pwrite(harness.WORDS, json.dumps(self_test.failures(folder)).encode(), 0)
            status = 0
        else:
            status = harness.run(folder, tells=job["task"] == "check")
    finally:
        os._exit(status)


def _arrange(descriptors: list[int], walls: Walls) -> int:
    """Put block, result, words, the warden's pipe and Landlock's rules at known places and close all others."""
    wanted = [*descriptors, *([walls.rules] if walls.rules >= 0 else [])]
    # By way of high numbers, as the wanted places may be taken by descriptors that are still needed.
    high = [os.dup2(old, _MOST_FILES // 2 + index) for index, old in enumerate(wanted)]
    for index, old in enumerate(high):
        os.dup2(old, harness.DATA + index)
    os.closerange(harness.DATA + len(wanted), _MOST_FILES)
    return harness.DATA + len(descriptors) - 1
