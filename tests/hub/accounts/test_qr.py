from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.errors import ParameterError
from cloister.hub.services.accounts import qr

# From the encoder segno 1.6.6 (version 1, level M, byte mode, mask 2) for "otpauth://totp".
KNOWN = """
#######..#.##.#######
#.....#..##.#.#.....#
#.###.#.#.#...#.###.#
#.###.#.#####.#.###.#
#.###.#.##..#.#.###.#
#.....#.#.#.#.#.....#
#######.#.#.#.#######
........##..#........
#.#####.....#.#####..
#.###....#.#..#.#####
..#.####...##.##..##.
.####...#...#..#.####
###..###.####.####.##
........##.#.####.#.#
#######..######...##.
#.....#.#..#...#.##.#
#.###.#.##.#..#....##
#.###.#.#....##.#.#..
#.###.#.#..####..##..
#.....#..##.##...##..
#######.#..####..#.#.
"""


def _read(matrix: qr.Matrix) -> bytes:
    """Read the text back: the format, the mask, the path, the blocks; the check bytes must fit."""
    version = (len(matrix) - 17) // 4
    form = int("".join(str(matrix[row, 8]) for row in (len(matrix) - 1 - place for place in range(7))), 2)
    assert form >> 5 == 0b10, "level M, under the mask of the format"
    mask = (form >> 2 & 0b111) ^ 0b101
    frame = qr._frame(version)
    flipped = qr._mask(mask, np.arange(len(frame))[:, None], np.arange(len(frame))[None, :])
    bits = [int(matrix[at]) ^ int(flipped[at]) for at in qr._path(len(frame)) if frame[at] == -1]
    words = [int("".join(map(str, bits[start : start + 8])), 2) for start in range(0, len(bits) // 8 * 8, 8)]
    checks, sizes = qr._BLOCKS[version]
    data, rest = words[: sum(sizes)], words[sum(sizes) : sum(sizes) + checks * len(sizes)]
    blocks: list[list[int]] = [[] for _ in sizes]
    given_words = iter(data)
    for place in range(max(sizes)):
        for block, size in zip(blocks, sizes, strict=True):
            if place < size:
                block.append(next(given_words))
    for number, block in enumerate(blocks):
        assert _syndromes([*block, *rest[number :: len(sizes)]], checks) == [0] * checks
    text = "".join(f"{word:08b}" for block in blocks for word in block)
    width = 8 if version < 10 else 16
    count = int(text[4 : 4 + width], 2)
    return bytes(int(text[4 + width + 8 * place :][:8], 2) for place in range(count))


def _syndromes(words: list[int], count: int) -> list[int]:
    found = []
    for power in range(count):
        value = 0
        for word in words:
            value = qr._times(value, qr._powers()[0][power]) ^ word
        found.append(value)
    return found


def test_a_code_is_the_one_of_an_independent_encoder() -> None:
    known = np.array([[int(letter == "#") for letter in line] for line in KNOWN.split()])
    matrix = qr._filled(qr._frame(1), qr._bits(qr._codewords(b"otpauth://totp", 1)), 2)
    assert np.array_equal(matrix, known)


@given(st.text(st.characters(codec="ascii", exclude_categories=["C"]), max_size=213))
def test_codes_can_be_read_back(text: str) -> None:
    assert _read(qr.encode(text)) == text.encode()


def test_longer_texts_are_refused() -> None:
    assert len(qr.encode("x" * 213)) == 57
    with pytest.raises(ParameterError, match="shorten"):
        qr.encode("x" * 214)


def test_a_picture_is_plain_svg() -> None:
    picture = qr.svg("otpauth://totp/cloister:ada")
    assert picture.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert "script" not in picture
    assert qr.data_address("x").startswith("data:image/svg+xml;base64,")
