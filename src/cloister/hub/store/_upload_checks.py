"""What an upload may be: how large when it is unpacked, how wide, how its columns are called."""

from __future__ import annotations

import codecs
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa
from pyarrow import parquet

from cloister.crypto.sealed_data import SealedReader
from cloister.data.engines.csv_input import ENCODINGS, InputFile, explain_failure
from cloister.errors import DataError, ParameterError

__all__ = [
    "UploadLimits",
    "check_columns",
    "check_parquet",
    "check_size",
    "check_text",
    "is_plain",
    "limit_batches",
    "plain_text",
]

_PIECE = 2**20
_GZIP = b"\x1f\x8b"
_MAGIC = b"PAR1"
_LARGEST_FOOTER = 2**24
_LONGEST_NAME = 256
_TOO_LARGE = "The upload is far larger when it is unpacked than what is taken."


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadLimits:
    """How much one table may hold; the numbers are those of the unpacked table.

    Attributes:
        rows: the most rows.
        columns: the most columns.
        decoded_bytes: the most bytes of all cells, or of an unpacked text.
        cell_bytes: the most bytes of one cell.
        growth: how many times its size a packed text may have when it is unpacked.
        always_unpacked: so many bytes are unpacked whatever the growth.
        memory: how much memory one query may use, as DuckDB spells it.
    """

    rows: int = 100_000_000
    columns: int = 2_000
    decoded_bytes: int = 8 * 2**30
    cell_bytes: int = 2 * 2**20
    growth: int = 250
    always_unpacked: int = 64 * 2**20
    memory: str = "4GiB"


def check_columns(names: Sequence[str], limits: UploadLimits) -> None:
    """Refuse columns that are too many, or that have no name, a repeated or an endless one; no name is quoted.

    Raises:
        DataError: with the positions of the columns.
    """
    if len(names) > limits.columns:
        raise DataError(
            f"The upload has {len(names):,} columns; at most {limits.columns:,} are taken.",
            fix="leave columns out; put repeated measurements into rows.",
        )
    if not names:
        raise DataError("The upload has no columns.", fix="send a table with at least one column.")
    counts = Counter(names)
    for position, name in enumerate(names, 1):
        if not name.strip():
            raise DataError(f"Column {position} of the upload has no name.", fix="give every column a name.")
        if counts[name] > 1:
            raise DataError(
                f"Column {position} of the upload has the same name as another.", fix="give every column its own name."
            )
        if len(name) > _LONGEST_NAME:
            raise DataError(
                f"The name of column {position} of the upload is longer than {_LONGEST_NAME} characters.",
                fix="shorten it; if the first line holds values, put a line with the names of the columns above it.",
            )


def check_text(reader: SealedReader) -> None:
    """Refuse what is certainly not a CSV file.

    Raises:
        DataError: with what it is.
    """
    if reader.size == 0:
        raise DataError("The upload is empty.", fix="send a file with a header line and rows below it.")
    if reader.read_at(0, len(_MAGIC)) == _MAGIC:
        raise DataError("The upload is a Parquet file, not CSV text.", fix="choose Parquet as its format.")


def check_parquet(reader: SealedReader, limits: UploadLimits) -> list[str]:
    """Return the names of the columns; refuse what is no Parquet file or says of itself that it is too large.

    Raises:
        DataError: with what is wrong.
    """
    head, tail = reader.read_at(0, len(_MAGIC)), reader.read_at(max(reader.size - 8, 0), 8)
    if head != _MAGIC:
        kind = "a gzip file" if head.startswith(_GZIP) else "something else"
        raise DataError(
            f"The upload is not a Parquet file but {kind}.", fix="choose its format, or save it as Parquet."
        )
    if reader.size < 12 or tail[4:] != _MAGIC:
        raise _damage_error()
    # The footer's length is looked at before a parser is asked to believe it.
    if int.from_bytes(tail[:4], "little") > min(_LARGEST_FOOTER, reader.size - 12):
        raise _damage_error()
    metadata, names = _footer(reader)
    # This is what the file says of itself; what it really unpacks to is counted once more on the way.
    unpacked = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    check_columns(names, limits)
    check_size(metadata.num_rows, unpacked, limits)
    return names


def check_size(rows: int, size: int, limits: UploadLimits) -> None:
    """Refuse more rows or bytes than are taken.

    Raises:
        DataError: without the numbers of the upload.
    """
    if rows > limits.rows:
        raise DataError(
            f"The upload has more than the {limits.rows:,} rows that are taken.",
            fix="send fewer rows, or several tables.",
        )
    if size > limits.decoded_bytes:
        raise DataError(
            _TOO_LARGE, fix=f"send a table of at most {limits.decoded_bytes / 2**30:.3g} GiB in all its cells."
        )


def limit_batches(batches: Iterable[pa.RecordBatch], limits: UploadLimits) -> Iterator[pa.RecordBatch]:
    """Give batches on while they are within the limits."""
    rows = size = 0
    for batch in batches:
        rows, size = rows + batch.num_rows, size + batch.nbytes
        check_size(rows, size, limits)
        yield batch


def plain_text(
    stream: IO[bytes], file: InputFile, encoding: str, limits: UploadLimits, *, packed_bytes: int
) -> Iterator[bytes]:
    """Give a text on as UTF-8, unpacked if it is gzip, while it is within the limits.

    Args:
        stream: the bytes.
        file: where they come from, for errors.
        encoding: of the text.
        limits: how much it may be.
        packed_bytes: how many bytes were sent.

    Raises:
        DataError: if it is not a whole gzip file, not of that encoding, or too large.
    """
    if encoding not in ENCODINGS:
        raise ParameterError(
            "This encoding is not supported.", fix=f"use one of {', '.join(ENCODINGS)}, or save the file as UTF-8."
        )
    # A small file may grow many times over and still be small; only beyond that the ratio counts.
    size, most = 0, max(limits.always_unpacked, limits.growth * packed_bytes)
    decoder = codecs.getincrementaldecoder(ENCODINGS[encoding])()
    pieces = _unpack(stream, file)
    for piece in pieces:
        size += len(piece)
        check_size(0, size, limits)
        if size > most:
            raise _too_packed()
        yield piece if encoding == "utf-8" else _decode(decoder, piece, file, encoding)
    if encoding != "utf-8":
        yield _decode(decoder, b"", file, encoding, final=True)


def is_plain(reader: SealedReader, encoding: str) -> bool:
    """Return whether a text can be read as it is: UTF-8 and not packed."""
    return encoding == "utf-8" and reader.read_at(0, len(_GZIP)) != _GZIP


def _decode(
    decoder: codecs.IncrementalDecoder, piece: bytes, file: InputFile, encoding: str, *, final: bool = False
) -> bytes:
    try:
        return decoder.decode(piece, final).encode()
    except UnicodeError:
        raise explain_failure([file], "unicode", encoding) from None


def _unpack(stream: IO[bytes], file: InputFile) -> Iterator[bytes]:
    """Give pieces of bounded size, of one or several gzip members or of the stream itself."""
    piece = stream.read(_PIECE)
    if not piece.startswith(_GZIP):
        while piece:
            yield piece
            piece = stream.read(_PIECE)
        return
    unpacker = _new_unpacker()
    try:
        while piece:
            # Unpacked in bounded pieces, since a few bytes may hold gigabytes of zeros.
            yield unpacker.decompress(piece, _PIECE)
            piece = unpacker.unconsumed_tail
            if unpacker.eof:
                piece = unpacker.unused_data or stream.read(_PIECE)
                unpacker = _new_unpacker() if piece else unpacker
            piece = piece or stream.read(_PIECE)
    except zlib.error:
        raise explain_failure([file], "gzip", "utf-8") from None
    if not unpacker.eof:
        raise explain_failure([file], "gzip", "utf-8")


def _new_unpacker() -> Any:  # zlib has no public name for its type
    return zlib.decompressobj(wbits=31)


def _footer(reader: SealedReader) -> tuple[Any, list[str]]:  # a pyarrow.parquet.FileMetaData, and column names
    try:
        metadata = parquet.read_metadata(reader)
        return metadata, list(metadata.schema.to_arrow_schema().names)
    except (pa.ArrowException, OSError, ValueError):
        raise _damage_error() from None


def _too_packed() -> DataError:
    return DataError(_TOO_LARGE, fix="send it as it is, without gzip, or as Parquet.")


def _damage_error() -> DataError:
    return DataError(
        "The upload is not a complete Parquet file.", fix="check that it was copied completely, and send it again."
    )
