"""Reads QR codes back from their pictures, with a reader that shares nothing with the writer."""

from __future__ import annotations

import re
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import numpy as np
import zxingcpp
from numpy.typing import NDArray

START = "data:image/svg+xml;charset=utf-8,"
PIXELS = 4


def read_qr_picture(picture: str) -> str:
    """Return the one text in a picture."""
    assert picture.startswith(START)
    (found,) = zxingcpp.read_barcodes(draw(unquote(picture.removeprefix(START))), formats=zxingcpp.BarcodeFormat.QRCode)
    assert found.valid
    return str(found.text)


def draw(svg: str) -> NDArray[np.uint8]:
    """Draw the horizontal strokes of a picture, dark on light; anything else in it is an error."""
    picture = ET.fromstring(svg)
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    size = int(picture.attrib["viewBox"].split()[2])
    paper, ink = picture
    assert paper.attrib == {"fill": "#fff", "d": f"M0 0h{size}v{size}h-{size}z"}
    assert ink.attrib.keys() == {"stroke", "d"}
    light = np.full((size, size), 255, np.uint8)
    x, y = 0.0, 0.0
    for command, across, down in re.findall(r"([Mmh])(-?[\d.]+)(?: (-?[\d.]+))?", ink.attrib["d"]):
        if command == "h":
            light[int(y), int(x) : int(x) + int(across)] = 0
            x += int(across)
        else:
            x, y = float(across) + x * (command == "m"), float(down) + y * (command == "m")
    return light.repeat(PIXELS, axis=0).repeat(PIXELS, axis=1)
