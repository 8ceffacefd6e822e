"""A machine of its own for the hub's service: the first process of new namespaces, which becomes a real systemd.

``python service_machine.py CONFIGURATION.json`` is run by ``unshare`` as root. Everything that it changes on the way,
such as ``/etc`` and ``/var``, is an overlay of its own mount namespace and gone with it; so is its loopback network.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

UNITS = Path("/run/units")
CHECK = "/opt/cloister/bin/cloister hub check --json --settings /etc/cloister/hub.toml"
TARGETS = ("sysinit", "basic", "shutdown", "network-online", "multi-user")

PROBE = """[Unit]
After=cloister-hub.service
[Service]
Type=oneshot
ExecStart=/opt/cloister/bin/python /opt/cloister/tests/support/service_machine.py --probe
StandardOutput=append:/run/result/log
StandardError=append:/run/result/log
"""


def boot(configuration: dict[str, Any]) -> None:
    """Lay out the machine as the how-to says, and become its systemd."""
    subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=True)
    results, root = _bind(configuration["result"], "/mnt/result"), _bind(configuration["root"], "/mnt/root")
    python, packages = _bind(configuration["python"], "/mnt/python"), _bind(configuration["packages"], "/mnt/packages")
    for folder in ("etc", "opt", "var"):
        _overlay(Path("/", folder), at=Path("/", folder))
    _install(python, packages, root)
    os.chdir(root)
    for command in configuration["commands"]:
        subprocess.run(command, shell=True, check=True)  # the lines of the how-to, which are ours
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"], check=True)
    _bind(results, "/run/result")
    _write_units(Path("/etc/systemd/system/cloister-hub.service"))
    _bring_loopback_up()
    environment = {"container": "test", "SYSTEMD_UNIT_PATH": str(UNITS), "PATH": os.environ["PATH"]}
    systemd = ["/lib/systemd/systemd", "--system", "--unit=all.target", "--show-status=no", "--log-target=console"]
    os.execve(systemd[0], systemd, environment)


def probe() -> None:
    """Ask the hub that the service started, and invite its first operator as the how-to says; runs inside."""
    import http.client
    import time

    end, answer = time.monotonic() + 120, b""
    while time.monotonic() < end and not answer:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=10)
            connection.request("GET", "/health", headers={"Host": "hub.example.org"})
            answer = connection.getresponse().read()
        except OSError:
            time.sleep(0.2)
    invitation = Path("/run/result/invite").read_text("utf-8")
    invited = subprocess.run(invitation, shell=True, capture_output=True, text=True, check=False)
    checked = subprocess.run(
        ["runuser", "-u", "cloister", "--", *CHECK.split()], capture_output=True, text=True, check=False
    )
    found = {
        "health": answer.decode(),
        "invited": invited.stdout + invited.stderr,
        "checked": checked.stdout or checked.stderr,
        "keys": oct(Path("/var/lib/cloister-keys").stat().st_mode),
        "key": oct(Path("/var/lib/cloister-keys/master.key").stat().st_mode),
        "data": oct(Path("/var/lib/cloister").stat().st_mode),
    }
    draft = Path("/run/result/draft.json")
    draft.write_text(json.dumps(found), "utf-8")
    draft.rename("/run/result/found.json")


def _bind(place: Path | str, at: Path | str) -> Path:
    Path(at).mkdir(parents=True)
    subprocess.run(["mount", "--bind", str(place), str(at)], check=True)
    return Path(at)


def _overlay(lower: Path, *, at: Path) -> None:
    """Show a folder somewhere so that what is written there is gone with this machine."""
    upper, work = (Path(tempfile.mkdtemp(dir="/mnt")) for _ in range(2))
    upper.chmod(0o755)
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, str(at)], check=True)


def _install(python: Path, packages: Path, root: Path) -> None:
    """Make /opt/cloister as venv and pip would, with this source: the unit hides homes and temporary folders."""
    home = Path("/opt/cloister")
    shutil.rmtree(home, ignore_errors=True)
    (home / "bin").mkdir(parents=True)
    _bind(python, home / "python")
    (home / "pyvenv.cfg").write_text(f"home = {home}/python/bin\n", "utf-8")
    (home / "bin" / "python").symlink_to(home / "python" / "bin" / Path(sys.executable).resolve().name)
    Path("/etc/ld.so.conf.d/000-cloister.conf").write_text(
        f"{home}/python/lib\n", "utf-8"
    )  # a shared libpython moves too
    subprocess.run(["ldconfig"], check=True)
    site = home / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    site.mkdir(parents=True)
    _overlay(packages, at=site)
    (site / "cloister").symlink_to(_bind(root / "src" / "cloister", home / "source"))
    _bind(root / "tests", home / "tests")
    command = home / "bin" / "cloister"
    command.write_text("#!/opt/cloister/bin/python\nfrom cloister.cli import main\nmain()\n", "utf-8")
    command.chmod(0o755)


def _write_units(service: Path) -> None:
    """Give systemd the service as it is, what it is started after, and a probe; the probe of its walls shares them."""
    UNITS.mkdir()
    for name in TARGETS:
        (UNITS / f"{name}.target").write_text("[Unit]\nDefaultDependencies=no\n", "utf-8")
    text = service.read_text("utf-8")
    (UNITS / service.name).write_text(
        text.replace(
            "[Service]\n", "[Service]\nStandardOutput=append:/run/result/log\nStandardError=append:/run/result/log\n"
        ),
        "utf-8",
    )
    confined = re.sub(r"ExecStart=.*", f"ExecStart={CHECK}", text)
    confined = confined.replace("Type=exec", "Type=oneshot").replace("Restart=on-failure", "Restart=no")
    confined = confined.replace("[Service]\n", "[Service]\nStandardOutput=truncate:/run/result/confined.json\n")
    confined = confined.replace("[Unit]\n", "[Unit]\nAfter=probe.service\n")
    (UNITS / "confined.service").write_text(confined, "utf-8")
    (UNITS / "probe.service").write_text(PROBE, "utf-8")
    wanted = f"Wants={service.name} probe.service confined.service"
    (UNITS / "all.target").write_text(f"[Unit]\nDefaultDependencies=no\n{wanted}\n", "utf-8")


def _bring_loopback_up() -> None:
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS, IFF_UP | IFF_RUNNING


if __name__ == "__main__":
    if sys.argv[1] == "--probe":
        probe()
    else:
        boot(json.loads(Path(sys.argv[1]).read_text("utf-8")))
