from __future__ import annotations

import ast
import importlib.metadata
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import cloister

PACKAGE = Path(cloister.__file__).parent


@pytest.mark.parametrize("name", cloister.__all__)
def test_every_public_name_loads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name != "__version__":
        monkeypatch.delattr(cloister, name, raising=False)
    assert getattr(cloister, name) is not None
    assert name in dir(cloister)


def test_a_wrong_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'PureDp'"):
        cloister.PureDp  # noqa: B018


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text("utf-8"))
    imported = {alias.asname for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert set(cloister._WHERE) <= imported


def test_the_version_is_one() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", cloister.__version__)
    assert importlib.metadata.version("cloister") == cloister.__version__
    assert f"version: {cloister.__version__}\n" in (PACKAGE.parents[1] / "CITATION.cff").read_text("utf-8")


def test_the_package_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_import_loads_no_other_package() -> None:
    code = (
        "import sys; import cloister;"
        "print(sorted({'numpy', 'scipy', 'pyarrow', 'duckdb', 'click', 'rich', 'yaml', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_package_is_a_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["cloister", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("cloister", run_name="__main__")
    assert ended.value.code == 0
    assert cloister.__version__ in capsys.readouterr().out
