"""The colors of the pages, in light and in dark: text can be read, and borders and focus can be seen (WCAG 2.2 AA)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cloister.hub.web

STYLE = (Path(cloister.hub.web.__file__).parent / "static" / "style.css").read_text("utf-8")
TEXT, GRAPHICS = 4.5, 3.0
PAIRS = [
    *((text, ground, TEXT) for text in ("ink", "quiet", "accent") for ground in ("paper", "tint", "accent-tint")),
    *((name, f"{name}-tint", TEXT) for name in ("good", "attention", "bad")),
    *(("ink", f"{name}-tint", TEXT) for name in ("good", "attention", "bad")),
    ("on-accent", "accent", TEXT),
    ("bad", "paper", TEXT),
    ("good", "accent-tint", TEXT),
    ("quiet", "paper", GRAPHICS),
    ("accent", "paper", GRAPHICS),
]


def themes() -> dict[str, dict[str, str]]:
    blocks = re.findall(r":root\s*\{([^}]*)\}", STYLE)
    light, dark = (dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})", block)) for block in blocks)
    return {"light": light, "dark": light | dark}


def luminance(color: str) -> float:
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("front", "back", "least"), PAIRS)
def test_colors_can_be_told_apart(theme: str, front: str, back: str, least: float) -> None:
    colors = themes()[theme]
    assert contrast(colors[front], colors[back]) >= least


def test_contrast_is_that_of_the_guidelines() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


def test_focus_is_visible_and_motion_can_be_turned_off() -> None:
    assert ":focus-visible" in STYLE
    outside = re.sub(r"@media \(prefers-reduced-motion: no-preference\) \{.*?\}\s*\}", "", STYLE, flags=re.DOTALL)
    assert "transition" not in outside
    assert "animation" not in outside
