"""A single choice: one of several declared answers."""

from __future__ import annotations

from cloister.local.survey.kinds._options import OptionsKind
from cloister.local.survey.kinds.base import register

__all__ = ["SingleChoice"]


@register
class SingleChoice(OptionsKind):
    """One of several declared answers."""

    name, words, facts, rank = "single_choice", "single choice", ("options",), 2
