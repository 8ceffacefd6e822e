"""Accountants: ways to add up the privacy losses of events, none of which answers below the truth."""

from __future__ import annotations

from cloister.accounting.accountants.automatic import accountant_named, compare, compose
from cloister.accounting.accountants.base import Accountant
from cloister.accounting.accountants.closed_form import GaussianAccountant, PureAccountant, ZeroConcentratedAccountant
from cloister.accounting.accountants.numerical import NumericalAccountant
from cloister.accounting.accountants.renyi import RenyiAccountant

__all__ = [
    "Accountant",
    "GaussianAccountant",
    "NumericalAccountant",
    "PureAccountant",
    "RenyiAccountant",
    "ZeroConcentratedAccountant",
    "accountant_named",
    "compare",
    "compose",
]
