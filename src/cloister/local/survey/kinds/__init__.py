"""Kinds of questions: one module each, which says everything that a kind has to say, and is found here by itself."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from cloister.local.survey.kinds.base import QuestionKind, find_kind, list_kinds

__all__ = ["QuestionKind", "find_kind", "list_kinds"]

# Importing a module registers its kind, so that a new file in this folder is all that Python needs.
for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
