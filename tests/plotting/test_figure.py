from __future__ import annotations

import builtins
import html.parser
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from cloister.errors import MissingExtraError, ParameterError, ParameterTypeError
from cloister.plotting import Figure, bars_with_errors, heatmap

BARS = bars_with_errors(["north", "south"], [120, 95], [12, 12], title="Visits", x="Region", y="Count")


def _without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    real = builtins.__import__

    def fake(name: str, *rest: Any, **more: Any) -> Any:
        if name in packages:
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", fake)


def test_import_loads_no_chart_package() -> None:
    code = (
        "import sys; import cloister.plotting as p;"
        "f = p.bars_with_errors(['a'], [1], title='t', x='x', y='y'); f.to_dict();"
        "print(sorted({'altair', 'vl_convert', 'pandas', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_figure_is_a_value() -> None:
    same = bars_with_errors(["north", "south"], [120, 95], [12, 12], title="Visits", x="Region", y="Count")
    assert same == BARS
    assert hash(BARS) == hash(same)
    BARS.to_dict()["title"] = "changed"
    assert BARS.title == "Visits"
    assert repr(BARS) == "Figure('Visits')"


def test_the_dictionary_is_plain_vega_lite() -> None:
    spec = BARS.to_dict()
    assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    assert "schema" not in spec
    assert Figure.from_dict(spec) == BARS


@pytest.mark.parametrize(
    ("title", "expected"), [({}, ""), ({"title": "a"}, "a"), ({"title": ["a", "b"]}, "a b"), ({"title": {}}, "")]
)
def test_titles_of_specifications_from_elsewhere(title: dict[str, Any], expected: str) -> None:
    assert Figure.from_dict(title).title == expected


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}])
def test_a_specification_that_is_not_json_is_refused(value: object) -> None:
    with pytest.raises(ParameterTypeError, match="Fix: give Vega-Lite made of"):
        Figure.from_dict({"width": value})


def test_every_kind_of_file(tmp_path: Path) -> None:
    for name in ("a.svg", "a.PNG", "a.html", "a.json"):
        assert BARS.save(tmp_path / name) == tmp_path / name
        BARS.save(str(tmp_path / name))  # replaces it
    assert ET.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")
    assert (tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == BARS.to_dict()
    page = (tmp_path / "a.html").read_text("utf-8")
    assert "<title>Visits</title>" in page
    assert "<svg" in page


def test_an_unknown_ending_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r'Did you mean "\.svg"\?(.|\n)*Fix: use a name that ends in \.svg, \.png'):
        BARS.save(tmp_path / "chart.svgz")
    with pytest.raises(ParameterError, match="Fix: use a name"):
        BARS.save("chart")


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="Fix: make the folder first"):
        BARS.save(tmp_path / "none" / "chart.svg")


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "chart.json").mkdir()
    with pytest.raises(ParameterError, match="Fix: choose a file that you may write"):
        BARS.save(tmp_path / "chart.json")


def test_labels_cannot_smuggle_markup_into_a_page() -> None:
    nasty = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    figure = bars_with_errors([nasty], [1], title=nasty, x=nasty, y=nasty, subtitle=nasty)
    tags: set[str] = set()
    reader = html.parser.HTMLParser()
    reader.handle_starttag = lambda tag, attrs: tags.add(tag)  # type: ignore[method-assign]
    reader.feed(figure.to_html())
    assert not tags & {"script", "img"}
    assert "svg" in tags


def test_two_pictures_on_a_page_do_not_share_names() -> None:
    def grid(value: int) -> str:
        return heatmap(["a"], ["b"], [[value]], title="t", x="x", y="y").to_svg()

    first, second = (set(re.findall(r'\bid="([^"]+)"', grid(value))) for value in (3, 4))
    assert first
    assert not first & second
    assert set(re.findall(r"url\(#([^)]+)\)", grid(3))) <= first
    assert grid(3) == grid(3)


def _fetching(url: str) -> Figure:
    encoding = {"x": {"field": "name", "type": "nominal"}}
    return Figure.from_dict({"data": {"url": url, "format": {"type": "csv"}}, "mark": "bar", "encoding": encoding})


def test_nothing_is_loaded_from_the_network() -> None:
    with pytest.raises(ParameterError, match="put the data into the specification"):
        _fetching("https://example.org/a.csv").to_svg()


def test_nothing_is_loaded_from_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name\nsecret\n", "utf-8")
    assert "secret" not in _fetching((tmp_path / "a.csv").as_uri()).to_svg()


def test_nonsense_is_refused() -> None:
    with pytest.raises(ParameterError, match="Fix: use the chart functions"):
        Figure.from_dict({"mark": 3}).to_png()


def test_a_notebook_shows_the_picture() -> None:
    shown = BARS._repr_mimebundle_()
    assert shown["image/svg+xml"] == BARS.to_svg()
    assert shown["text/plain"] == "Figure('Visits')"


def test_altair_takes_the_chart_over() -> None:
    chart = BARS.to_altair()
    assert chart.properties(width=300).to_dict()["width"] == 300


def test_without_the_extra_the_fix_is_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _without(monkeypatch, "altair", "vl_convert")
    for attempt in (BARS.to_svg, BARS.to_png, BARS.to_html, BARS.to_altair, lambda: BARS.save(tmp_path / "a.svg")):
        with pytest.raises(MissingExtraError, match=r'Plots need altair\.\n\nFix: pip install "cloister\[plot\]"'):
            attempt()
    assert "cloister[plot]" in BARS._repr_mimebundle_()["text/plain"]
    assert BARS.save(tmp_path / "a.json").exists()
    assert not (tmp_path / "a.svg").exists()
