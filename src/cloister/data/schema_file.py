"""The schema file: plain values in and out, and YAML that means what it says.

Only plain data is loaded, never objects. Values are read by the rules of YAML 1.2, which have no surprises: ``yes``,
``no``, ``on`` and ``off`` are texts, only ``true`` and ``false`` are truth values; ``01`` is a text, so a code keeps
its zero; dates are texts until a datetime column's bounds need them. A key that is there twice is an error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from cloister.core.atomic_files import write_text
from cloister.core.exact import to_plain_number
from cloister.data.columns import Bounds, Column, Kind, Missing, Role, clean_moment
from cloister.data.hierarchy import Hierarchy
from cloister.data.text_files import read_text
from cloister.errors import CloisterError, SchemaError, did_you_mean

VERSION = "cloister.schema/1"
_TOP_KEYS = ("schema", "columns")
_KEYS = (
    "role",
    "kind",
    "storage",
    "bounds",
    "categories",
    "hierarchy",
    "weight",
    "missing",
    "subject",
    "guessed",
    "evidence",
)
_COLUMNS_LINE = re.compile(r"^[\"']?columns[\"']?[ ]*:[ ]*(\{.*|#.*)?$", re.MULTILINE)
_RARE_BREAKS = re.compile("[\x85\u2028\u2029\ufeff]")
_EXAMPLE = "write for example\n  columns:\n    age: {role: quasi, kind: numeric, bounds: [0, 110]}"
_INSIDE_FIX = "write the hierarchy inside the schema, as Schema.to_dict does."
_HEADER = "# What is stated about each column. Roles: identifier, quasi, sensitive, insensitive.\n"
_GUESS_HEADER = (
    "# Facts listed under guessed were read from the data. Until they are replaced or confirmed, this file shows\n"
    "# values of the data: keep it as private as the data. Replace them by what is known without looking, then\n"
    "# delete the guessed and evidence lines.\n"
)


def read_columns(path: str | Path) -> list[Column]:
    """Return the columns of a schema file."""
    text = read_text(path, what="schema")
    try:
        data = load_yaml(text)
        return columns_from_dict(data, folder=Path(path).parent)
    except SchemaError as error:
        raise _locate_error(error, path) from None


def looks_like_schema(path: Path) -> bool:
    """Return whether a file is empty or a schema, perhaps a broken one."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return False
    return not text.strip() or _COLUMNS_LINE.search(text) is not None


def write_columns(path: str | Path, columns: Sequence[Column], *, overwrite: bool) -> None:
    """Write columns to a schema file; a hierarchy that was read from a file is named, others are put inside."""
    folder = Path(path).parent
    data = {
        "schema": VERSION,
        "columns": {column.name: _column_to_dict(column, hierarchy=_reference(folder)) for column in columns},
    }
    header = _HEADER + (_GUESS_HEADER if any(column.guessed for column in columns) else "")
    write_text(path, header + dump_yaml(data), overwrite=overwrite)


def columns_from_dict(data: Any, *, folder: Path | None) -> list[Column]:
    """Return columns from plain values."""
    if not isinstance(data, Mapping) or not data:
        raise SchemaError("The schema is empty or not a mapping.", fix=f"{_EXAMPLE}.")
    check_keys(data, _TOP_KEYS, where="The schema")
    if data.get("schema", VERSION) != VERSION:
        raise SchemaError(
            f'The schema has the version marker "{data["schema"]}", which this cloister does not read.',
            fix=f"update cloister, or write schema: {VERSION}.",
        )
    columns = data.get("columns")
    if not isinstance(columns, Mapping) or not columns:
        raise SchemaError("The schema has no columns.", fix=f"{_EXAMPLE}.")
    return [_column_from_dict(name, facts, folder) for name, facts in columns.items()]


def columns_to_dict(columns: Iterable[Column]) -> dict[str, Any]:
    """Return columns as JSON-ready values."""
    return {
        "schema": VERSION,
        "columns": {column.name: _column_to_dict(column, hierarchy=_inside) for column in columns},
    }


def load_yaml(text: str, *, what: str = "schema", example: str = _EXAMPLE) -> Any:
    """Return the plain values of a YAML text; errors say what it was to be, with an example."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506  # a subclass of SafeLoader
    except _RepeatedKeyError as error:
        raise SchemaError(
            f'"{error.key}" is there twice (line {error.line}).', fix=f'keep one "{error.key}", and delete the other.'
        ) from None
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f" (line {error.problem_mark.line + 1})"
        raise SchemaError(f"The {what} is not valid YAML{line}.", fix=f"mend the line; {example}.") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise SchemaError(f"The {what} is not valid YAML.", fix=f"{example}.") from None


def dump_yaml(data: Any) -> str:
    """Return plain values as YAML that `load_yaml` gives back equal."""
    return yaml.dump(
        data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100_000, encoding=None
    )


def _column_from_dict(name: object, facts: Any, folder: Path | None) -> Column:
    if facts is None:
        facts = {}
    if not isinstance(facts, Mapping):
        raise SchemaError(f'Column "{name}" is not a mapping of facts.', fix=f"{_EXAMPLE}.")
    check_keys(facts, _KEYS, where=f'Column "{name}"')
    given = {key: value for key, value in facts.items() if value is not None}
    hierarchy, source = read_hierarchy(given.pop("hierarchy", None), str(name), folder)
    given.setdefault("kind", _likely_kind(given))
    guessed = given.setdefault("guessed", [])
    if "role" not in given and isinstance(guessed, Sequence | Set) and not isinstance(guessed, str):
        given["guessed"] = [*guessed, "role"]
        given.setdefault("evidence", "no role was stated; quasi is the safe choice")
    if not isinstance(given.get("evidence", ""), str):
        raise SchemaError(f'Column "{name}": evidence is not a text.', fix="put it in quotes.")
    return Column(name=name, hierarchy=hierarchy, hierarchy_file=source, **given)  # type: ignore[arg-type]  # Column checks


def _column_to_dict(column: Column, *, hierarchy: Callable[[Column], str | None]) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "role": str(column.role),
        "kind": str(column.kind),
        "storage": None if column.storage is None else str(column.storage),
        "bounds": None if column.bounds is None else _plain_bounds(column.bounds),
        "categories": None if column.categories is None else list(column.categories),
        "hierarchy": hierarchy(column),
        "weight": None if column.weight == 1 else to_plain_number(column.weight),
        "missing": None if column.missing is Missing.OWN_VALUE else str(column.missing),
        "subject": column.subject or None,
        "guessed": sorted(column.guessed) or None,
        "evidence": column.evidence or None,
    }
    return {key: value for key, value in facts.items() if value is not None}


def _likely_kind(given: Mapping[str, Any]) -> Kind:
    if "bounds" in given:
        return Kind.DATETIME if _are_dates(given["bounds"]) else Kind.NUMERIC
    if given.get("role") == Role.IDENTIFIER and "categories" not in given:
        return Kind.TEXT
    return Kind.NOMINAL


def _are_dates(bounds: Any) -> bool:
    try:
        return all(isinstance(clean_moment(end), date) for end in bounds)
    except (CloisterError, TypeError):
        return False


def read_hierarchy(value: Any, name: str, folder: Path | None) -> tuple[Hierarchy | None, Path | None]:
    """Return the hierarchy, and its file if any: of a file name, an inside text, a taxonomy or a list of rows."""
    try:
        if value is None or isinstance(value, Hierarchy):
            return value, None
        if isinstance(value, str) and "\n" not in value:
            if folder is None:
                raise SchemaError("the hierarchy is in a file, and files are not opened here.", fix=_INSIDE_FIX)
            return Hierarchy.read_csv(folder / value), folder / value
        if isinstance(value, str):
            return Hierarchy.parse(value), None
        if isinstance(value, Sequence) and all(isinstance(row, list | tuple) for row in value):
            return Hierarchy.from_levels(value), None
        return Hierarchy.taxonomy(value), None
    except CloisterError as error:
        raise SchemaError(f'Column "{name}": {error.problem}', fix=error.fix) from None


def _inside(column: Column) -> str | None:
    return None if column.hierarchy is None else YamlBlock(column.hierarchy.to_csv_text())


def _reference(folder: Path) -> Callable[[Column], str | None]:
    def name(column: Column) -> str | None:
        source = column.hierarchy_file
        if source is None or column.hierarchy is None:
            return _inside(column)
        return os.path.relpath(source, folder)

    return name


def _plain_bounds(bounds: Bounds) -> list[Any]:
    return [end.isoformat() if isinstance(end, date) else to_plain_number(end) for end in bounds]


def check_keys(values: Mapping[Any, Any], known: Sequence[str], *, where: str, noun: str = "key") -> None:
    """Raise if a part of a file has a key that nobody would read."""
    for key in values:
        if key not in known:
            raise SchemaError(
                f'{where} has the unknown {noun} "{key}".{did_you_mean(str(key), known)}',
                fix=f"use {', '.join(known)}.",
            )


def _locate_error(error: SchemaError, path: str | Path) -> SchemaError:
    return SchemaError(f"{error.problem} (schema file {path})", fix=error.fix)


class _RepeatedKeyError(yaml.YAMLError):
    def __init__(self, key: str, line: int) -> None:
        super().__init__(key)
        self.key, self.line = key, line


class _Loader(yaml.SafeLoader):
    """Safe, with the scalars of YAML 1.2 and without repeated keys; a key is always the text that was written."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  # PyYAML's own way

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002  # PyYAML's signature
        result: dict[Hashable, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key is not a text", key.start_mark)
            if key.value in result:
                raise _RepeatedKeyError(key.value, key.start_mark.line + 1)
            result[key.value] = self.construct_object(value, deep=deep)
        return result


class _Dumper(yaml.SafeDumper):
    """Safe, without anchors, and with hierarchies as blocks of lines."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


class YamlBlock(str):
    """A text that is written as a block of lines."""

    __slots__ = ()


def _decimal(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Decimal:
    return Decimal(str(loader.construct_scalar(node)))


def _whole(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    return int(str(loader.construct_scalar(node)))


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if isinstance(value, YamlBlock) else None
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", str(value), style='"' if _RARE_BREAKS.search(value) else style
    )


_SCALARS = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"-?(?:0|[1-9][0-9]{0,40})", list("-0123456789")),
    ("float", r"-?(?:0|[1-9][0-9]*)\.[0-9]+(?:[eE][-+][0-9]{1,3})?", list("-0123456789")),
)
for _tag, _pattern, _first in _SCALARS:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), _first)
_Loader.add_constructor("tag:yaml.org,2002:float", _decimal)
_Loader.add_constructor("tag:yaml.org,2002:int", _whole)
_Dumper.add_representer(str, _text)
_Dumper.add_representer(YamlBlock, _text)
