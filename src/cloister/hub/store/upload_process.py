"""Uploads are read in a process of their own, with a limit of time and of memory.

Whoever sends a file decides what it costs to unpack and to read, and a reader of files may break. The process that
answers requests only waits for the other one, and ends it when it takes too long. That one has the key of the upload
and of what it writes, and none of the hub's: what it gives back is checked and wrapped by the hub. It writes into a
folder of its own, which is removed with whatever it left when it was ended.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from cloister import errors
from cloister.crypto.keys import MasterKey
from cloister.data.engines.duckdb import forbid_spilling
from cloister.data.schema import Schema
from cloister.data.schema_file import dump_yaml, load_yaml
from cloister.data.values import StorageType
from cloister.errors import CloisterError, DataError, TooManyRequestsError
from cloister.hub.store._upload_checks import UploadLimits
from cloister.hub.store.blobs import Blob, BlobStore
from cloister.hub.store.sealed_tables import TableLayout, ingest, layout_of, open_sealed_table

__all__ = ["ParsedUpload", "ParsingLimits", "parse_upload"]

AT_ONCE = 2
"""How many uploads are read at a time."""

WAITING_SECONDS = 60.0
"""How long an upload that has arrived waits for its turn."""

NICENESS = 5
"""How far reading steps back behind answering."""

_slots = threading.BoundedSemaphore(AT_ONCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsingLimits:
    """What reading one upload may cost: seconds, and bytes of memory."""

    seconds: float
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedUpload:
    """What was read: the sealed table, its columns, and its schema, which may hold guesses from the rows."""

    blob: Blob
    layout: TableLayout
    schema: Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """What the other process is told."""

    folder: str
    key: str
    upload: Blob
    format: Literal["csv", "parquet"]
    schema: str | None
    missing: tuple[str, ...]
    memory_bytes: int
    seconds: float


def parse_upload(
    store: BlobStore,
    upload: Blob,
    *,
    format: Literal["csv", "parquet"],  # noqa: A002  # the word for it
    schema: Schema | None,
    missing: Sequence[str],
    limits: ParsingLimits,
) -> ParsedUpload:
    """Read a sealed upload into a sealed table, elsewhere, and return it with its columns and its schema.

    Args:
        store: where the upload is and the table goes.
        upload: as it was sent.
        format: its format.
        schema: what is stated about its columns, or None, which lets it be guessed from the rows.
        missing: texts that stand for a missing value.
        limits: what reading may cost.

    Raises:
        DataError: if it cannot be read, or not within the limits.
        TooManyRequestsError: if too many others are read.
    """
    # A key for this passage alone: the other process never sees the hub's own.
    passing = MasterKey.generate()
    with _turn(), store.drafting() as drafts:
        store.lend(upload, drafts)
        task = _Task(
            folder=str(drafts.folder),
            key=passing.to_text(),
            upload=store.hand_over(upload, passing),
            format=format,
            schema=None if schema is None else dump_yaml(schema.to_dict()),
            missing=tuple(missing),
            memory_bytes=limits.memory_bytes,
            seconds=limits.seconds,
        )
        found = _answer(_work, task, limits.seconds)
        kept = BlobStore(drafts.folder, passing).hand_over(_blob(found["blob"]), store.master_key)
        store.adopt(kept, drafts)
    return ParsedUpload(
        blob=kept,
        layout=TableLayout(
            columns={name: StorageType(kind) for name, kind in found["columns"]}, sniffed=frozenset(found["sniffed"])
        ),
        schema=schema if schema is not None else Schema.from_dict(load_yaml(found["schema"]), folder=None),
    )


@contextmanager
def _turn() -> Iterator[None]:
    if not _slots.acquire(timeout=WAITING_SECONDS):
        raise TooManyRequestsError(
            "Many uploads are read at this moment.", fix="try again in some minutes.", wait_seconds=60
        )
    try:
        yield
    finally:
        _slots.release()


def _answer(work: Callable[[Any, Connection], None], task: Any, seconds: float) -> dict[str, Any]:
    """Run work in another process and return what it says; end it when the time is over."""
    context = _context()
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(task, theirs), name="cloister upload", daemon=True)
    process.start()
    # With this end open here, too, the death of the other process would not be heard as the end of the stream.
    theirs.close()
    try:
        if not ours.poll(seconds):
            raise _too_much("Reading the upload takes more time than the hub gives to one.")
        found: dict[str, Any] = json.loads(ours.recv_bytes())
    except EOFError:
        raise _too_much("Reading the upload broke off: it may take more memory than the hub gives to one.") from None
    finally:
        ours.close()
        process.kill()
        process.join()
        process.close()
    if "problem" in found:
        raise _error(found)
    return found


def _context() -> Any:  # a context of multiprocessing
    """Return how processes are started: where it can be, by a helper that has loaded what is needed, once for all."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "sqlglot.dialects.duckdb", "sqlglot.generators.duckdb"])
    return context


# In the other process ------------------------------------------------------------------------------------------------


def _work(task: _Task, answer: Connection) -> None:
    """Read the upload and say what was found, or what is wrong with it; anything else ends without a word."""
    _confine(task)
    forbid_spilling()
    try:
        found = _parse(task)
    except CloisterError as error:
        found = {"kind": type(error).__name__, "problem": error.problem, "fix": error.fix}
    except MemoryError:
        # Without memory nothing can be said; the pipe that closes says enough.
        return
    answer.send_bytes(json.dumps(found).encode())


def _parse(task: _Task) -> dict[str, Any]:
    store = BlobStore(task.folder, MasterKey.from_text(task.key))
    stated = None if task.schema is None else Schema.from_dict(load_yaml(task.schema), folder=None)
    # Half of the memory for the engine, as the other half is needed for what Python holds at the same time.
    limits = UploadLimits(memory=f"{task.memory_bytes // 2**21}MiB")
    kept = ingest(store, task.upload, format=task.format, schema=stated, missing=task.missing, limits=limits)
    schema = Schema.infer(open_sealed_table(store, kept, limits=limits)) if stated is None else None
    layout = layout_of(store, kept)
    return {
        "blob": asdict(kept) | {"wrapped_key": kept.wrapped_key.hex()},
        "columns": [(name, str(kind)) for name, kind in layout.columns.items()],
        "sniffed": sorted(layout.sniffed),
        "schema": None if schema is None else dump_yaml(schema.to_dict()),
    }


def _confine(task: _Task) -> None:
    """Take back what this process may cost: time of the processor, memory, files of its memory when it breaks."""
    if sys.platform == "win32":
        return
    import resource

    os.nice(NICENESS)
    # Time of the processor adds up over all cores, while the limit is about the clock on the wall.
    seconds = int(task.seconds * (os.cpu_count() or 1)) + 1
    for kind, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_DATA, task.memory_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))
    with contextlib.suppress(OSError):  # where the system runs out of memory, this process goes first
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


# What comes back -----------------------------------------------------------------------------------------------------


def _blob(found: dict[str, Any]) -> Blob:
    return Blob(
        id=str(found["id"]),
        wrapped_key=bytes.fromhex(found["wrapped_key"]),
        size=int(found["size"]),
        sha256=str(found["sha256"]),
    )


def _error(found: dict[str, Any]) -> CloisterError:
    """Return the error that the other process met, of its kind where that has no facts of its own."""
    kind = getattr(errors, str(found["kind"]), DataError)
    has_own = not issubclass(kind, CloisterError) or kind.__init__ is not CloisterError.__init__
    return DataError(found["problem"], fix=found["fix"]) if has_own else kind(found["problem"], fix=found["fix"])


def _too_much(problem: str) -> DataError:
    return DataError(problem, fix="send fewer rows or columns, or several tables; an operator can raise the limits.")
