"""A chart as a value: one Vega-Lite specification that is saved, shown or handed on.

Images are drawn by vl-convert, which needs neither a browser nor a network: a specification that asks for data from
elsewhere is refused. The HTML page holds the picture itself and no scripts.

`table_of` gives the numbers of a specification as a table: the fields that its tooltips show, under their titles.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from cloister.errors import MissingExtraError, ParameterError, ParameterTypeError, did_you_mean


def table_of(specification: dict[str, Any]) -> tuple[tuple[str, ...], tuple[tuple[object, ...], ...]]:
    """Return headings and rows; a specification without tooltips is shown with all fields of its data."""
    data = specification.get("data")
    rows = data.get("values", []) if isinstance(data, dict) else []
    rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    titles = next(_tooltips(specification), None) or {field: field for row in rows for field in row}
    return tuple(titles.values()), tuple(tuple(_readable(row.get(field)) for field in titles) for row in rows)


def _tooltips(part: object) -> Iterator[dict[str, str]]:
    """Yield, for each mark that has a tooltip, its fields with their titles."""
    if isinstance(part, dict):
        shown = part.get("tooltip")
        if isinstance(shown, list) and all(isinstance(item, dict) and "field" in item for item in shown):
            yield {str(item["field"]): _title(item) for item in shown}
        part = list(part.values())
    if isinstance(part, list):
        for child in part:
            yield from _tooltips(child)


def _title(item: dict[str, Any]) -> str:
    """Return the title of a field; a backslash in it is doubled for Vega-Lite, see `_style.tooltip`."""
    return str(item.get("title") or item["field"]).replace(r"\\", "\\")


def _readable(value: object) -> object:
    """Return a value in one line; parts of a specification are not numbers."""
    if isinstance(value, str):
        return value.replace("\n", " ")
    return value if value is None or isinstance(value, bool | int | float) else str(value)


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body>
{svg}
</body>
</html>
"""


@dataclass(frozen=True, slots=True, repr=False)
class Figure:
    """A chart; notebooks show it, `save` writes it to a file.

    >>> from cloister.plotting import bars_with_errors
    >>> bars_with_errors(["north", "south"], [120, 95], [12, 12], title="Visits", x="Region", y="Visits")
    Figure('Visits')

    Attributes:
        specification: the chart as Vega-Lite, in JSON.
    """

    specification: str

    @classmethod
    def from_dict(cls, specification: Mapping[str, Any]) -> Figure:
        """Return the figure of a Vega-Lite specification, such as that of an Altair chart."""
        try:
            return cls(json.dumps(specification, allow_nan=False, ensure_ascii=False))
        except (TypeError, ValueError):
            raise ParameterTypeError(
                "The specification of the chart is not JSON.",
                fix="give Vega-Lite made of dictionaries, lists, text and finite numbers.",
            ) from None

    def __repr__(self) -> str:
        return f"Figure({self.title!r})"

    @property
    def title(self) -> str:
        """Return the title in one line."""
        title = self.to_dict().get("title", "")
        text = title.get("text", "") if isinstance(title, dict) else title
        return " ".join(text) if isinstance(text, list) else str(text)

    def to_dict(self) -> dict[str, Any]:
        """Return the Vega-Lite specification, for any other tool that draws it."""
        specification: dict[str, Any] = json.loads(self.specification)
        return specification

    def to_altair(self) -> Any:  # a chart of Altair, which has no types that mypy sees
        """Return the chart as an Altair chart, to change it further."""
        try:
            import altair as alt
        except ImportError:
            raise _missing() from None
        return alt.Chart.from_dict(self.to_dict())

    def to_svg(self, *, owner: str = "") -> str:
        """Return the chart as SVG, safe to put on a page beside others.

        Args:
            owner: what the ids in the picture begin with; a page that shows the same chart twice gives each its own.
        """
        # No address is allowed: a specification from elsewhere must not make the renderer fetch anything.
        svg = _draw(lambda draw: draw.vegalite_to_svg(self.specification, allowed_base_urls=[]))
        return _with_own_ids(svg, owner=owner or f"c{sha256(self.specification.encode()).hexdigest()[:12]}")

    def to_table(self) -> tuple[tuple[str, ...], tuple[tuple[object, ...], ...]]:
        """Return the headings and rows of the numbers that are drawn, for somebody who does not see the picture.

        >>> from cloister.plotting import bars_with_errors
        >>> bars_with_errors(["north", "south"], [120, 95], [12, 12], title="Visits", x="Region", y="Visits").to_table()
        (('Region', 'Visits'), (('north', '120 ± 12'), ('south', '95 ± 12')))
        """
        return table_of(self.to_dict())

    def to_png(self) -> bytes:
        """Return the chart as PNG, at twice its size in pixels so that it stays sharp."""
        image: bytes = _draw(lambda draw: draw.vegalite_to_png(self.specification, scale=2, allowed_base_urls=[]))
        return image

    def to_html(self) -> str:
        """Return a page with the chart in it: no scripts, and nothing to load from elsewhere."""
        return _PAGE.format(title=html.escape(self.title), svg=self.to_svg())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the chart to a file, replacing what was there, and return where it is.

        Args:
            path: where to write; the name ends in .svg, .png, .html or .json (the specification).

        Raises:
            ParameterError: if the ending is another one, or the place cannot be written to.
            MissingExtraError: if the extra ``plot`` is not installed; .json does without.
        """
        place = Path(path)
        content = _WRITERS[_ending(place)](self)
        try:
            place.write_bytes(content)
        except OSError as error:
            raise ParameterError(
                f'The chart could not be written to "{place}": {error.strerror}.',
                fix=f'choose a file that you may write, such as "chart{place.suffix}".',
            ) from None
        return place

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002
        """Return what a notebook shows: the picture, or how to get it."""
        try:
            return {"image/svg+xml": self.to_svg(), "text/plain": repr(self)}
        except MissingExtraError as error:
            return {"text/plain": f"{self!r}\n{error}"}


_WRITERS: dict[str, Callable[[Figure], bytes]] = {
    ".svg": lambda figure: figure.to_svg().encode(),
    ".png": Figure.to_png,
    ".html": lambda figure: figure.to_html().encode(),
    ".json": lambda figure: figure.specification.encode(),
}


def _ending(place: Path) -> str:
    ending = place.suffix.lower()
    if ending not in _WRITERS:
        raise ParameterError(
            f'A chart cannot be saved as "{place.name}".{did_you_mean(ending, _WRITERS)}',
            fix=f'use a name that ends in {", ".join(_WRITERS)}, such as "chart.svg".',
        )
    if not place.parent.is_dir():
        raise ParameterError(
            f'There is no folder "{place.parent}".', fix="make the folder first, or save the chart somewhere else."
        )
    return ending


def _draw(draw: Callable[[Any], Any]) -> Any:  # vl-convert has no types
    try:
        import vl_convert
    except ImportError:
        raise _missing() from None
    try:
        return draw(vl_convert)
    except ValueError:
        raise ParameterError(
            "The chart could not be drawn: its specification is not valid, or asks for data from elsewhere.",
            fix="use the chart functions of cloister.plotting, or put the data into the specification.",
        ) from None


def _missing() -> MissingExtraError:
    return MissingExtraError(what="Plots", package="altair", extra="plot")


def _with_own_ids(svg: str, *, owner: str) -> str:
    """Return the picture with ids of its own, the same each time: plain ones are numbered anew in every process."""
    found = dict.fromkeys(re.findall(r'<[^<>]* id="(\w+)"', svg))
    own = {name: f"{owner}-{position}" for position, name in enumerate(found)}
    # References change together with the ids that they point to.
    return re.sub(r'(\bid="|\burl\(#)(\w+)', lambda match: match[1] + own.get(match[2], match[2]), svg)
