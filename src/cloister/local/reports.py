"""Reports: what leaves a device, in memory, as JSON and as bytes.

JSON is one object for each report, with the protocol that it was made for. The binary form holds many reports of one
protocol: a header with the protocol's fingerprint and the number of rows, then the rows. Readers refuse everything that
is not in the protocol's output space, and never repeat what a report says.

Devices may send one or many reports, as text, dictionaries or objects; `items_of` takes them apart.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from cloister.core.guarantees import Caveat
from cloister.errors import ForeignReportError, MalformedReportError, ParameterTypeError, SourceNotFoundError
from cloister.local._output_space import Payload, more_than_a_report, report_error, which_report

if TYPE_CHECKING:
    from cloister.local.protocol import Protocol

__all__ = ["MOST_BYTES", "LocalReport", "Reports", "items_of", "read_reports"]


SCHEMA = "cloister.report/1"
MOST_BYTES = 2**20
"""The longest JSON of one person's several reports that is read."""
_BESIDE = frozenset({"y", "survey", "question", "level"})
_MAGIC = b"CLDP"
_FORMAT = 1
_HEADER = struct.Struct("<4sB32sQ")


@dataclass(frozen=True, eq=False, repr=False)
class Reports:
    """Reports of one protocol, a compact row for each.

    Attributes:
        protocol: what they were made with.
        payload: the rows, as `Protocol.output_space` describes them.
        caveats: what breaks their promise, such as predictable randomness.
    """

    protocol: Protocol
    payload: Payload
    caveats: tuple[Caveat, ...] = ()

    def __len__(self) -> int:
        return len(self.payload)

    @overload
    def __getitem__(self, place: int) -> LocalReport: ...
    @overload
    def __getitem__(self, place: slice) -> Reports: ...
    def __getitem__(self, place: int | slice) -> LocalReport | Reports:
        if isinstance(place, slice):
            return replace(self, payload=self.payload[place])
        return LocalReport(self.protocol, self.payload[[place]], self.caveats)

    def __iter__(self) -> Iterator[LocalReport]:
        return (self[place] for place in range(len(self)))

    def __add__(self, other: Reports) -> Reports:
        if other.protocol != self.protocol:
            raise foreign()
        # A broken promise of some is a broken promise of the sum.
        caveats = tuple(dict.fromkeys(self.caveats + other.caveats))
        return replace(self, payload=np.concatenate([self.payload, other.payload]), caveats=caveats)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} of {self.protocol!r}, {self.payload.nbytes} bytes)"

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each report as JSON-ready values."""
        head = header(self.protocol)
        return [{**head, "y": y} for y in self.protocol.output_space.shown(self.payload)]

    def to_json_lines(self) -> str:
        """Return one line of JSON for each report."""
        return json_lines(self.to_dicts())

    def to_bytes(self) -> bytes:
        """Return all reports in the binary form."""
        fingerprint = bytes.fromhex(self.protocol.fingerprint)
        return _HEADER.pack(_MAGIC, _FORMAT, fingerprint, len(self)) + self.payload.tobytes()


@dataclass(frozen=True, eq=False, repr=False)
class LocalReport(Reports):
    """One report."""

    def __iter__(self) -> Iterator[LocalReport]:
        return iter((self,))

    @property
    def y(self) -> Any:
        """Return what the report says, as a JSON value."""
        return self.protocol.output_space.show(self.payload[0])

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready values."""
        return self.to_dicts()[0]

    def to_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)


def json_lines(reports: Iterable[Mapping[str, Any]]) -> str:
    """Return one line of JSON for each report."""
    return "".join(json.dumps(report, ensure_ascii=False) + "\n" for report in reports)


def header(protocol: Protocol) -> dict[str, Any]:
    """Return what every JSON report of a protocol begins with."""
    record = protocol.to_dict()
    # These decide what a report means: one that differs in any of them would be read by a wrong law.
    named = ("version", "epsilon", "domain_hash", "fingerprint")
    return {"schema": SCHEMA, "protocol": record["name"]} | {key: record[key] for key in named if key in record}


def read_reports(protocol: Protocol, source: Any) -> Reports:  # whatever holds reports
    """Return reports in any form as reports of a protocol, each one checked against its output space.

    Args:
        protocol: what they must have been made with.
        source: `Reports`, bytes, or one or many of `LocalReport`, JSON text and JSON-ready dictionaries; also the path
            of a file, or an open file, with what `Reports.to_bytes` or `Reports.to_json_lines` gave.

    Raises:
        ForeignReportError: if one is of another protocol, version, domain or epsilon.
        MalformedReportError: if one is truncated, oversized or outside of the output space.
    """
    if isinstance(source, Reports):
        return _check_reports(protocol, source)
    if isinstance(source, Path) or hasattr(source, "read"):
        source = _file_content(source)
    if isinstance(source, bytes | bytearray | memoryview):
        return Reports(protocol, _from_bytes(protocol, bytes(source)))
    if isinstance(source, str):
        source = [line for line in source.split("\n") if line.strip()]
    if isinstance(source, Mapping):
        source = [source]
    if not isinstance(source, Iterable):
        raise ParameterTypeError("These are not reports.", fix="give what randomize returned, or its JSON or bytes.")
    items = list(source)
    if items and all(isinstance(item, Reports) for item in items):
        return _join_reports(protocol, items)
    if any(isinstance(item, Reports) for item in items):
        return _join_reports(protocol, [read_reports(protocol, item) for item in items])
    # How long a report may be follows from the output space, so that no text is parsed that cannot be one.
    head, longest = header(protocol), protocol.output_space.longest
    places = [None] if len(items) == 1 else range(len(items))
    contents = [_content(head, item, place, longest) for place, item in zip(places, items, strict=True)]
    return Reports(protocol, protocol.output_space.parse(contents))


def foreign() -> ForeignReportError:
    """Return the error for a report of something else."""
    return ForeignReportError(
        "A report was made with another protocol, version, domain or epsilon.",
        fix="estimate each protocol's reports by themselves, with the very protocol that the devices used.",
    )


def _check_reports(protocol: Protocol, reports: Reports) -> Reports:
    if reports.protocol != protocol:
        raise foreign()
    # The payload is checked although it comes from an object: anybody can make one by hand.
    protocol.output_space.check(reports.payload)
    return reports


def _join_reports(protocol: Protocol, items: list[Reports]) -> Reports:
    caveats = tuple(dict.fromkeys(caveat for item in items for caveat in item.caveats))
    rows = np.concatenate([_check_reports(protocol, item).payload for item in items])
    return Reports(protocol, rows, caveats)


def _file_content(file: Any) -> bytes | str:  # a path or an open file
    try:
        content: bytes | str = file.read_bytes() if isinstance(file, Path) else file.read()
        return content if isinstance(content, str) or content.startswith(_MAGIC) else content.decode()
    except UnicodeDecodeError:
        raise report_error() from None
    except OSError as error:
        raise SourceNotFoundError(
            f"The file of reports cannot be read: {error.strerror}.", fix="check the path and who may read it."
        ) from None


def _content(head: Mapping[str, Any], item: object, place: int | None, longest: int) -> object:
    if isinstance(item, str):
        item = _parse_json(item, place, longest)
    if not isinstance(item, Mapping) or "y" not in item:
        raise report_error(place)
    # Types are compared too, since 1, 1.0 and True are equal and only one of them is what the client writes.
    if any((type(item.get(key)), item.get(key)) != (type(value), value) for key, value in head.items()):
        raise foreign()
    # Whatever stands beside a report was not protected: it is refused, so that nobody collects it by mistake.
    if item.keys() - head.keys() - _BESIDE:
        raise more_than_a_report(place)
    return item["y"]


def _parse_json(text: str, place: int | None, longest: int) -> object:
    if len(text) > longest:
        raise report_error(place)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise MalformedReportError(
            f"{which_report(place)} is not JSON.", fix="send reports as the client writes them."
        ) from None


def _from_bytes(protocol: Protocol, data: bytes) -> Payload:
    if len(data) < _HEADER.size or data[:4] != _MAGIC:
        raise report_error()
    _, format_, fingerprint, count = _HEADER.unpack_from(data)
    if format_ != _FORMAT or fingerprint.hex() != protocol.fingerprint:
        raise foreign()
    dtype = protocol.output_space.dtype
    # The size is compared before any row is read, so that a wrong count cannot cut or invent rows.
    if len(data) - _HEADER.size != count * dtype.itemsize:
        raise report_error()
    return protocol.output_space.check(np.frombuffer(data, dtype, offset=_HEADER.size))


def items_of(source: Any) -> list[Any]:  # whatever holds reports; their JSON values, or objects as they were given
    """Return reports one by one, with JSON text read.

    Raises:
        MalformedReportError: if text is too long or not JSON; it is not shown.
        ParameterTypeError: if these are no reports at all.
    """
    if isinstance(source, str):
        source = [line for line in source.split("\n") if line.strip()]
    if isinstance(source, Mapping):
        source = [source]
    if not isinstance(source, Iterable) or isinstance(source, bytes | bytearray | memoryview):
        raise ParameterTypeError("These are not reports.", fix="give what randomize returned, or its JSON.")
    return [_read(item) if isinstance(item, str) else item for item in source]


def _read(text: str) -> Any:  # any JSON value
    if len(text) > MOST_BYTES:
        raise report_error()
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise MalformedReportError("A report is not JSON.", fix="send reports as the client writes them.") from None
