"""A second, slow and obvious version of the devices of local protocols, and records for it.

Written from the description of the draws alone, so that it can disagree with the shipped devices in Python and in
JavaScript. Only plain integers and fractions; one person at a time.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from cloister.core import exact

ALL = 2**64
STEPS = 2**30

Record = dict[str, Any]


class Words:
    """Listed words, with the number of those that were taken."""

    def __init__(self, words: list[int]) -> None:
        self.words, self.used = words, 0

    def take(self) -> int:
        self.used += 1
        return self.words[self.used - 1]

    def chance(self, threshold: int) -> bool:
        return self.take() < threshold

    def below(self, bound: int) -> int:
        high, low = divmod(self.take() * bound, ALL)
        return self.below(bound) if low >= ALL - ALL % bound else high


def output(record: Record, value: Any, words: Words) -> Any:
    """Return what a device reports about a value."""
    name, params = record["name"], _integers(record["params"])
    if "bounds" in record:
        low, high = map(Fraction, record["bounds"])
        share = (min(max(Fraction(value), low), high) - low) / (high - low)
        return _number(name, params, share, words)
    places = {(type(each), each): place for place, each in enumerate(record["domain"])}
    if name == "unary_set":
        return _bits(params, {places[type(each), each] for each in value}, len(places), words)
    return _answer(name, params, places[type(value), value], len(places), words)


def _answer(name: str, params: dict[str, Any], code: int, size: int, words: Words) -> Any:
    match name:
        case "randomized_response" if "yes_if_yes" in params:
            return int(words.chance(params["yes_if_yes"] if code else params["yes_if_no"]))
        case "randomized_response" | "direct_encoding":
            return _direct(params["truth"], code, size, words)
        case "symmetric_unary_encoding" | "optimized_unary_encoding":
            return _bits(params, {code}, size, words)
        case "optimized_local_hashing":
            a, b = words.below(params["prime"]), words.below(params["prime"])
            bucket = (a * code + b) % params["prime"] % params["buckets"]
            return [a, b, _direct(params["truth"], bucket, params["buckets"], words)]
        case "hadamard_response":
            agrees, column, row = words.chance(params["truth"]), words.below(params["order"]), code + 1
            is_one = bin(column & row).count("1") % 2 == 0
            return column if is_one == agrees else column ^ (row & -row)
        case "pram":
            word = words.take()
            return sum(limit <= word for limit in params["rows"][code])
    raise AssertionError(name)


def _number(name: str, params: dict[str, Any], share: Fraction, words: Words) -> Any:
    if name == "hybrid":
        if words.chance(params["piecewise_share"]):
            return [1, _number("piecewise", params["piecewise"], share, words)]
        return [0, _number("duchi", params["duchi"], share, words)]
    steps = params["steps"]
    step = math.floor(share * steps + Fraction(1, 2))
    if name == "duchi":
        return int(words.chance(params["low"] + math.floor(Fraction(step * (params["high"] - params["low"]), steps))))
    if words.chance(params["truth"]):
        return step + words.below(params["window"])
    outside = words.below(steps)
    return outside if outside < step else outside + params["window"]


def _direct(truth: int, code: int, size: int, words: Words) -> int:
    if words.chance(truth):
        return code
    others = 1 + words.below(size - 1)
    return (code + others) % size


def _bits(params: dict[str, Any], codes: set[int], size: int, words: Words) -> str:
    return "".join(
        str(int(words.chance(params["keep"] if place in codes else params["flip"]))) for place in range(size)
    )


def _integers(params: Any) -> Any:
    match params:
        case dict():
            return {key: _integers(value) for key, value in params.items()}
        case list():
            return [_integers(value) for value in params]
        case _:
            return int(params)


def sealed(record: Record) -> Record:
    """Return a record with the hashes that fit it."""
    if "bounds" in record:
        texts = [f"n:{bound}" for bound in record["bounds"]]
    else:
        texts = [_tagged(value) for value in record["domain"]]
    rest = {key: value for key, value in record.items() if key not in ("domain_hash", "fingerprint")}
    rest["domain_hash"] = _hash(texts)
    return {**rest, "fingerprint": _hash(rest)}


def _tagged(value: Any) -> str:
    tag = {bool: "b", str: "s", int: "i", float: "n"}[type(value)]
    return f"{tag}:{str(value).lower() if tag == 'b' else value if tag == 's' else repr(value)}"


def _hash(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def records() -> Iterator[Record]:
    """Yield a record of every protocol that a browser knows, with domains and bounds of all kinds."""
    colors, marks = (
        ["red", "green", "blue", "Grün \N{SNOWMAN}", 'quote " and \\', "\u2028\t\x7f"],
        [1.5, 2.0, 1e-7, 1e15, -0.25],
    )
    third = Fraction("1.0986122886681098")
    yield choice("randomized_response", ["no", "yes"], 1, {"truth": truth(1, 2)})
    yield choice("randomized_response", [False, True], third, {"yes_if_yes": 3 * ALL // 4, "yes_if_no": ALL // 4})
    yield choice(
        "randomized_response",
        ["no", "yes"],
        "1.6094379124341004",
        {"yes_if_yes": 7 * ALL // 8 - 1, "yes_if_no": 3 * ALL // 8},
    )
    for domain, epsilon in ((colors, "1/4"), (marks, "0.5"), (list(range(14)), 5), ([False, True], "1/1000000")):
        size = len(domain)
        yield choice("direct_encoding", domain, epsilon, {"truth": truth(epsilon, size)})
        half = truth(Fraction(epsilon) / 2, 2)
        yield choice("symmetric_unary_encoding", domain, epsilon, {"keep": half, "flip": ALL - half}, bits=size)
        keep, flip = ALL // 2, ALL - truth(epsilon, 2)
        yield choice("optimized_unary_encoding", domain, epsilon, {"keep": keep, "flip": flip}, bits=size)
        order = 2 ** size.bit_length()
        yield choice("hadamard_response", domain, epsilon, {"order": order, "truth": truth(epsilon, 2)}, y=order)
        for prime in (2**31 - 1, 17):
            buckets = math.floor(exact.exp_bounds(Fraction(epsilon))[0]) + 1
            params = {"prime": prime, "buckets": buckets, "truth": truth(epsilon, buckets)}
            yield choice("optimized_local_hashing", domain, epsilon, params, a=prime, b=prime, y=buckets)
        most = min(2, size)
        bit = truth(Fraction(epsilon) / (most + min(most, size - most)), 2)
        yield choice("unary_set", domain, epsilon, {"keep": bit, "flip": ALL - bit, "most": most}, bits=size)
    rows = [[ALL // 2, 3 * ALL // 4], [ALL // 4, 3 * ALL // 4], [ALL // 4, ALL // 2]]
    yield choice("pram", ["low", "middle", "high"], "0.6931471805599454", {"rows": rows})
    for bounds, epsilon in ((("0", "1"), 1), (("-7/3", "12.5"), "1/4"), (("18", "110"), 4)):
        yield from numeric_records(bounds, Fraction(epsilon))


def numeric_records(bounds: tuple[str, str], epsilon: Fraction) -> Iterator[Record]:
    """Yield a record of every protocol for numbers."""
    growth = exact.exp_bounds(epsilon)[0]
    low = math.ceil(ALL / (growth + 1))
    duchi = {"steps": STEPS, "low": low, "high": ALL - low}
    piecewise = _window(growth, round(STEPS / exact.exp_bounds(epsilon / 2)[0]))
    wave = _window(growth, round(STEPS * (epsilon * growth - growth + 1) / (growth * (growth - 1 - epsilon))))
    share = math.floor(ALL * (1 - 1 / exact.exp_bounds(epsilon / 2)[0]))
    cells = STEPS + piecewise["window"]
    yield number("duchi", bounds, epsilon, duchi, y=2)
    yield number("piecewise", bounds, epsilon, piecewise, y=cells)
    yield number("square_wave", bounds, epsilon, wave, y=STEPS + wave["window"])
    parts = {"piecewise_share": share, "duchi": duchi, "piecewise": piecewise}
    yield number("hybrid", bounds, epsilon, parts, part=2, y=cells)


def choice(name: str, domain: list[Any], epsilon: object, params: Any, **fields: int) -> Record:
    """Return the record of a protocol for declared answers; each field has its number of values, or of bits."""
    return _record(name, {"domain": domain}, epsilon, params, fields or {"y": len(domain)})


def number(name: str, bounds: tuple[str, str], epsilon: object, params: Any, **fields: int) -> Record:
    """Return the record of a protocol for a number; each field has its number of values."""
    return _record(name, {"bounds": list(bounds)}, epsilon, params, fields)


def _record(name: str, domain: Record, epsilon: object, params: Any, fields: dict[str, int]) -> Record:
    return sealed(
        {
            "schema": "cloister.protocol/1",
            "name": name,
            "version": 1,
            "epsilon": str(epsilon),
            **domain,
            "options": {},
            "params": _texts(params),
            "output_space": {"fields": [_field(field, size) for field, size in fields.items()]},
        }
    )


def _field(name: str, size: int) -> Record:
    if name == "bits":
        return {"name": name, "kind": "bits", "length": size}
    return {"name": name, "kind": "integer", "low": 0, "high": size - 1}


def _texts(params: Any) -> Any:
    match params:
        case dict():
            return {key: _texts(value) for key, value in params.items()}
        case list():
            return [_texts(value) for value in params]
        case _:
            return str(params) if params >= 2**53 else params


def truth(epsilon: object, size: int) -> int:
    """Return the threshold of telling the truth about one of some values, rounded towards privacy."""
    growth = exact.exp_bounds(Fraction(str(epsilon)))[0]
    return ALL - math.ceil(ALL * (size - 1) / (size - 1 + growth))


def _window(growth: Fraction, window: int) -> dict[str, int]:
    return {"steps": STEPS, "window": window, "truth": ALL - math.ceil(ALL * STEPS / (STEPS + growth * window))}
