from __future__ import annotations

from pathlib import Path

import pytest

from cloister.data.hierarchy import Hierarchy
from cloister.errors import DataError, DataWarning, HierarchyError, SchemaError, SourceNotFoundError


def test_a_file_is_read_and_written_back(tmp_path: Path) -> None:
    path = tmp_path / "sex.csv"
    path.write_text("\ufeffMale;*\r\nFemale;*\r\n\r\n", encoding="utf-8")
    hierarchy = Hierarchy.read_csv(path)
    assert hierarchy.levels == (("Male", "Female"), ("*",))
    hierarchy.write_csv(tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text("utf-8") == "Male;*\nFemale;*\n"


def test_cells_that_hold_semicolons_are_quoted() -> None:
    hierarchy = Hierarchy.from_levels([['a;"b"', "x\ny", "*"]])
    assert hierarchy.to_csv_text() == '"a;""b""";"x\ny";*\n'
    assert Hierarchy.parse(hierarchy.to_csv_text()) == hierarchy


def test_empty_cells_at_the_end_are_passed_over() -> None:
    assert Hierarchy.parse("a;x;*\nb;*;\n").rows() == [("a", "x", "*"), ("b", "b", "*")]


def test_an_empty_text_may_be_a_value() -> None:
    assert Hierarchy.parse(";*\na;*\n").leaves == ("", "a")


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", "is empty"), ("\n\n", "is empty"), ("a;;*\n", "Row 1"), ('"a;b', "not semicolon-separated")],
)
def test_bad_text_is_refused(text: str, problem: str) -> None:
    with pytest.raises(HierarchyError, match=r"fill the cell in|one row per value") as caught:
        Hierarchy.parse(text)
    assert problem in caught.value.problem


def test_a_missing_or_unreadable_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="check the path"):
        Hierarchy.read_csv(tmp_path / "none.csv")
    with pytest.raises(SchemaError, match="readable file"):
        Hierarchy.read_csv(tmp_path)
    (tmp_path / "latin.csv").write_bytes("Z\xfcrich;*\n".encode("latin-1"))
    with pytest.raises(SchemaError, match="save it as UTF-8"):
        Hierarchy.read_csv(tmp_path / "latin.csv")


def test_nothing_is_overwritten_unless_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("keep")
    path.chmod(0o640)
    with pytest.raises(DataError, match="overwrite=True"):
        Hierarchy.masking(1).write_csv(path)
    assert path.read_text() == "keep"
    Hierarchy.from_levels([["a"]]).write_csv(path, overwrite=True)
    assert path.read_text() == "a;*\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.csv"]


def test_a_folder_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="may write to"):
        Hierarchy.masking(1).write_csv(tmp_path / "none" / "a.csv")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="may write to"):
        Hierarchy.masking(1).write_csv(tmp_path / "folder", overwrite=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_a_renamed_interval_may_not_hide_a_broken_tree() -> None:
    with pytest.raises(HierarchyError, match="use different names"):
        Hierarchy.parse("1;5-9;*\n2;1-3;*\n3;5-9;*\n")


def test_values_that_are_no_numbers_do_not_disturb_intervals() -> None:
    with pytest.warns(DataWarning):
        hierarchy = Hierarchy.parse("4;0-3;*\n?;0-3;*\n1;0-3;*\n")
    assert hierarchy.levels[1] == ("1-4",)


def test_commas_instead_of_semicolons_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "age.csv"
    path.write_text("39,30-39,*\n40,40-49,*\n", encoding="utf-8")
    with pytest.raises(HierarchyError, match="has commas") as caught:
        Hierarchy.read_csv(path)
    assert '"39;30-39;*"' in caught.value.fix
    assert Hierarchy.parse("a, b;c\nd, e;c\n").leaves == ("a, b", "d, e")
