"""Chromium driven by Playwright: the system's own browser, fresh for each use, on a phone-sized page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.support import tools
from tests.support.browser import OPTIONS

PHONE = {"width": 390, "height": 844}
DESK = {"width": 1200, "height": 900}
PATIENCE = 20_000
"""How many milliseconds a page may take on a busy machine."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser, which is gone afterwards."""
    path = tools.chromium()
    assert path is not None
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=path, args=[option for option in OPTIONS if option != "--headless"]
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def phone(browser: Browser, *, dark: bool = False, **options: Any) -> Iterator[BrowserContext]:
    """Open a browser profile of somebody with a phone, with nothing in it."""
    context = browser.new_context(
        viewport=PHONE, device_scale_factor=2, color_scheme="dark" if dark else "light", **options
    )
    context.set_default_timeout(PATIENCE)
    try:
        yield context
    finally:
        context.close()


def shot(page: Page, folder: Path, name: str) -> None:
    """Keep a picture of a whole page, in the folder that the environment names or else in that of the test."""
    page.screenshot(path=Path(os.environ.get("CLOISTER_SHOTS") or folder) / f"{name}.png", full_page=True)
