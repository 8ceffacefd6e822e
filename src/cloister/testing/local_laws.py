"""The laws of local protocols: the epsilon of the device's own code, the wire format, and what must be refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from cloister.core import exact
from cloister.core.guarantees import SEEDED_RANDOMNESS
from cloister.core.random import SeededRandomSource
from cloister.local import Protocol, Reports, check_reports, open_protocol
from cloister.local.draws import law_of
from cloister.testing.laws import Laws, law_violation, must_refuse

__all__ = ["LocalProtocolLaws", "device_law", "worst_ratio"]

_BAD_EPSILONS = (0, -1, "1/1000000000", 21, float("nan"), float("inf"), "much", None, True)
_AGREEMENT = Fraction(1, 10**9)
_ROUNDING = Fraction(1, 10**25)
_PEOPLE = 200
_COPIES = 2000
_FALSE_ALARM = "1/1000000000"
_SLACK = 1e-9


def device_law(protocol: Protocol, code: Any) -> dict[bytes, Fraction]:  # a code or one row of codes
    """Return the exact probability of every report of one code, by following the device's decisions."""
    codes = np.asarray(code)[None]
    return law_of(lambda draws: protocol.perturb(codes, draws).tobytes())


def worst_ratio(laws: list[dict[bytes, Fraction]]) -> Fraction | None:
    """Return the largest ratio of two laws' probabilities of one report, None if it is infinite."""
    lows = {report: min(law.get(report, Fraction(0)) for law in laws) for report in set().union(*laws)}
    if not all(lows.values()):
        return None
    return max(law[report] / lows[report] for law in laws for report in law)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalProtocolLaws(Laws):
    """The laws of local protocols.

    Attributes:
        factory: makes the protocol from an epsilon.
        values: some values of its domain, at least two.
        outside: values that must be refused, one by one.
        small: makes a protocol so small that its whole law can be followed, from an epsilon; None where the device's
            randomness is not a sequence of decisions.
        codes: all codes of the small protocol, or those between which the ratio is largest.
        epsilons: for the exact law.
    """

    factory: Callable[[Any], Protocol]
    values: tuple[Any, ...]
    outside: tuple[Any, ...]
    small: Callable[[Any], Protocol] | None = None
    codes: tuple[Any, ...] = ()
    epsilons: tuple[Any, ...] = ("1/10", "1/2", "1", "2", "4", "7")

    def law_device_has_exactly_its_epsilon(self) -> None:
        """The law of the device's own code has the ratio that it states, and the epsilon asked for."""
        for epsilon in self.epsilons if self.small is not None else ():
            protocol = self.small(epsilon)  # type: ignore[misc]  # not None
            laws = [device_law(protocol, code) for code in self.codes]
            if any(sum(law.values()) != 1 for law in laws):
                raise law_violation("The probabilities of the reports do not sum to one", "follow every decision.")
            if worst_ratio(laws) != protocol.likelihood_ratio:
                raise law_violation("The device has another likelihood ratio than it states", "correct one of them.")

    def law_no_report_is_likelier_than_stated(self) -> None:
        """No report of the device's own code is likelier than the likeliest one that the protocol states."""
        if self.factory(1).likeliest_report >= 0:
            raise law_violation("The likeliest report is said to be certain", "state its probability.")
        for epsilon in self.epsilons if self.small is not None else ():
            protocol = self.small(epsilon)  # type: ignore[misc]  # not None
            largest = max(max(device_law(protocol, code).values()) for code in self.codes)
            if math.log(largest) > protocol.likeliest_report + _SLACK:
                raise law_violation("A report is likelier than stated", "state the largest probability of any report.")

    def law_copies_are_found_and_honest_reports_are_not(self) -> None:
        """The check of reports finds that all are one report, and raises no alarm for honest ones."""
        protocol = self.factory(1)
        for people in (self._people(), *([value] * _PEOPLE for value in self.values)):
            if not check_reports(protocol, protocol.randomize(people), false_alarm=_FALSE_ALARM).is_plausible:
                raise law_violation("Honest reports raise an alarm", "compare with what holds for all values.")
        copies = np.repeat(protocol.randomize(self.values[0]).payload, _COPIES)
        if check_reports(protocol, Reports(protocol, copies), false_alarm=_FALSE_ALARM).is_plausible:
            raise law_violation(
                "Copies of one report raise no alarm", "state how likely a report is, and what to compare."
            )

    def law_states_the_epsilon_asked_for(self) -> None:
        """The actual epsilon is the one asked for to a billionth, and never above."""
        for epsilon in self.epsilons:
            protocol, asked = self.factory(epsilon), exact.number(epsilon)
            if not asked - _AGREEMENT <= protocol.epsilon_of() <= asked + _ROUNDING:
                raise law_violation("The actual epsilon is not the one asked for", "round thresholds towards privacy.")
            if protocol.guarantee.epsilon != asked:
                raise law_violation("The guarantee does not state the epsilon asked for", "state it exactly.")

    def law_record_opens_again(self) -> None:
        """The public record survives JSON and gives the same protocol; a changed one is refused."""
        protocol = self.factory(1)
        record = json.loads(json.dumps(protocol.to_dict()))
        if open_protocol(record) != protocol:
            raise law_violation("The record does not open again", "put every argument into the record.")
        must_refuse(partial(open_protocol, {**record, "params": {"truth": "1"}}), "a changed record")

    def law_reports_survive_the_wire(self) -> None:
        """Reports are the same after JSON and after bytes, one and many."""
        protocol = self.factory(1)
        reports = protocol.randomize(self._people())
        lines, data = protocol.read(reports.to_json_lines()), protocol.read(reports.to_bytes())
        if not lines.payload.tobytes() == data.payload.tobytes() == reports.payload.tobytes():
            raise law_violation("Reports change on the wire", "write and read every field of the output space.")
        single = protocol.randomize(self.values[0])
        if len(single) != 1 or protocol.read([json.loads(single[0].to_json())]).payload != single.payload:
            raise law_violation("A single report changes on the wire", "return one report for one value.")

    def law_damaged_reports_are_refused(self) -> None:
        """Truncated, oversized and foreign reports are refused."""
        protocol, other = self.factory(1), self.factory(2)
        reports = protocol.randomize(self._people())
        data = reports.to_bytes()
        for bad in (data[:-1], data + b"0", data[:20], b"", [{**reports[0].to_dict(), "y": "plain answer"}]):
            must_refuse(partial(protocol.estimate, bad), "a damaged report")
        for foreign in (reports, data, reports.to_dicts()):
            must_refuse(partial(other.estimate, foreign), "a report of another epsilon")
        must_refuse(partial(protocol.estimate, []), "no report at all")

    def law_refuses_bad_epsilons(self) -> None:
        """An epsilon out of range is refused with a fix."""
        for epsilon in _BAD_EPSILONS:
            must_refuse(partial(self.factory, epsilon), f"epsilon={epsilon!r}")

    def law_refuses_values_outside_without_telling_them(self) -> None:
        """Values that are missing or not in the public domain are refused, and the message does not quote them."""
        protocol = self.factory(1)
        for value in self.outside:
            for given in (value, [self.values[0], value]):
                error = must_refuse(partial(protocol.randomize, given), "a value outside of the domain")
                if isinstance(value, str) and value in str(error):
                    raise law_violation("An error quotes a private value", "say what is wrong without the value.")

    def law_randomness_is_secure_by_default(self) -> None:
        """Without a random_state reports keep their promise and differ; predictable ones break it."""
        protocol, people = self.factory("1/2"), self._people()
        first, second = protocol.randomize(people), protocol.randomize(people)
        if first.caveats or first.payload.tobytes() == second.payload.tobytes():
            raise law_violation("The default randomness is not the operating system's", "use random_source(None).")
        seeded = [protocol.randomize(people, random_state=SeededRandomSource(4711)) for _ in range(2)]
        if seeded[0].payload.tobytes() != seeded[1].payload.tobytes():
            raise law_violation("The same source gives other reports", "take all randomness from the source.")
        if SEEDED_RANDOMNESS not in seeded[0].caveats or protocol.guarantee_of(seeded[0]).holds:
            raise law_violation("Predictable randomness does not break the promise", "pass the source's caveats on.")

    def law_repr_shows_no_report(self) -> None:
        """What is printed of reports is their number."""
        if str(_PEOPLE) not in repr(self.factory(1).randomize(self._people())):
            raise law_violation("Reports do not print as their number", "leave repr to Reports.")

    def _people(self) -> list[Any]:
        return [self.values[place % len(self.values)] for place in range(_PEOPLE)]
