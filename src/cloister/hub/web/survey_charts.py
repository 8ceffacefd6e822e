"""Charts of estimates as pictures for a page, with the same numbers as a table for those who do not see them."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from cloister.hub.services.surveys import estimating
from cloister.hub.web.wording import safe_svg


def drawn(found: dict[str, Any]) -> dict[str, Markup]:
    """Return the picture of each question that has one; the charts are the hub's own, and hold no foreign markup."""
    names = [one["question"] for one in found["questions"] if one["chart"] is not None]
    return {name: safe_svg(estimating.chart(found, name).to_svg(owner=f"q{place}")) for place, name in enumerate(names)}
