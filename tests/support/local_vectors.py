"""Vectors on which devices are compared: a record, a value and the words, and the report that must come out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

from cloister.core.random import ListedRandomSource, SystemRandomSource
from cloister.local import Protocol, open_protocol, protocols
from tests.support import local_reference as reference
from tests.support.local_reference import ALL, Record

Device = Callable[[Record, Any, list[int]], tuple[Record, int]]
"""Returns the report about a value and the number of words that it took."""

_CHOICES = (
    "direct_encoding",
    "symmetric_unary_encoding",
    "optimized_unary_encoding",
    "optimized_local_hashing",
    "hadamard_response",
)
_NUMBERS = ("duchi", "piecewise", "square_wave", "hybrid")
_HEAD = ("version", "epsilon", "domain_hash", "fingerprint")
_EXACT_DECIMALS = ("0", "0.5", "-0.125", "12.5", "55.25", "1000000", "-1000000")
_TEXTS = ("0.1", "1/3", "7e-1", "12.49999999999999999999", ".3")


def reference_device(record: Record, value: Any, words: list[int]) -> tuple[Record, int]:
    """Return what the slow device reports."""
    taken = reference.Words(words)
    y = reference.output(record, value, taken)
    return report(record, y), taken.used


def shipped_device(record: Record, value: Any, words: list[int]) -> tuple[Record, int]:
    """Return what cloister's device in Python reports."""
    source = ListedRandomSource(words)
    given = Fraction(value) if "bounds" in record and isinstance(value, str) else value
    made = _opened(json.dumps(record)).randomize(given, random_state=source)
    return made.to_dict(), source.used


@cache
def _opened(record: str) -> Protocol:
    return open_protocol(record)


def shipped_records() -> Iterator[Record]:
    """Yield records of every protocol of cloister that a browser knows, with domains and bounds of all kinds."""
    colors, marks = ["red", "green", "Grün \N{SNOWMAN}", 'quote " and \\'], [1.5, 2.0, 1e-7]
    for domain, epsilon in ((colors, "1/4"), (marks, 0.5), (range(14), 5), ([False, True], "1/1000000"), ("ny", 20)):
        for name in _CHOICES:
            yield _record(name, domain=list(domain), epsilon=epsilon)
    for kind in ("response", "ordinal"):
        yield _record("pram", domain=["never", "sometimes", "often"], epsilon=2, kind=kind)
    yield _record("pram", domain=["no", "yes"], matrix=[["9/10", "1/10"], ["2/5", "3/5"]])
    yield _record("randomized_response", domain=["no", "yes"], epsilon="1/3")
    yield _record("randomized_response", truth=0.5, second=0.75)
    yield _record("optimized_local_hashing", domain=100, epsilon=1, buckets=2)
    yield from _later_records()


def _later_records() -> Iterator[Record]:
    """Yield records of protocols for several answers and for numbers, as far as they are registered."""
    for size, most, epsilon in ((4, 2, 2), (2, 2, 1), (14, 3, "1/3")) if "unary_set" in set(protocols) else ():
        yield _record("unary_set", domain=size, most=most, epsilon=epsilon)
    for bounds, epsilon in (((0, 1), 1), (("-7/3", "12.5"), "1/4"), ((18, 110), 4), (("0.1", "0.3"), 20)):
        for name in filter(set(protocols).__contains__, _NUMBERS):
            yield _record(name, bounds=bounds, epsilon=epsilon)


def _record(name: str, **arguments: Any) -> Record:
    made: Any = protocols.get(name)
    return dict(made(**arguments).to_dict())


def report(record: Record, y: Any) -> Record:
    """Return the JSON report of an output."""
    head = {"schema": "cloister.report/1", "protocol": record["name"]}
    return head | {key: record[key] for key in _HEAD if key in record} | {"y": y}


def cases(records: Iterable[Record], device: Device, *, random_words: int = 10) -> list[Record]:
    """Return vectors for records: at the edges of every decision, and at random words."""
    return [
        {
            "record": record,
            "draws": [_draw(record, value, words, device) for value, words in _tries(record, random_words)],
        }
        for record in records
    ]


def _draw(record: Record, value: Any, words: list[int], device: Device) -> Record:
    expected, used = device(record, value, list(words))
    return {"value": value, "words": [str(word) for word in words], "report": expected, "used": used}


def _tries(record: Record, random_words: int) -> Iterator[tuple[Any, list[int]]]:
    for value in values(record):
        for words in _word_lists(record, random_words):
            yield value, words


def values(record: Record) -> list[Any]:
    """Return values that a device of a record takes."""
    if "bounds" in record:
        return [*_EXACT_DECIMALS, *_TEXTS, 0.1, -3, 55.25, 1e300]
    domain = record["domain"]
    if record["name"] == "unary_set":
        return [[], [domain[0]], [domain[-1], domain[0]]]
    return [*domain[:4], domain[-1]]


def _word_lists(record: Record, random_words: int) -> Iterator[list[int]]:
    """Yield word lists long enough for every draw, even when some words are drawn anew."""
    length = len(record.get("domain", ())) + 8
    numbers = sorted(set(_integers(record["params"])))
    edges = {0, ALL - 1} | {limit + step for limit in numbers if 2**53 < limit < ALL for step in (-1, 0, 1)}
    bounds = {bound - less for bound in [*numbers, len(record.get("domain", ()))] for less in (0, 1)}
    edges |= {ALL // bound for bound in bounds if 1 < bound < 2**53}
    source = SystemRandomSource()

    def noise() -> list[int]:
        return [int(word) for word in source.words(length)]

    for edge in sorted(edges):
        yield [edge, *noise()]
        yield [ALL - 1, edge, 0, 0, *noise()]
        yield [0, edge, 0, *noise()]
    yield from (noise() for _ in range(random_words))


def _integers(params: Any) -> Iterator[int]:
    if isinstance(params, dict | list):
        for value in params.values() if isinstance(params, dict) else params:
            yield from _integers(value)
    else:
        yield int(params)
