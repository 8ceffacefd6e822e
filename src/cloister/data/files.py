"""Small text files of the custodian, read with one clear error."""

from __future__ import annotations

from pathlib import Path

from cloister.errors import SchemaError, SourceNotFoundError


def read_text(path: str | Path, *, what: str) -> str:
    """Return the text of a UTF-8 file, with or without a byte-order mark.

    Raises:
        SourceNotFoundError: if there is no such file.
        SchemaError: if it cannot be read as text.
    """
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise SourceNotFoundError(f'There is no {what} file "{path}".', fix="check the path.") from None
    except UnicodeDecodeError:
        raise SchemaError(f'The {what} file "{path}" is not UTF-8 text.', fix="save it as UTF-8.") from None
    except OSError as error:
        reason = error.strerror or "it cannot be opened"
        raise SchemaError(
            f'The {what} file "{path}" cannot be read: {reason}.', fix="give the path of a readable file."
        ) from None
