"""Calling the foreign function: one block in, numbers of the declared shapes out.

All of this runs in the confined process and is trusted for nothing: whoever reads the result takes it for bytes of a
stranger. Messages are written only for synthetic data.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from typing import Any

import numpy as np

DATA, RESULT, WORDS = 3, 4, 5
MARK = b"complete"
MOST_WORDS = 4000


class ShapeError(Exception):
    """The function did not return what its manifest declares."""


def run(folder: str, *, tells: bool) -> int:
    """Run the function on the block, write its result, and return an exit status."""
    try:
        header, inputs = _read()
        flat = _call(folder, header, inputs)
        content = MARK + flat.astype("<f8").tobytes()
        while content:
            content = content[os.pwrite(RESULT, content, header["size"] - len(content)) :]
    except BaseException as problem:  # noqa: BLE001  # whatever foreign code raises
        if tells:
            os.pwrite(WORDS, _words(problem, folder), 0)
        return 1
    return 0


def _read() -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    length = int.from_bytes(_take(8, 0), "little")
    header = json.loads(_take(length, 8))
    inputs, place = {}, 8 + length
    for name, rows, columns in header["inputs"]:
        block = _take(8 * rows * columns, place)
        inputs[name] = np.frombuffer(block, dtype="<f8").reshape(rows, columns)
        place += len(block)
    return header, inputs


def _take(length: int, place: int) -> bytearray:
    taken = bytearray()
    while len(taken) < length:
        part = os.pread(DATA, min(length - len(taken), 2**24), place + len(taken))
        if not part:
            raise EOFError
        taken += part
    return taken


def _call(folder: str, header: dict[str, Any], inputs: dict[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    sys.path.insert(0, folder)
    module, _, name = header["entry"].partition(":")
    function = getattr(importlib.import_module(module), name)
    bounds = {key: [tuple(pair) for pair in pairs] for key, pairs in header["bounds"].items()}
    given = function(inputs, header["parameters"], bounds)
    if not isinstance(given, dict) or set(given) != {key for key, _ in header["outputs"]}:
        raise ShapeError("The function must return a dictionary with exactly the declared outputs.")
    return np.concatenate([_check_shape(key, given[key], tuple(shape)) for key, shape in header["outputs"]])


def _check_shape(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:  # whatever the function gave
    array = np.asarray(value, dtype=np.float64)
    if array.shape != shape:
        raise ShapeError(f'The output "{name}" has shape {array.shape}; {shape} is declared.')
    return array.ravel()


def _words(problem: BaseException, folder: str) -> bytes:
    place = ""
    for frame in traceback.extract_tb(problem.__traceback__):
        if frame.filename.startswith(folder):
            place = f" ({frame.filename[len(folder) + 1 :]}, line {frame.lineno})"
    return f"{type(problem).__name__}: {problem}{place}".encode(errors="replace")[:MOST_WORDS]
