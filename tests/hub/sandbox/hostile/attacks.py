"""Attacks by foreign code: each returns ones if it succeeded, and fails or returns zeros if it did not."""

import builtins
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np


def run(inputs, parameters, bounds):
    found = globals()[parameters["attack"]](inputs["column"], parameters)
    return {"answer": [float(found), 0.0]}


def nothing(rows, parameters):
    return 0.25


def connect(rows, parameters):
    with socket.create_connection(("127.0.0.1", parameters["port"]), timeout=1):
        return 1


def connect_by_system_call(rows, parameters):
    return _call(41, 2, 1, 0) >= 0 or _call(53, 1, 1, 0, ctypes.byref((ctypes.c_int * 2)())) >= 0


def read_password_file(rows, parameters):
    with open("/etc/passwd", encoding="utf-8") as file:
        return bool(file.read())


def read_home(rows, parameters):
    return bool(os.listdir(parameters["path"]))


def read_by_old_system_call(rows, parameters):
    return _call(2, b"/etc/passwd", 0, 0) >= 0 or _call(437, -100, b"/etc/passwd", None, 24) >= 0


def read_other_processes(rows, parameters):
    return any(name.isdigit() for name in os.listdir("/proc"))


def fork_forever(rows, parameters):
    while True:
        os.fork()


def fork_by_system_call(rows, parameters):
    return any(_call(number, 0, 0, 0, 0, 0) >= 0 for number in (56, 57, 58, 435))


def start_program(rows, parameters):
    return subprocess.run(["/bin/sh", "-c", "true"], check=False).returncode == 0


def start_threads(rows, parameters):
    for _ in range(1000):
        threading.Thread(target=time.sleep, args=(100,)).start()
    return 1


def eat_memory(rows, parameters):
    kept = []
    while True:
        kept.append(bytearray(2**24))


def eat_address_space(rows, parameters):
    return np.empty(2**34, dtype=np.uint8).size > 0


def print_much(rows, parameters):
    for _ in range(300):
        print("x" * 10**6)
        sys.stderr.write("y" * 10**6)
    return 0.25


def write_files(rows, parameters):
    for folder in (os.path.dirname(__file__), "/tmp", "/dev/shm", "/var/tmp", "/", ".", parameters["path"]):
        try:
            with open(os.path.join(folder, "left-behind"), "w", encoding="utf-8") as file:
                file.write("x")
        except OSError:
            continue
        return 1
    return 0


def change_files(rows, parameters):
    tries = [
        lambda: os.mkdir("/tmp/left-behind"),
        lambda: os.unlink(__file__),
        lambda: os.rename(__file__, f"{__file__}.old"),
        lambda: os.chmod(__file__, 0o777),
        lambda: os.utime(__file__),
        lambda: os.truncate(__file__, 0),
        lambda: os.symlink("/etc/passwd", "/tmp/left-behind"),
        lambda: os.memfd_create("left-behind"),
    ]
    return any(_works(act) for act in tries)


def sleep_forever(rows, parameters):
    while True:
        time.sleep(1000)


def burn_forever(rows, parameters):
    while True:
        pass


def ignore_signals(rows, parameters):
    for number in range(1, 65):
        _works(lambda number=number: signal.signal(number, signal.SIG_IGN))
    while True:
        pass


def kill_parent(rows, parameters):
    targets = (os.getppid(), parameters["worker"], -1, 1)
    return any(_works(lambda target=target: os.kill(target, signal.SIGKILL)) for target in targets if target)


def kill_by_system_call(rows, parameters):
    worker = parameters["worker"]
    return any(_call(number, worker, worker, 9) == 0 for number in (62, 200, 234, 424))


def look_into_others(rows, parameters):
    worker = parameters["worker"]
    return any(_call(number, worker, worker, 0, 0) >= 0 for number in (101, 310, 311, 312, 434, 438))


def leave_the_walls(rows, parameters):
    """unshare, setns, mount, pivot_root, chroot, umount, prctl, seccomp, landlock, bpf, keys, io_uring, and more."""
    numbers = (272, 308, 165, 155, 161, 166, 157, 317, 444, 321, 248, 250, 425, 323, 298, 135, 105, 117, 126, 302, 160)
    return any(_call(number, 0x10000000, 0, 0, 0, 0) >= 0 for number in numbers)


def share_memory(rows, parameters):
    """shmget, msgget, semget, mq_open, eventfd, inotify, flock on the library, F_SETLEASE, sysinfo, statfs."""
    buffer = ctypes.create_string_buffer(4096)
    calls = [(29, 1, 4096, 0o1666), (68, 1, 0o1666), (64, 1, 1, 0o1666), (240, b"/x", 66, 0o666, 0), (284, 0), (253,)]
    calls += [(73, 0, 2), (72, 0, 1024, 0), (99, buffer), (137, b"/", buffer), (138, 0, buffer), (27, 0, 4096, buffer)]
    return any(_call(*call) >= 0 for call in calls)


def count_descriptors(rows, parameters):
    return any(_works(lambda number=number: os.fstat(number)) for number in range(6, 300))


def read_environment(rows, parameters):
    known = {"LC_ALL", "LC_CTYPE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}
    return bool(set(os.environ) - known)


def remember(rows, parameters):
    """Leave a mark in every place that comes to mind, and look for marks of earlier blocks."""
    seen = any(hasattr(place, "mark") for place in (builtins, sys, np, sys.modules[__name__], socket))
    seen = seen or "MARK" in os.environ or any(os.path.exists(f"{folder}/mark") for folder in ("/tmp", "/", "."))
    seen = seen or bool(np.any(np.empty(10**6) == 12345.678))
    for place in (builtins, sys, np, sys.modules[__name__], socket):
        place.mark = True
    os.environ["MARK"] = "1"
    for folder in ("/tmp", "/", "."):
        _works(lambda folder=folder: open(f"{folder}/mark", "w", encoding="utf-8").close())
    np.full(10**6, 12345.678)
    return 1 if seen else 0


def write_early_and_leave(rows, parameters):
    os.pwrite(4, b"complete"[:4], 0)
    os._exit(0)


def write_what_it_likes(rows, parameters):
    os.pwrite(4, b"complete" + np.array([np.nan, 1e300]).tobytes(), 0)
    os._exit(0)


def grow_the_result(rows, parameters):
    return _works(lambda: os.ftruncate(4, 10**6)) or _works(lambda: os.pwrite(4, b"x" * 10**6, 24))


def change_the_block(rows, parameters):
    return _works(lambda: os.pwrite(3, b"x", 0))


def overflow_the_stack(rows, parameters):
    sys.setrecursionlimit(10**9)

    def deeper(value):
        return deeper([value]) + 1

    return deeper(0)


def crash(rows, parameters):
    ctypes.string_at(0)


def exit_quietly(rows, parameters):
    sys.exit(0)


def steer_the_terminal(rows, parameters):
    raise ValueError("\x1b[2J\nsecond line" + "z" * 10**5)


def tell_by_name(rows, parameters):
    return 1 if (rows == 7).any() else 0


def _call(number, *arguments):
    return ctypes.CDLL(None, use_errno=True).syscall(number, *arguments)


def _works(act):
    try:
        act()
    except (OSError, ValueError):
        return False
    return True
