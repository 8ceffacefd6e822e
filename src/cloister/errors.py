"""Every deliberate exception and warning of cloister.

The tree (indented names inherit; names in brackets are also bases)::

    CloisterError
        ParameterError (ValueError)         a parameter is out of range or malformed
            MissingBoundsError              public bounds or categories are needed
            LatticeTooLargeError            more generalizations than an exact search takes
            OutsideDomainError              a value is not in the public domain
            ManifestError                   the manifest of a foreign algorithm is wrong
            ArtifactError                   the files of a foreign algorithm are not acceptable
        ParameterTypeError (TypeError)      a parameter has the wrong type
        UnsafeMechanismError (ValueError)   the method asked for is not private
        UnsafeQueryError (ValueError)       the question cannot be answered privately as it is
            QueryRefusedError               an inference control does not permit the answer
        UnsatisfiableError (ValueError)     no release can satisfy the models that were asked for
        SchemaError (ValueError)            a schema or hierarchy is incomplete or contradictory
            UnconfirmedSchemaError          guesses have not been confirmed
            UnknownColumnError              a column is not in the schema
            HierarchyError                  a generalization hierarchy is broken
        DataError                           data could not be read or is not usable
            SourceNotFoundError             no such file, table or server
                SourceUnreachableError      the database does not answer
            ModelError (ValueError)         a saved model cannot be used
            ReportError (ValueError)        local reports cannot be used
                MalformedReportError        a report is not in the protocol's output space
                ForeignReportError          a report is of another protocol, version, domain or epsilon
                DuplicateReportError        the same submission came twice
                TooFewReportsError          there are not enough reports for an estimate
        AccountingError
            BudgetExceededError             a release would spend more than is left
            UnsupportedEventError           this accountant does not know that event
        LedgerError
            LedgerDamagedError              the hash chain or the file is broken
            LedgerVersionError              written by another version
            LedgerUnreachableError          the database does not answer
            AccountMismatchError            opened with another budget, unit or relation
            UnknownAccountError             no such dataset in the ledger
        CryptoError                         a key or a sealed file cannot be used
            DecryptionError                 the key is wrong, or what was sealed is not as it was
        ProtocolError                       parties could not finish what they compute together
        HubError                            the hub could not do what was asked
            NotSignedInError                nobody, or nobody known, asks
            ForbiddenError                  a policy does not allow it
            NotFoundError                   it does not exist, or may not be seen
            ConflictError                   it exists already, or is not in a state for this
            TooManyRequestsError            too often in too short a time
            TooLargeError                   more than the hub takes
            HubUnavailableError             the hub cannot answer now
            PolicyError (ValueError)        a policy is malformed or contradictory
            AuditDamagedError               the audit log was changed after it was written
        VerificationError (AssertionError)  a check of an algorithm failed
            StatisticalError                a sample does not follow the stated law
            PrivacyRefutedError             an algorithm does not keep its promise
            LawViolatedError                a member of a family breaks one of the family's laws
            GoldenMismatchError             a worked example does not come out as published
        SandboxUnavailableError             foreign code cannot be confined on this machine
        MissingExtraError (ImportError)     an optional package is not installed
        InternalError                       a bug in cloister
    CloisterWarning (UserWarning)
        SeededRandomnessWarning             randomness is predictable, nothing is private
        PrivacyParameterWarning             legal, but weaker than most people want
        DataWarning                         data was repaired on reading
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from decimal import ROUND_DOWN, ROUND_UP, Context, Decimal
from fractions import Fraction
from typing import Final, Literal, TypeAlias, get_args

__all__ = [
    "AccountMismatchError",
    "AccountingError",
    "ArtifactError",
    "AuditDamagedError",
    "BudgetExceededError",
    "CloisterError",
    "CloisterWarning",
    "ConflictError",
    "CryptoError",
    "DataError",
    "DataWarning",
    "DecryptionError",
    "DuplicateReportError",
    "ForbiddenError",
    "ForeignReportError",
    "GoldenMismatchError",
    "HierarchyError",
    "HubError",
    "HubUnavailableError",
    "InternalError",
    "LatticeTooLargeError",
    "LawViolatedError",
    "LedgerDamagedError",
    "LedgerError",
    "LedgerUnreachableError",
    "LedgerVersionError",
    "MalformedReportError",
    "ManifestError",
    "MissingBoundsError",
    "MissingExtraError",
    "ModelError",
    "NotFoundError",
    "NotSignedInError",
    "OutsideDomainError",
    "ParameterError",
    "ParameterTypeError",
    "PolicyError",
    "PrivacyParameterWarning",
    "PrivacyRefutedError",
    "ProtocolError",
    "QueryRefusedError",
    "ReportError",
    "SandboxUnavailableError",
    "SchemaError",
    "SeededRandomnessWarning",
    "SourceNotFoundError",
    "SourceUnreachableError",
    "StatisticalError",
    "TooFewReportsError",
    "TooLargeError",
    "TooManyRequestsError",
    "UnconfirmedSchemaError",
    "UnknownAccountError",
    "UnknownColumnError",
    "UnsafeMechanismError",
    "UnsafeQueryError",
    "UnsatisfiableError",
    "UnsupportedEventError",
    "VerificationError",
    "did_you_mean",
]


ErrorMarker: TypeAlias = Literal["cloister.error/1"]
"""What an error that is written as JSON starts with."""

ERROR_MARKER: Final[ErrorMarker] = get_args(ErrorMarker)[0]


class CloisterError(Exception):
    """Something that the caller can mend: what is wrong, and a fix to type or a person to ask."""

    def __init__(self, problem: str, *, fix: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.problem}\n\nFix: {self.fix}"

    def to_dict(self) -> dict[str, object]:
        """Return the error as JSON-ready values."""
        return {
            "schema": ERROR_MARKER,
            "error": type(self).__name__,
            "problem": self.problem,
            "fix": self.fix,
        }


class ParameterError(CloisterError, ValueError):
    """A parameter is out of range or malformed."""


class MissingBoundsError(ParameterError):
    """Public bounds or categories are needed and may not be read from the data."""


class LatticeTooLargeError(ParameterError):
    """There are more full-domain generalizations than an exact search takes."""

    def __init__(self, *, nodes: int, limit: int) -> None:
        super().__init__(
            f"The lattice of generalizations has {nodes:,} nodes; an exact search takes at most {limit:,}.",
            fix='use search="heuristic", which does not prove its result the best, or fewer quasi-identifiers, '
            "hierarchies with fewer levels, or a higher node_limit.",
        )
        self.nodes, self.limit = nodes, limit


class OutsideDomainError(ParameterError):
    """A value is missing or not in the public domain; the value itself is never told."""


class ManifestError(ParameterError):
    """The manifest of a foreign algorithm is incomplete or contradictory."""


class ArtifactError(ParameterError):
    """The files of a foreign algorithm are not acceptable."""


class ParameterTypeError(CloisterError, TypeError):
    """A parameter has the wrong type."""


class UnsafeMechanismError(CloisterError, ValueError):
    """The method asked for does not give the guarantee that people expect of it."""


class UnsafeQueryError(CloisterError, ValueError):
    """A question cannot be answered privately as it is; the fix is the nearest one that can."""


class QueryRefusedError(UnsafeQueryError):
    """An inference control does not permit an answer; ``control`` says which, and no number is told."""

    def __init__(self, problem: str, *, control: str) -> None:
        super().__init__(problem, fix="ask about another group of people, or ask the data owner.")
        self.control = control


class UnsatisfiableError(CloisterError, ValueError):
    """No release can satisfy the models that were asked for."""


class SchemaError(CloisterError, ValueError):
    """A schema or hierarchy is incomplete or contradictory."""


class UnconfirmedSchemaError(SchemaError):
    """Guessed bounds, categories or roles have not been confirmed by a person."""


class UnknownColumnError(SchemaError):
    """A column is not in the schema."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = list(known)
        listing = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        super().__init__(
            f'There is no column "{name}".{did_you_mean(name, names)}',
            fix=f"use one of the schema's columns: {listing}.",
        )
        self.name = name


class HierarchyError(SchemaError):
    """A generalization hierarchy is broken or does not cover a value."""


class DataError(CloisterError):
    """Data could not be read, or is not usable as it is."""


class SourceNotFoundError(DataError):
    """No such file, table or server."""


class SourceUnreachableError(SourceNotFoundError):
    """The database that holds the data does not answer, or refuses this account."""


class ModelError(DataError, ValueError):
    """A saved model is damaged, not a model, or of another version."""


class ReportError(DataError, ValueError):
    """Local reports cannot be used; what they say is never told."""


class MalformedReportError(ReportError):
    """A report is truncated, oversized or outside of the protocol's output space."""


class ForeignReportError(ReportError):
    """A report was made with another protocol, version, domain or epsilon."""


class DuplicateReportError(ReportError):
    """The same submission came twice."""


class TooFewReportsError(ReportError):
    """There are not enough reports for an estimate."""


class AccountingError(CloisterError):
    """Privacy losses could not be added up."""


class BudgetExceededError(AccountingError):
    """A release would spend more than what is left."""

    def __init__(
        self,
        *,
        requested: Fraction,
        remaining: Fraction,
        measure: str = "epsilon",
        whose: str = "",
        fix: str = "",
    ) -> None:
        needed, left = _six_digits(requested, ROUND_UP), _six_digits(remaining, ROUND_DOWN)
        super().__init__(
            f"This release needs {measure} {needed}, but only {left} is left{whose}.",
            fix=fix or _advice(measure, left, remaining),
        )
        self.requested, self.remaining, self.measure = requested, remaining, measure


class UnsupportedEventError(AccountingError):
    """This accountant does not know that event, and does not guess."""


class LedgerError(CloisterError):
    """The budget ledger could not do what was asked."""


class LedgerDamagedError(LedgerError):
    """The hash chain or the file is broken; ``dataset`` and ``entry`` say where, when that is known."""

    def __init__(self, problem: str, *, fix: str = "", dataset: str | None = None, entry: int | None = None) -> None:
        super().__init__(
            problem,
            fix=fix
            or "spend nothing more from it; keep the file, and restore a backup whose head is the one you noted.",
        )
        self.dataset, self.entry = dataset, entry


class LedgerVersionError(LedgerError):
    """The ledger was written by another version of cloister."""


class LedgerUnreachableError(LedgerError):
    """The ledger's database does not answer."""


class AccountMismatchError(LedgerError):
    """An account was used with another budget, unit, neighbor relation or spelling than it has."""


class UnknownAccountError(LedgerError):
    """The ledger has no account for that dataset."""


class CryptoError(CloisterError):
    """A key, or something sealed with one, cannot be made, read or used; no secret is ever told."""


class DecryptionError(CryptoError):
    """The key is wrong, or what was sealed is not as it was; which of the two is not told."""

    def __init__(self) -> None:
        super().__init__(
            "This could not be decrypted.",
            fix="use the master key with all its versions, or restore the file and its key from one backup.",
        )


class ProtocolError(CloisterError):
    """Parties could not finish what they compute together: a message is missing, came twice or makes no sense."""


class HubError(CloisterError):
    """The hub could not do what was asked."""


class NotSignedInError(HubError):
    """Nobody, or nobody whom the hub knows, asks."""


class ForbiddenError(HubError):
    """A policy does not allow it; the sentence says why, without telling more than the person may know."""


class NotFoundError(HubError):
    """It does not exist, or the person may not see that it does."""


class ConflictError(HubError):
    """It exists already, or is not in a state for this."""


class _LaterError(HubError):
    """Not now; ``wait_seconds`` says when to come back, where that is known."""

    def __init__(self, problem: str, *, fix: str, wait_seconds: int | None = None) -> None:
        super().__init__(problem, fix=fix)
        self.wait_seconds = wait_seconds


class TooManyRequestsError(_LaterError):
    """Too often in too short a time; ``wait_seconds`` says when to come back, where that is known."""


class TooLargeError(HubError):
    """More than the hub takes."""


class HubUnavailableError(_LaterError):
    """The hub cannot answer now; ``wait_seconds`` says when to come back, where that is known."""


class PolicyError(HubError, ValueError):
    """A policy of the hub is malformed or contradictory; the problem names the place in it."""


class AuditDamagedError(HubError):
    """The audit log was changed after it was written; ``entry`` says where, when that is known."""

    def __init__(self, problem: str, *, entry: int | None = None) -> None:
        super().__init__(
            problem, fix="keep the log as it is, and compare it with a backup and with heads noted before."
        )
        self.entry = entry


class VerificationError(CloisterError, AssertionError):
    """A check of an algorithm failed; also an assertion error, so that test runners show it as a failure."""


class StatisticalError(VerificationError):
    """A sample does not follow the law that it is said to follow."""


class PrivacyRefutedError(VerificationError):
    """An algorithm does not keep its promise, or the check could not decide."""


class LawViolatedError(VerificationError):
    """A member of a family breaks one of the family's laws."""


class GoldenMismatchError(VerificationError):
    """A worked example does not come out as published."""


class SandboxUnavailableError(CloisterError):
    """Foreign code cannot be confined on this machine, so that it does not run."""


class MissingExtraError(CloisterError, ImportError):
    """An optional package is not installed."""

    def __init__(self, *, what: str, package: str, extra: str) -> None:
        super().__init__(f"{what} need {package}.", fix=f'pip install "cloister[{extra}]"')
        self.package, self.extra = package, extra


class InternalError(CloisterError):
    """An assumption inside cloister is broken."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"This is a bug in cloister: {problem}",
            fix="please report it with the steps that led here; do not use the result.",
        )


class CloisterWarning(UserWarning):
    """The base of every warning of cloister."""


class SeededRandomnessWarning(CloisterWarning):
    """Randomness is predictable: for tests only, nothing made with it is private."""


class PrivacyParameterWarning(CloisterWarning):
    """A privacy parameter is legal but weaker than most people want."""


class DataWarning(CloisterWarning):
    """Data was repaired on reading, for example a duplicate column name."""


def _advice(measure: str, left: str, remaining: Fraction) -> str:
    if remaining <= 0:
        return "repeat questions that were answered, which is free, or have the data owner raise the budget."
    return f"ask for {measure} <= {left}, or have the data owner raise the budget."


def _six_digits(value: Fraction, rounding: str) -> str:
    """Return a number to type, rounded so that following the advice works."""
    quotient = Context(prec=6, rounding=rounding).divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{float(quotient):g}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint with the nearest public name, or an empty string."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f' Did you mean "{near[0]}"?' if near else ""
