"""QR codes as SVG pictures, for authenticators: byte mode, error correction level M, versions 1 to 10 (ISO 18004)."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cloister.errors import ParameterError

Matrix = NDArray[np.int8]

_BLOCKS = {
    1: (10, (16,)),
    2: (16, (28,)),
    3: (26, (44,)),
    4: (18, (32,) * 2),
    5: (24, (43,) * 2),
    6: (16, (27,) * 4),
    7: (18, (31,) * 4),
    8: (22, (38, 38, 39, 39)),
    9: (22, (36, 36, 36, 37, 37)),
    10: (26, (43, 43, 43, 43, 44)),
}
"""For each version, the check bytes of each block and the data bytes of the blocks."""

_CENTERS = {
    1: (),
    2: (18,),
    3: (22,),
    4: (26,),
    5: (30,),
    6: (34,),
    7: (22, 38),
    8: (24, 42),
    9: (26, 46),
    10: (28, 50),
}
"""Where the alignment patterns are, besides 6."""

_MARGIN = 4
_FREE = -1


def svg(text: str) -> str:
    """Return a QR code as an SVG picture."""
    matrix = encode(text)
    size = len(matrix) + 2 * _MARGIN
    dark = "".join(f"M{x + _MARGIN} {y + _MARGIN}h1v1h-1z" for y, x in np.argwhere(matrix == 1).tolist())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" shape-rendering="crispEdges">'
        f'<rect width="{size}" height="{size}" fill="#fff"/><path d="{dark}" fill="#000"/></svg>'
    )


def data_address(text: str) -> str:
    """Return a QR code as the address of a picture."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg(text).encode()).decode()


def encode(text: str) -> Matrix:
    """Return the modules of a QR code, 1 for dark, under the mask that is easiest to read."""
    content = text.encode()
    version = next((number for number in _BLOCKS if len(content) <= _capacity(number)), None)
    if version is None:
        raise ParameterError("This text is too long for a QR code.", fix="shorten it.")
    frame = _frame(version)
    bits = _bits(_codewords(content, version))
    return min((_filled(frame, bits, mask) for mask in range(8)), key=_penalty)


def _capacity(version: int) -> int:
    return sum(_BLOCKS[version][1]) - (2 if version < 10 else 3)


def _codewords(content: bytes, version: int) -> bytes:
    checks, sizes = _BLOCKS[version]
    room = sum(sizes)
    length_bits = 8 if version < 10 else 16
    number = (0b0100 << length_bits | len(content)) << 8 * len(content) | int.from_bytes(content, "big")
    used = 4 + length_bits + 8 * len(content)
    data = (number << (8 * room - used)).to_bytes(room, "big")[: (used + 7 + 4) // 8 if used + 4 <= 8 * room else room]
    data += bytes(0xEC if place % 2 == 0 else 0x11 for place in range(room - len(data)))
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    blocks = [data[start : start + size] for start, size in zip(starts, sizes, strict=True)]
    return _interleaved(blocks) + _interleaved([_check_bytes(block, checks) for block in blocks])


def _interleaved(blocks: list[bytes]) -> bytes:
    longest = max(len(block) for block in blocks)
    return bytes(block[place] for place in range(longest) for block in blocks if place < len(block))


@cache
def _powers() -> tuple[list[int], list[int]]:
    exponents, value = [], 1
    for _ in range(255):
        exponents.append(value)
        value = value << 1 ^ (0x11D if value & 0x80 else 0)
    logarithms = [0] * 256
    for place, found in enumerate(exponents):
        logarithms[found] = place
    return exponents, logarithms


def _times(left: int, right: int) -> int:
    exponents, logarithms = _powers()
    return 0 if not left or not right else exponents[(logarithms[left] + logarithms[right]) % 255]


def _check_bytes(block: bytes, count: int) -> bytes:
    generator = [1]
    for place in range(count):
        root = _powers()[0][place]
        shifted = [*generator, 0]
        generator = [value ^ _times(root, other) for value, other in zip(shifted, [0, *generator], strict=True)]
    rest = [*block, *bytes(count)]
    for place in range(len(block)):
        factor = rest[place]
        for offset, value in enumerate(generator):
            rest[place + offset] ^= _times(factor, value)
    return bytes(rest[len(block) :])


def _bits(codewords: bytes) -> list[int]:
    return [byte >> place & 1 for byte in codewords for place in range(7, -1, -1)]


def _frame(version: int) -> Matrix:
    size = 17 + 4 * version
    frame = np.full((size, size), _FREE, dtype=np.int8)
    frame[6, :] = frame[:, 6] = (np.arange(size) + 1) % 2
    for top, left in ((0, 0), (0, size - 7), (size - 7, 0)):
        frame[max(top - 1, 0) : top + 8, max(left - 1, 0) : left + 8] = 0
        frame[top : top + 7, left : left + 7] = _rings(7)
    for row in (6, *_CENTERS[version]):
        for column in (6, *_CENTERS[version]):
            if _CENTERS[version] and frame[row, column] in (_FREE, frame[6, 6]) and not _is_corner(row, column, size):
                frame[row - 2 : row + 3, column - 2 : column + 3] = _rings(5)
    frame[8, :9] = frame[:9, 8] = frame[8, -8:] = frame[-8:, 8] = 0
    frame[6, 8] = frame[8, 6] = 1
    if version >= 7:
        written = version << 12 | _remainder(version << 12, 0x1F25)
        for place in range(18):
            row, column = place // 3, size - 11 + place % 3
            frame[row, column] = frame[column, row] = written >> place & 1
    return frame


def _is_corner(row: int, column: int, size: int) -> bool:
    return (row, column) in {(6, 6), (6, size - 7), (size - 7, 6)}


def _rings(size: int) -> Matrix:
    away = np.abs(np.arange(size) - size // 2)
    distance = np.maximum(away[:, None], away[None, :])
    return np.where(distance == size // 2 - 1, 0, 1).astype(np.int8)


def _remainder(value: int, generator: int) -> int:
    while value.bit_length() >= generator.bit_length():
        value ^= generator << (value.bit_length() - generator.bit_length())
    return value


def _filled(frame: Matrix, bits: list[int], mask: int) -> Matrix:
    matrix, size = frame.copy(), len(frame)
    flipped = _mask(mask, np.arange(size)[:, None], np.arange(size)[None, :])
    given = iter(bits)
    for row, column in _path(size):
        if frame[row, column] == _FREE:
            matrix[row, column] = next(given, 0) ^ int(flipped[row, column])
    written = (mask << 10 | _remainder(mask << 10, 0x537)) ^ 0x5412
    around = [*((8, place) for place in range(6)), (8, 7), (8, 8), (7, 8), *((5 - place, 8) for place in range(6))]
    beside = [*((size - 1 - place, 8) for place in range(7)), *((8, size - 8 + place) for place in range(8))]
    for places in (around, beside):
        for place, (row, column) in enumerate(places):
            matrix[row, column] = written >> (14 - place) & 1
    matrix[size - 8, 8] = 1
    return matrix


def _path(size: int) -> Iterator[tuple[int, int]]:
    upwards = True
    for right in (*range(size - 1, 6, -2), *range(5, 0, -2)):
        for row in range(size - 1, -1, -1) if upwards else range(size):
            yield row, right
            yield row, right - 1
        upwards = not upwards


def _mask(mask: int, row: NDArray[np.int64], column: NDArray[np.int64]) -> NDArray[np.bool_]:
    product = row * column
    values = (
        (row + column) % 2,
        row % 2,
        column % 3,
        (row + column) % 3,
        (row // 2 + column // 3) % 2,
        product % 2 + product % 3,
        (product % 2 + product % 3) % 2,
        ((row + column) % 2 + product % 3) % 2,
    )
    return np.broadcast_to(values[mask] == 0, product.shape)


def _penalty(matrix: Matrix) -> int:
    lines = [*matrix.tolist(), *matrix.T.tolist()]
    total = sum(_line_penalty("".join(map(str, line))) for line in lines)
    same = (
        (matrix[1:, 1:] == matrix[:-1, 1:]) & (matrix[1:, 1:] == matrix[1:, :-1]) & (matrix[1:, 1:] == matrix[:-1, :-1])
    )
    share = 100 * int(matrix.sum()) / matrix.size
    return total + 3 * int(same.sum()) + 10 * int(abs(share - 50) // 5)


def _line_penalty(line: str) -> int:
    runs = "".join(" " + value if value != before else value for before, value in zip(" " + line, line, strict=False))
    total = sum(len(run) - 2 for run in runs.split() if len(run) >= 5)
    finders = ("10111010000", "00001011101")
    return total + 40 * sum(line.startswith(finders, place) for place in range(len(line) - 10))
