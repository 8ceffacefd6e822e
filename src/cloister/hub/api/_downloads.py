"""Files and reports that leave over HTTP: always a download, or a page that can run nothing."""

from __future__ import annotations

from urllib.parse import quote

from fastapi.responses import Response

from cloister.hub.services.registry import ResultFile

SANDBOXED = {"Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"}


def download(file: ResultFile) -> Response:
    """Return a file, always as a download."""
    disposition = f"attachment; filename*=UTF-8''{quote(file.name, safe='')}"
    return Response(file.content, media_type=file.media_type, headers=SANDBOXED | {"Content-Disposition": disposition})
