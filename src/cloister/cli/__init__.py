"""The ``cloister`` command: one module per noun, loaded when it is used."""

from __future__ import annotations

from cloister.cli.app import main

__all__ = ["main"]
