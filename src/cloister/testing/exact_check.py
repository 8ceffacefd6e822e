"""Is this algorithm differentially private? Exact probabilities, all outputs, both directions.

The check lives in `cloister.attacks.auditing.exact_check`, where audits of real releases use it too.
"""

from __future__ import annotations

from cloister.attacks.auditing.exact_check import UNLISTED, Counterexample, ExactReport, Verdict, check_exactly

__all__ = ["UNLISTED", "Counterexample", "ExactReport", "Verdict", "check_exactly"]
