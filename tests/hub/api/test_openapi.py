"""The description of the API is whole."""

from __future__ import annotations

import re

from cloister.hub.app import create_app
from cloister.hub.hub import Hub


def test_every_part_of_every_path_is_declared_once(hub: Hub) -> None:
    paths = create_app(hub).openapi()["paths"]
    assert len(paths) > 50
    for path, operations in paths.items():
        for method, operation in operations.items():
            declared = [part for part in operation.get("parameters", []) if part["in"] == "path"]
            names = sorted(part["name"] for part in declared)
            assert names == sorted(re.findall(r"\{(\w+)\}", path)), (method, path)
            assert all(part["required"] and part["schema"] for part in declared)
