from __future__ import annotations

import ctypes
import os
import platform
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import cloister
from cloister.errors import SandboxUnavailableError
from cloister.hub.sandbox.runner import BlockEnding, BlockOutcome, Runner, detect_isolation
from cloister.hub.sandbox.sample_and_aggregate import SandboxBlock
from tests.support.foreign import HOSTILE, hostile
from tests.support.thoroughness import audited

LIBRARY = Path(os.__file__).parent
WALLS = [
    pytest.param((), id="all walls"),
    pytest.param(("landlock",), id="without Landlock", marks=pytest.mark.slow),
    pytest.param(("namespaces",), id="without namespaces", marks=pytest.mark.slow),
]
REFUSED = (
    "connect",
    "read_password_file",
    "read_home",
    "read_other_processes",
    "fork_forever",
    "start_program",
    "start_threads",
    "eat_memory",
    "eat_address_space",
)
ZERO = (
    "connect_by_system_call",
    "read_by_old_system_call",
    "fork_by_system_call",
    "write_files",
    "change_files",
    "kill_parent",
    "kill_by_system_call",
    "look_into_others",
    "leave_the_walls",
    "share_memory",
    "count_descriptors",
    "read_environment",
    "grow_the_result",
    "change_the_block",
)

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() != "x86_64", reason="the attacks use system calls of Linux"
)


@pytest.fixture(scope="module", params=WALLS)
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    with Runner(hostile(), tells=True, without=request.param) as opened:
        yield opened


def attack(runner: Runner, name: str, *, rows: int = 3, **given: object) -> BlockOutcome:
    block = SandboxBlock(
        inputs={"column": np.arange(float(rows)).reshape(-1, 1)},
        parameters={"attack": name, "port": 9, "path": str(HOSTILE), "worker": os.getpid(), **given},
        bounds={"column": [(0.0, 1.0)]},
        outputs=(("answer", (2,)),),
        entrypoint="attacks:run",
    )
    return runner.run(block)


def works(runner: Runner) -> bool:
    outcome = attack(runner, "nothing")
    return outcome.values is not None and outcome.values.tolist() == [0.25, 0.0]


def test_honest_code_runs(runner: Runner) -> None:
    assert works(runner)


@pytest.mark.parametrize("name", REFUSED)
def test_an_attack_is_refused(runner: Runner, name: str) -> None:
    outcome = attack(runner, name)
    assert outcome.values is None
    assert outcome.ending in (BlockEnding.FAILED, BlockEnding.KILLED)
    assert works(runner)


@pytest.mark.parametrize("name", ZERO)
def test_an_attack_finds_nothing(runner: Runner, name: str) -> None:
    outcome = attack(runner, name)
    assert outcome.values is not None, outcome.words
    assert outcome.values.tolist() == [0.0, 0.0]
    assert works(runner)


def test_the_attacks_would_work_outside(tmp_path: Path) -> None:
    """The same code, unconfined, can do it: the walls refuse it, not a mistake in the attack."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(41, 2, 1, 0)
    assert descriptor >= 0
    os.close(descriptor)
    assert Path("/etc/passwd").read_text("utf-8")
    assert libc.syscall(99, ctypes.create_string_buffer(4096)) == 0
    assert libc.syscall(62, os.getpid(), 0) == 0
    (tmp_path / "written").write_text("x", "utf-8")


def test_no_connection_arrives(runner: Runner) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        outcome = attack(runner, "connect", port=server.getsockname()[1])
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert outcome.values is None


def test_no_file_is_left(runner: Runner, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    attack(runner, "write_files", path=str(tmp_path))
    attack(runner, "remember")
    assert list(tmp_path.iterdir()) == []
    places = [Path("/tmp"), Path("/"), Path("/var/tmp"), Path("/dev/shm"), Path(runner._folder)]
    assert not [place for place in places for name in ("left-behind", "mark") if (place / name).exists()]


def test_a_block_remembers_nothing_of_the_one_before(runner: Runner) -> None:
    for _ in range(3):
        outcome = attack(runner, "remember")
        assert outcome.values is not None, outcome.words
        assert outcome.values.tolist() == [0.0, 0.0]


def test_printing_goes_nowhere(runner: Runner, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = attack(runner, "print_much")
    assert outcome.ending is not BlockEnding.LATE
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runner", "name"),
    audited(
        [
            (walls, name)
            for walls in ((), ("landlock",), ("namespaces",))
            for name in ("burn_forever", "ignore_signals")
        ],
        but=[((), "burn_forever"), ((), "ignore_signals")],
    ),
    indirect=["runner"],
)
def test_processor_time_ends(runner: Runner, name: str) -> None:
    outcome = attack(runner, name)
    assert (outcome.values, outcome.ending) == (None, BlockEnding.KILLED)
    assert works(runner)


def test_wall_time_ends() -> None:
    with Runner(hostile(wall=0.5)) as hurried:
        for name in ("sleep_forever", "sleep_forever"):
            outcome = attack(hurried, name)
            assert (outcome.values, outcome.ending) == (None, BlockEnding.LATE)


@pytest.mark.parametrize("name", ["overflow_the_stack", "crash", "write_early_and_leave", "exit_quietly"])
def test_a_crash_or_an_early_exit_gives_nothing(runner: Runner, name: str) -> None:
    assert attack(runner, name).values is None
    assert works(runner)


def test_a_forged_result_is_numbers_like_any_other(runner: Runner) -> None:
    outcome = attack(runner, "write_what_it_likes")
    assert outcome.values is not None
    assert np.isnan(outcome.values[0])
    assert outcome.values[1] == 1e300


def test_words_of_foreign_code_cannot_command_a_terminal(runner: Runner) -> None:
    words = attack(runner, "steer_the_terminal").words
    assert words == "ValueError: [2J"


def test_words_are_told_for_synthetic_data_only() -> None:
    with Runner(hostile()) as silent:
        assert attack(silent, "read_password_file").words == ""
        assert "attacks" not in repr(attack(silent, "nothing"))


def test_only_the_libraries_can_be_seen(runner: Runner) -> None:
    for path in (HOSTILE, Path("/etc"), Path("/proc"), Path("/sys"), Path("/dev"), Path("/var")):
        assert attack(runner, "read_home", path=str(path)).values is None, path
    assert attack(runner, "read_home", path=str(LIBRARY)).values is not None


@pytest.mark.parametrize(
    ("without", "missing"),
    [
        (("namespaces", "landlock"), "no wall around files"),
        (("seccomp",), "no filter of system calls"),
        (("seccomp", "namespaces", "landlock"), "no filter of system calls"),
    ],
)
def test_too_few_walls_are_refused(without: tuple[str, ...], missing: str) -> None:
    with pytest.raises(SandboxUnavailableError, match=missing) as caught, Runner(hostile(), without=without):
        pass
    assert "seccomp" in caught.value.fix
    found = detect_isolation(without=without)
    assert not found.is_enough
    assert found.describe() == ("Foreign code does not run on this machine.",)


def test_the_walls_say_what_holds(runner: Runner) -> None:
    text = " ".join(runner.isolation.describe())
    assert "No network" in text
    assert ("Landlock lets it open" in text) == (not runner.isolation.own_files)
    assert "Not closed" in text


def test_a_closed_runner_says_so() -> None:
    closed = Runner(hostile())
    with pytest.raises(SandboxUnavailableError, match="with statement"):
        attack(closed, "nothing")


def test_everything_ends_with_the_worker(tmp_path: Path) -> None:
    """A worker that is killed in the middle of a block leaves no process behind."""
    code = (
        "import sys, os, numpy as np\n"
        "from cloister.hub.sandbox.runner import Runner\n"
        "from cloister.hub.sandbox.folders import read_folder\n"
        "from cloister.hub.sandbox.sample_and_aggregate import SandboxBlock\n"
        "with Runner(read_folder(sys.argv[1])) as runner:\n"
        "    print(runner._process.pid, flush=True)\n"
        "    runner.run(SandboxBlock(inputs={'column': np.zeros((1, 1))}, parameters={'attack': 'sleep_forever'},\n"
        "        bounds={}, outputs=(('answer', (2,)),), entrypoint='attacks:run'))\n"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", code, str(HOSTILE)],
        env={**os.environ, "PYTHONPATH": str(Path(cloister.__file__).parents[1]), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    with worker:
        assert worker.stdout is not None
        zygote = int(worker.stdout.readline())
        descendants = [zygote]
        while len(descendants) < 3:
            descendants = [
                zygote,
                *_children(zygote),
                *(grand for child in _children(zygote) for grand in _children(child)),
            ]
        watched = [os.pidfd_open(process) for process in descendants]
        worker.kill()
        for process in watched:
            waiting = select.poll()
            waiting.register(process, select.POLLIN)
            assert waiting.poll(20_000), "a process outlived its worker"
            os.close(process)


def _children(process: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{process}/task/{process}/children").read_text("ascii").split()]
