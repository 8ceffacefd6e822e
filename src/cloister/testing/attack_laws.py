"""The laws of attacks: what works is told beside guessing, and what was learned about anybody is in no document.

    laws = AttackLaws(broken=lambda: my_attack(leaky), harmless=lambda: my_attack(safe))

    @pytest.mark.parametrize("law", laws, ids=str)
    def test_my_attack(law):
        law.verify()

An attack that cannot fail, or cannot work, tests nothing: both releases are needed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from cloister.attacks.details import labeled_facts
from cloister.attacks.result import AttackResult
from cloister.report import Facts
from cloister.testing.laws import Laws, law_violation

__all__ = ["AttackLaws"]

_CANARY = 8_128_003


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackLaws(Laws):
    """The laws of attacks.

    Attributes:
        broken: runs the attack on something that gives people away.
        harmless: runs it on something that does not; None to leave that law out.
    """

    broken: Callable[[], AttackResult]
    harmless: Callable[[], AttackResult] | None = None

    def law_works_on_what_is_broken(self) -> None:
        """It succeeds where people are given away."""
        if not self.broken().succeeded:
            raise law_violation("The attack does not work on what is broken", "try a release that gives more away.")

    def law_finds_nothing_in_what_is_harmless(self) -> None:
        """It does not succeed where nobody is given away."""
        if self.harmless is not None and self.harmless().succeeded:
            raise law_violation("The attack works on what is harmless", "compare it with a baseline and a control.")

    def law_success_is_never_a_bare_percentage(self) -> None:
        """It says who attacks, how often guessing is right, and how sure both are."""
        result = self.broken()
        low, high = result.interval
        if not (0 <= low <= result.success <= high <= 1 and 0 <= result.baseline <= 1 and 0 < result.confidence <= 1):
            raise law_violation("The success is not within its interval", "give shares, and an exact interval.")
        if not (result.attack and result.assumption and result.verdict.endswith(".")):
            raise law_violation("Nothing says what the attacker knows and found", "give it a name and an assumption.")

    def law_is_written_as_json(self) -> None:
        """Its document starts with a marker, is plain JSON and has every fact but those that are held."""
        result = self.broken()
        document = result.to_dict()
        if next(iter(document.items())) != ("schema", result.details.schema):
            raise law_violation("The document does not start with its marker", 'set "schema" of the details.')
        json.dumps(document, allow_nan=False)
        for field in fields(result.details):
            if (field.name in document) is bool(field.metadata.get("held")):
                raise law_violation(f'The fact "{field.name}" is held and written', "hold it, or write it.")

    def law_report_tells_what_the_summary_tells(self) -> None:
        """What the details tell stands in the summary and, word by word, in the report."""
        result = self.broken()
        own = [*labeled_facts(result.details), *result.details.tell(result)]
        blocks = [block for section in result.sections() for block in section.blocks]
        shown = [row for block in blocks if isinstance(block, Facts) for row in block.rows]
        for row in own:
            if row not in result.summary() or row not in shown:
                raise law_violation(f'"{row[0]}" is not told everywhere', "let the result render its details.")

    def law_keeps_records_to_the_custodian(self) -> None:
        """The most exposed records are in the result, and in no document."""
        result = replace(self.broken(), worst=((_CANARY, 0.5),))
        report = result.report()
        shown = (
            json.dumps(result.to_dict()),
            report.to_json(),
            report.to_markdown(),
            str(result.summary()),
            repr(result),
        )
        if any(str(_CANARY) in text for text in shown):
            raise law_violation("A document names a record", "leave who was found to the custodian.")
