"""The files of ``deploy/`` and the page of settings are about this hub, not about another one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from cloister.cli.app import cloister
from cloister.hub.server import check_place
from cloister.hub.settings import Settings, read_settings
from tests.support import service_machine, tools

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
NAMES = {field.name for field in fields(Settings)}


def test_the_example_of_settings_is_read_and_safe() -> None:
    settings = read_settings(DEPLOY / "hub.toml", environment={})
    assert settings.is_https
    assert not settings.key_path.is_relative_to(settings.folder)
    check_place(settings)
    commented = re.findall(r"^# (\w+) = ", (DEPLOY / "hub.toml").read_text("utf-8"), re.MULTILINE)
    assert set(commented) <= NAMES


def test_the_container_sets_what_there_is() -> None:
    text = (DEPLOY / "Containerfile").read_text("utf-8")
    variables = set(re.findall(r"CLOISTER_HUB_(\w+)=", text))
    assert {name.lower() for name in variables} <= NAMES
    assert {"FOLDER", "KEY_FILE", "HOST", "PORT"} <= variables
    assert "USER cloister" in text
    assert "[hub]" in text


@pytest.mark.parametrize("path", ["deploy/cloister-hub.service", "docs/how-to/run-a-hub.md"])
def test_commands_and_options_exist(path: str) -> None:
    found = re.findall(r"cloister hub (\w+)([^\n`]*)", (ROOT / path).read_text("utf-8"))
    assert found
    context = click.Context(cloister)
    group = cloister.get_command(context, "hub")
    assert isinstance(group, click.Group)
    for name, rest in found:
        command = group.get_command(context, name)
        assert command is not None, name
        known = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"(?<= )--?[a-z-]+", rest)) <= known, (name, rest)


@pytest.mark.parametrize("name", ["nginx.conf", "Caddyfile"])
def test_proxies_lead_to_the_hub_and_take_uploads(name: str) -> None:
    settings = read_settings(DEPLOY / "hub.toml", environment={})
    text = (DEPLOY / name).read_text("utf-8")
    assert f"{settings.host}:{settings.port}" in text
    assert settings.public_url.removeprefix("https://") in text
    assert re.search(r"2 ?gb?\b", text, re.IGNORECASE), "as much as upload_limit"


def test_every_file_is_named_in_the_how_to() -> None:
    page = (ROOT / "docs" / "how-to" / "run-a-hub.md").read_text("utf-8")
    assert all(f"`{file.name}`" in page for file in DEPLOY.iterdir())


def test_every_setting_is_in_the_reference_with_its_default() -> None:
    page = (ROOT / "docs" / "reference" / "hub-settings.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", page, re.MULTILINE))
    assert set(rows) == NAMES
    for field in fields(Settings):
        if isinstance(field.default, (int, float)) or (isinstance(field.default, str) and field.default):
            assert rows[field.name].strip("`") == str(field.default).lower()
        assert re.search(rf"^        {field.name}: ", Settings.__doc__ or "", re.MULTILINE), field.name
    example = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert example is not None
    assert "issuer" in tomllib.loads(example[1])["oidc"]["university"]


def _program(name: str, package: str) -> str:
    """Return the path of a program of the system, or skip."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        tools.skip_or_fail(f"{name} is not installed: install {package} to run this test.")
    return str(found)


def _certify(folder: Path) -> None:
    """Write a certificate for the name in the examples, and its key, where nginx looks for them."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "hub.example.org")])
    begin = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(begin).not_valid_after(begin + timedelta(days=1))
    pem = serialization.Encoding.PEM
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "fullchain.pem").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(pem))
    (folder / "privkey.pem").write_bytes(key.private_bytes(pem, *plain))


def test_nginx_takes_its_file(tmp_path: Path) -> None:
    nginx = _program("nginx", "nginx-light")
    _certify(tmp_path)
    text = (DEPLOY / "nginx.conf").read_text("utf-8")
    text = text.replace("/etc/letsencrypt/live/hub.example.org", str(tmp_path)).replace("/var/log/nginx", str(tmp_path))
    (tmp_path / "hub.conf").write_text(text, "utf-8")
    whole = f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{ include {tmp_path}/hub.conf; }}\n"
    (tmp_path / "nginx.conf").write_text(whole, "utf-8")
    command = [nginx, "-t", "-e", str(tmp_path / "errors"), "-c", str(tmp_path / "nginx.conf")]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    assert tried.returncode == 0, tried.stderr
    assert "syntax is ok" in tried.stderr
    (tmp_path / "hub.conf").write_text(text.replace("server_name", "server_nam"), "utf-8")
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0, "mistakes are found"


def test_caddy_takes_its_file(tmp_path: Path) -> None:
    caddy = _program("caddy", "caddy")
    homes = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}

    def validate(path: Path) -> subprocess.CompletedProcess[str]:
        command = [caddy, "validate", "--adapter", "caddyfile", "--config", str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | homes)

    tried = validate(DEPLOY / "Caddyfile")
    assert tried.returncode == 0, tried.stderr
    assert "Valid configuration" in tried.stdout + tried.stderr
    wrong = tmp_path / "Caddyfile"
    wrong.write_text((DEPLOY / "Caddyfile").read_text("utf-8").replace("reverse_proxy", "revers_proxy"), "utf-8")
    assert validate(wrong).returncode != 0, "mistakes are found"


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    analyze = _program("systemd-analyze", "systemd")

    def verify(text: str) -> str:
        # The checker looks for the program and the account too, which a machine has only once the hub is installed.
        unit = tmp_path / "cloister-hub.service"
        unit.write_text(text.replace("/opt/cloister/bin/cloister", sys.executable), "utf-8")
        tried = subprocess.run([analyze, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)
        return "\n".join(line for line in tried.stderr.splitlines() if "cloister-hub.service" in line)

    text = (DEPLOY / "cloister-hub.service").read_text("utf-8")
    assert verify(text) == ""
    assert "ProtectSystems" in verify(text.replace("ProtectSystem", "ProtectSystems"))


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What came out when a real systemd started the service on a machine laid out by the lines of the how-to."""
    if not Path("/lib/systemd/systemd").exists():
        tools.skip_or_fail("systemd is not installed: install systemd to run this test.")
    if os.geteuid() != 0:
        tools.skip_or_fail("Namespaces for a systemd of their own need root: run this test as root.")
    result = tmp_path_factory.mktemp("result")
    page = (ROOT / "docs" / "how-to" / "run-a-hub.md").read_text("utf-8")
    block = re.search(r"```sh\n(python3 -m venv.*?)```", page, re.DOTALL)
    assert block is not None
    lines = block[1].splitlines()
    assert lines[-2].startswith("systemctl enable --now cloister-hub")
    (result / "invite").write_text(lines[-1], "utf-8")
    configuration = {
        "root": str(ROOT),
        "python": sys.base_prefix,
        "packages": sysconfig.get_path("purelib"),
        "result": str(result),
        "commands": lines[1:-2],
    }
    (result / "machine.json").write_text(json.dumps(configuration), "utf-8")
    spaces = ["--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup", "--propagation", "private", "--fork"]
    machine = [sys.executable, str(service_machine.__file__), str(result / "machine.json")]
    with (result / "console").open("wb") as console:
        running = subprocess.Popen(
            ["unshare", *spaces, "--kill-child=KILL", *machine],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
        )
    wanted = (result / "found.json", result / "confined.json")
    end = time.monotonic() + 240
    try:
        while not all(path.exists() and path.stat().st_size for path in wanted) and running.poll() is None:
            assert time.monotonic() < end, (result / "console").read_text() + _log(result)
            time.sleep(0.1)
        assert all(path.exists() for path in wanted), (result / "console").read_text() + _log(result)
        yield {path.stem: json.loads(path.read_text("utf-8")) for path in wanted} | {"log": _log(result)}
    finally:
        running.kill()
        running.wait()


def _log(result: Path) -> str:
    log = result / "log"
    return log.read_text("utf-8") if log.exists() else ""


@pytest.mark.slow
def test_the_service_starts_under_the_restrictions_of_its_unit(started: dict[str, Any]) -> None:
    found = started["found"]
    assert json.loads(found["health"])["status"] == "ok", started["log"]
    assert "https://hub.example.org/enrol/" in found["invited"]
    assert {found["keys"], found["data"]} == {"0o40700"}
    assert found["key"] == "0o100600"


@pytest.mark.slow
def test_everything_is_in_order_inside_of_the_unit(started: dict[str, Any]) -> None:
    outside, inside = json.loads(started["found"]["checked"])["findings"], started["confined"]["findings"]
    assert [finding for finding in inside if finding["is_needed"] and not finding["is_fine"]] == []
    assert inside == outside, "what the machine can confine, the service can confine"
