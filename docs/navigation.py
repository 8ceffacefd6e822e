"""A MkDocs hook: a folder in the navigation stands for its pages, so that adding a page needs no second edit."""

from __future__ import annotations

from typing import Any


def on_files(files: Any, config: Any) -> Any:  # objects of MkDocs
    """Replace each folder in the navigation by its pages, the index first."""
    pages = [file.src_uri for file in files.documentation_pages()]
    sections = []
    for entry in config.nav:
        ((title, target),) = entry.items()
        if not isinstance(target, str) or not target.endswith("/"):
            sections.append(entry)
            continue
        inside = [page for page in pages if page.startswith(target)]
        inside.sort(key=lambda page: (not page.endswith("/index.md"), page))
        if inside:
            sections.append({title: inside})
    config.nav = sections
    return files
