"""What the released columns give away by themselves: names of people, values of their own, rows of their own.

A role is an argument, not evidence. "Insensitive" says that nobody can know a column from elsewhere; where its values
split the classes, that is what the release rests on, so uniqueness is judged over every released column that is not
sensitive. A sensitive column in which many have a value that is theirs alone, or that holds what an identifier holds,
names people whatever its role is; so do numbers of many digits, unless a schema declares them as amounts with bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cloister.anonymize import AnatomyRelease, Release
from cloister.anonymize.anatomy import COUNT, GROUP
from cloister.attacks.gating._gate_subject import GateSubject
from cloister.attacks.gating._row_keys import WRITTEN, RowPair, read_numbers, read_pair
from cloister.attacks.gating.findings import GateFinding, Stand
from cloister.attacks.gating.policy import GatePolicy
from cloister.core.provenance import ANONYMIZED, SYNTHETIC, TWO_TABLES
from cloister.core.wordings import percent
from cloister.data.columns import Kind, Role
from cloister.data.hierarchy import ROOT
from cloister.data.schema import Schema
from cloister.data.table import Table

__all__ = ["hidden_rows", "look_at_columns", "quote_names", "row_texts"]

_FEWEST = 10
_MANY_DIGITS = 100_000
"""From six digits on, numbers that are somebody's own are those of phones, accounts, patients or moments."""
_MISSING, _BETWEEN = "\x00", "\x1f"
_NOT_JUDGED = {
    "free_text": "Nobody can tell what free text says: have a person read it, or leave it out.",
    "guessed_roles": "Everything here rests on the roles of the columns.",
}


def look_at_columns(subject: GateSubject, policy: GatePolicy) -> Iterator[GateFinding]:
    """Return what the columns say for or against a release."""
    yield from _names(subject)
    yield from _find_aliases(subject)
    if subject.kind == ANONYMIZED:
        yield from _rows(subject)
        yield from _uniqueness(subject, policy)
        yield from _hidden(subject)
    if subject.kind in (ANONYMIZED, TWO_TABLES):
        yield from _own_values(subject, policy)
    yield from _warnings(subject)


def quote_names(names: Sequence[str]) -> str:
    """Return names of columns for a sentence."""
    return ", ".join(f'"{name}"' for name in names)


def row_texts(table: Table, names: Sequence[str]) -> NDArray[np.object_]:
    """Return each row of some columns as one text."""
    rows = table.to_arrow().select(list(names))
    texts = [pc.fill_null(_text(rows[name]), _MISSING) for name in names]
    return np.asarray(pc.binary_join_element_wise(*texts, _BETWEEN).to_pylist(), dtype=object)


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.string())


def _tables(subject: GateSubject) -> tuple[Table, ...]:
    """Return the released tables."""
    match subject.release:
        case AnatomyRelease():
            return subject.release.quasi, subject.release.sensitive
        case Release():
            return (subject.release.table,)
        case tuple():
            return subject.release
        case _:
            return (subject.release,)


def _columns(subject: GateSubject) -> list[str]:
    added = {GROUP, COUNT} if subject.kind == TWO_TABLES else set()
    return [name for part in _tables(subject) for name in part.columns if name not in added]


def _schema(subject: GateSubject) -> Schema | None:
    if isinstance(subject.release, Release | AnatomyRelease):
        return subject.release.roles.schema
    return subject.schema


def _original(subject: GateSubject) -> Table:
    found: Table = subject.release.original if subject.original is None else subject.original
    return found


def _names(subject: GateSubject) -> Iterator[GateFinding]:
    """Find columns that name people, or that nothing describes."""
    if isinstance(subject.release, Release | AnatomyRelease):
        return
    schema, released = subject.schema, _columns(subject)
    wrong = []
    if schema is not None:
        names = {*schema.with_roles(Role.IDENTIFIER), *([schema.subject] if schema.subject else [])}
        naming = [name for name in released if name in names]
        if naming:
            wrong.append(f"The release shows {quote_names(naming)}, which the schema says names people.")
    known = subject.original.columns if schema is None else schema
    unknown = [name for name in released if name not in known]
    if unknown:
        said = "the original does not have" if schema is None else "the schema does not describe"
        wrong.append(f"The release shows {quote_names(unknown)}, which {said}.")
    if subject.kind == TWO_TABLES:
        beside = [name for name in subject.sensitive if name in subject.release[0].columns]
        if beside:
            wrong.append(f"The first table shows {quote_names(beside)} beside what is known about people.")
    if schema is None and not wrong:
        return
    told = "No released column names people by the schema, and the schema describes all of them."
    yield GateFinding(attack="columns", stand=Stand.BROKEN if wrong else Stand.HELD, reason=" ".join(wrong) or told)


def _find_aliases(subject: GateSubject) -> Iterator[GateFinding]:
    """Find columns that hold what a column that names people holds, under another name or role."""
    schema, original = _schema(subject), _original(subject)
    if schema is None:
        return
    naming = [*schema.with_roles(Role.IDENTIFIER), *([schema.subject] if schema.subject else [])]
    held = {name: np.unique(_fold_column(original, name)) for name in dict.fromkeys(naming) if name in original.columns}
    same = []
    for part in _tables(subject):
        for column in part.columns:
            shown = np.unique(_fold_column(part, column))
            if column not in held and any(_is_of(shown, values, part.count()) for values in held.values()):
                same.append(column)
    if same:
        told = f"Most values of {quote_names(same)} are those of a column that names people."
        yield GateFinding(attack="names under another name", stand=Stand.BROKEN, reason=told)


def _is_of(shown: NDArray[np.str_], values: NDArray[np.str_], rows: int) -> bool:
    """Return whether most of the values that a column shows are among those of another.

    Numbers of few digits are among any others, so that they count only where nearly each row has its own.
    """
    if len(shown) < _FEWEST or float(np.isin(shown, values).mean()) <= 0.5:
        return False
    return len(shown) > rows / 2 or not all(text.replace(".", "").isdecimal() for text in shown[:100])


def _fold_column(table: Table, name: str) -> NDArray[np.str_]:
    texts = pc.utf8_trim_whitespace(pc.utf8_lower(pc.drop_null(_text(table.to_arrow()[name]))))
    return np.asarray(pc.unique(texts).to_pylist(), dtype=str)


def _rows(subject: GateSubject) -> Iterator[GateFinding]:
    """Find rows that stand for nobody: repeated rows make classes look larger than they are."""
    shown, there = subject_rows(subject), int(_original(subject).count())
    if shown > there:
        told = f"The release has {shown:,} rows of {there:,} people: repeated rows make classes look larger."
        yield GateFinding(attack="rows", stand=Stand.BROKEN, reason=told)


def subject_rows(subject: GateSubject) -> int:
    """Return how many rows are released."""
    return int(_tables(subject)[0].count())


def _uniqueness(subject: GateSubject, policy: GatePolicy) -> Iterator[GateFinding]:
    """Judge how many rows look alike over every released column that is not sensitive."""
    table, made = _tables(subject)[0], isinstance(subject.release, Release)
    quasi = list(subject.release.roles.quasi) if made else list(subject.quasi or ())
    names = [name for name in table.columns if name not in subject.sensitive]
    further = [name for name in names if name not in quasi]
    if not names or not table.count() or not (further or made):
        return
    alike, known = _sizes(table, names), _sizes(table, [name for name in names if name in quasi])
    needed = 1 / (policy.max_match * (1 + 1e-9)) if policy.max_match else np.inf
    # Rows that are few already by what others know are the matter of linkage, which reads what labels allow.
    exposed = (alike < needed) & ((alike < known) | made)
    chance = percent(1 / int(alike[exposed].min() if exposed.any() else alike.min()))
    beyond = f", also by {quote_names(further)}, which no class counts" if further else ""
    told = f"Over all released columns that are not sensitive{beyond}, {int(exposed.sum()):,} of {len(alike):,} rows "
    told += f"are shared by fewer than the policy asks for: the largest chance of a match is {chance}, "
    told += f"{percent(policy.max_match)} allowed."
    if exposed.any() and further:
        told += " Make such columns quasi-identifiers, or leave them out."
    yield GateFinding(attack="uniqueness", stand=Stand.BROKEN if exposed.any() else Stand.HELD, reason=told)


def hidden_rows(subject: GateSubject) -> int:
    """Return how many released rows show nothing in any quasi-identifier."""
    return int(_is_hidden(subject).sum())


def _is_hidden(subject: GateSubject) -> NDArray[np.bool_]:
    table = _tables(subject)[0]
    quasi = subject.release.roles.quasi if isinstance(subject.release, Release) else subject.quasi or ()
    shown = [name for name in quasi if name in table.columns]
    if not shown:
        return np.zeros(table.count(), dtype=bool)
    return np.asarray(row_texts(table, shown) == _BETWEEN.join([ROOT] * len(shown)), dtype=bool)


def _hidden(subject: GateSubject) -> Iterator[GateFinding]:
    """Find sensitive values that all rows share which show nothing else: who fits no other row is among them."""
    table, hidden = _tables(subject)[0], _is_hidden(subject)
    if not hidden.any() or hidden.all():
        return
    names = [name for name in subject.sensitive if name in table.columns]
    same = [name for name in names if len(np.unique(row_texts(table, [name])[hidden].astype(str))) == 1]
    told = f"{int(hidden.sum()):,} rows show nothing that is known about people, whose sensitive values differ."
    if same:
        told = f"The {int(hidden.sum()):,} rows that show nothing that is known about people share one "
        told += f"{quote_names(same)}."
    yield GateFinding(attack="hidden rows", stand=Stand.BROKEN if same else Stand.HELD, reason=told)


def _sizes(table: Table, names: Sequence[str]) -> NDArray[np.int64]:
    """Return how many rows are like each row in some columns."""
    if not names:
        return np.full(table.count(), table.count(), dtype=np.int64)
    _, kinds, counts = np.unique(row_texts(table, names).astype(str), return_inverse=True, return_counts=True)
    return np.asarray(counts[kinds], dtype=np.int64)


def _own_values(subject: GateSubject, policy: GatePolicy) -> Iterator[GateFinding]:
    """Find sensitive columns in which people have a value of their own, by which their row can be found."""
    parts, original = _tables(subject), _original(subject)
    named: dict[str, str] = {}
    rare: dict[str, str] = {}
    exact: dict[str, str] = {}
    for name in subject.sensitive:
        part = next((table for table in parts if name in table.columns), None)
        if part is None or name not in original.columns or not part.count() or not original.count():
            continue
        pair = read_pair(original, part, [name], resolution=WRITTEN)
        own, people = _people_alone(pair, has_rows=subject.kind == ANONYMIZED), len(pair.original)
        if own < _FEWEST:
            continue
        is_amount = pair.is_number[0] and not _is_naming_number(part, original, name, _schema(subject))
        found = exact if is_amount else named if own > policy.max_match * people else rare
        found[name] = f"{quote_names([name])} ({own:,} of {people:,} people)"
    if named:
        told = (
            f"So many have a value of their own that is shown in {', '.join(named.values())}: whoever knows it finds "
        )
        told += f"the row. {percent(policy.max_match)} of the people are allowed."
        yield GateFinding(attack="values of one person", stand=Stand.BROKEN, reason=told)
    elif rare:
        told = (
            f"Some have a value of their own that is shown in {', '.join(rare.values())}: whoever knows it finds the "
        )
        told += "row."
        yield GateFinding(attack="values of one person", stand=Stand.TOLD, reason=told, is_needed=False)
    if exact:
        told = (
            f"Some have a number of their own in {', '.join(exact.values())}: whoever knows it exactly finds the row."
        )
        yield GateFinding(attack="numbers of one person", stand=Stand.TOLD, reason=told, is_needed=False)


def _people_alone(pair: RowPair, *, has_rows: bool) -> int:
    """Return how many people have a value that is theirs alone and is shown, or how many rows show one of their own."""
    ours, shown = pair.original[:, 0], pair.released[:, 0]
    alone, single = (
        values[counts == 1] for values, counts in (np.unique(part, return_counts=True) for part in (ours, shown))
    )
    known = int(np.isin(alone, shown).sum())
    # Under another spelling a value is still one of somebody's own; of two tables, a row is no person.
    return max(known, len(single)) if has_rows else known


def _is_naming_number(part: Table, original: Table, name: str, schema: Schema | None) -> bool:
    """Return whether numbers are a kind of name: times, and numbers of many digits that nobody has declared amounts."""
    column = None if schema is None else schema.columns.get(name)
    if column is not None and column.kind is Kind.DATETIME:
        return True
    if column is not None and column.kind is Kind.NUMERIC and column.bounds is not None:
        return "bounds" in column.guessed
    held = [pa.types.is_temporal(table.to_arrow()[name].type) for table in (part, original)]
    numbers = read_numbers(original.to_arrow()[name])
    if any(held) or numbers is None or not np.isfinite(numbers.astype(np.float64)).any():
        return True
    return float(np.nanmedian(np.abs(numbers.astype(np.float64)))) >= _MANY_DIGITS


def _warnings(subject: GateSubject) -> Iterator[GateFinding]:
    """Let the release's own warnings speak; what no attack can judge speaks against publishing."""
    found = _pitfalls(subject)
    for code, sentence in found:
        if code in _NOT_JUDGED:
            told = f"{sentence} {_NOT_JUDGED[code]}"
            yield GateFinding(attack=code.replace("_", " "), stand=Stand.NOT_RUN, reason=told)
    others = [sentence for code, sentence in found if code not in _NOT_JUDGED]
    if others:
        yield GateFinding(attack="own warnings", stand=Stand.TOLD, reason=" ".join(others), is_needed=False)


def _pitfalls(subject: GateSubject) -> list[tuple[str, str]]:
    """Return (code, sentence) of what a release warns of, or of what can be told from its schema."""
    schema = _schema(subject)
    if schema is None:
        return []
    quasi = subject.release.roles.quasi if isinstance(subject.release, Release) else subject.quasi or ()
    shown = [schema[name] for name in dict.fromkeys(_columns(subject)) if name in schema]
    texts = [column.name for column in shown if column.kind is Kind.TEXT and column.name not in quasi]
    guessed = [column.name for column in shown if "role" in column.guessed]
    told = []
    if texts and subject.kind != SYNTHETIC:
        told.append(("free_text", f"{quote_names(texts)} may hold free text, which may name people, places and dates."))
    if guessed and subject.kind != SYNTHETIC:
        told.append(
            ("guessed_roles", f"The roles of {quote_names(guessed)} were guessed and not confirmed by a person.")
        )
    if isinstance(subject.release, Release):
        told += [(item.code, item.sentence) for item in subject.release.pitfalls if item.code not in _NOT_JUDGED]
    return told
