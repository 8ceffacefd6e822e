"""A real browser, driven without any driver: a page runs a module of ours and posts what it returns.

The page and the modules come from a server on loopback with a strict Content-Security-Policy, as a careful site would
send it.
"""

from __future__ import annotations

import json
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support import tools

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'"

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Test</title><script type="module" src="/run.js"></script></html>
"""
_RUN = """
const ask = globalThis.fetch.bind(globalThis);
const answer = async () => {
  const { module, argument } = await (await ask("/task.json")).json();
  const { default: run } = await import(module);
  return { value: (await run(argument)) ?? null };
};
const failure = new Promise((_, reject) => {
  addEventListener("unhandledrejection", ({ reason }) => reject(reason));
  addEventListener("error", ({ error, message }) => reject(error ?? message));
});
const told = await Promise.race([answer(), failure]).catch((error) => ({ error: String(error?.stack ?? error) }));
await ask("/answer", { method: "POST", body: JSON.stringify(told) });
"""
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".json": "application/json", ".html": "text/html"}


class BrowserError(AssertionError):
    """The page threw, or said nothing in time."""


def run_module(module: str, argument: object = None, *, folders: Mapping[str, Path], timeout: float = 120) -> Any:
    """Return what the default function of an ES module returns in Chromium, given an argument; both are JSON.

    Args:
        module: the address of the module on the server, such as "/tests/sample.mjs".
        argument: what its default function, which may be asynchronous, is called with.
        folders: what the server shows: the files of each folder under its address.
        timeout: after how many seconds the browser is given up.
    """
    answers: queue.Queue[dict[str, Any]] = queue.Queue()
    task = json.dumps({"module": module, "argument": argument}).encode()
    files = {"/": _PAGE.encode(), "/run.js": _RUN.encode(), "/task.json": task}
    with _serving(files, folders, answers) as address, opened(address) as browser:
        told = _wait(answers, browser, timeout)
    if "error" in told:
        raise BrowserError(told["error"])
    return told["value"]


@contextmanager
def opened(address: str) -> Iterator[subprocess.Popen[bytes]]:
    """Open an address in a fresh Chromium, which is gone afterwards."""
    path = tools.chromium()
    assert path is not None
    with tempfile.TemporaryDirectory(prefix="cloister-chromium-", ignore_cleanup_errors=True) as profile:
        command = [path, *OPTIONS, f"--user-data-dir={profile}", address]
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield browser
        finally:
            browser.terminate()
            try:
                browser.wait(10)
            except subprocess.TimeoutExpired:
                browser.kill()
                browser.wait()


def _wait(answers: queue.Queue[dict[str, Any]], browser: subprocess.Popen[bytes], timeout: float) -> dict[str, Any]:
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        try:
            return answers.get(timeout=0.5)
        except queue.Empty:
            if browser.poll() is not None:
                raise BrowserError(f"Chromium ended with code {browser.returncode} before the page answered") from None
    raise BrowserError(f"the page did not answer in {timeout} seconds")


@contextmanager
def _serving(
    files: Mapping[str, bytes], folders: Mapping[str, Path], answers: queue.Queue[dict[str, Any]]
) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = _content(self.path.partition("?")[0], files, folders)
            if content is None:
                self.send_error(404)
                return
            kind = _TYPES.get(Path(self.path).suffix, "text/html")
            self.send_response(200)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Security-Policy", POLICY)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self) -> None:
            told = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(204)
            self.end_headers()
            answers.put(json.loads(told))

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _content(path: str, files: Mapping[str, bytes], folders: Mapping[str, Path]) -> bytes | None:
    if path in files:
        return files[path]
    for prefix, folder in folders.items():
        place = (folder / path.removeprefix(prefix).lstrip("/")).resolve()
        if path.startswith(prefix) and place.is_relative_to(folder.resolve()) and place.is_file():
            return place.read_bytes()
    return None
