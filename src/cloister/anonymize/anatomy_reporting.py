"""The report of a release in two tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cloister.report import (
    Bullets,
    Facts,
    KeyFigure,
    Notice,
    NoticeKind,
    Report,
    Section,
    Status,
    Text,
    Verdict,
    escaped,
)

if TYPE_CHECKING:
    from cloister.anonymize.anatomy_release import AnatomyRelease

__all__ = ["report_of_anatomy"]


def report_of_anatomy(release: AnatomyRelease, *, title: str) -> Report:
    """Return the report: what is promised, and the two ways in which it is less than it seems."""
    sizes = release.tables.sizes
    return Report(
        title,
        subtitle=release.guarantee.brief(),
        verdict=Verdict(
            f"The model holds in every one of {release.tables.groups:,} groups, but shows who is in the table",
            Status.ATTENTION,
        ),
        figures=[
            KeyFigure("Groups", f"{release.tables.groups:,}", f"of {int(np.min(sizes))} rows or more"),
            KeyFigure("Guess within a group", f"1 in {release.l}", "for who looks at one group by itself"),
        ],
        sections=[
            Section("What is promised", [Notice(NoticeKind.PROMISE, escaped(release.guarantee.explain()))]),
            Section("What is not protected", [Bullets(_DANGERS), _columns(release)]),
            Section("How it was made", [_how(release)]),
        ],
    )


_DANGERS = (
    "**Membership.** Quasi-identifiers are exact: who knows a person's sees that the person is in the table.",
    (
        "**Learning.** EM and deFinetti attacks learn over all groups, and are right more often than one time in l: "
        "`cl.attacks.anatomy_em(release)` says how often."
    ),
    "**Background knowledge.** Each value that an attacker can rule out for a group leaves fewer to guess from.",
)


def _columns(release: AnatomyRelease) -> Text:
    exact = ", ".join(escaped(name) for name in (*release.roles.quasi, *release.roles.insensitive))
    apart = release.tables.attribute
    left_out = [escaped(name) for name in (*release.roles.identifiers, *release.roles.sensitive) if name != apart]
    ending = f" **Left out:** {', '.join(left_out)}." if left_out else ""
    return Text(f"**Released exactly:** {exact}. **In the second table only:** {escaped(apart)}.{ending}")


def _how(release: AnatomyRelease) -> Facts:
    return Facts(
        [
            ("Algorithm", "anatomy (Xiao and Tao 2006)"),
            ("Rows", f"{int(release.tables.sizes.sum()):,}"),
            ("Choice of rows", "at random from the operating system, so that a second run differs"),
        ]
    )
