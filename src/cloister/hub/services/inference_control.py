"""Questions under inference control: exact answers about groups, for datasets whose owners chose that at opening.

This is not differential privacy. What may be answered depends on what the organisation was answered before, and on the
rows; so a refusal is an answer like any other: it is the result of a run, it appears at the same moments, and it is
remembered where it tells something.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import Field

from cloister.core.digests import chain_digest
from cloister.errors import InternalError, QueryRefusedError
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import Mode
from cloister.hub.domain.views import check_query
from cloister.hub.services.protected_tables import csv_file, with_unit
from cloister.hub.services.registry import ServiceOutcome, ServiceParameters, ServicePlan, ServiceWork, service_registry
from cloister.hub.use_cases.datasets.modes import controls_of
from cloister.queries.inference_control import Answered, ControlledFrame, ControlledTable, Controls, check_question
from cloister.queries.inference_control.controlled_table import NOT_PRIVATE

_LABEL = "This is not differential privacy: answers are exact, and questions that are known to be harmful are refused."
_TOGETHER = "Everybody of your organisation is answered from one history; several organisations could combine answers."
_SCHEMA = "cloister.remembered_answers/1"


class ControlledQuestion(ServiceParameters):
    """A question in SQL."""

    sql: str = Field(
        title="SQL",
        max_length=20_000,
        description='Counts, sums and means of the table "data", by WHERE and GROUP BY.',
        examples=["SELECT sex, COUNT(*) AS n, AVG(salary) AS pay FROM data GROUP BY sex"],
    )


class RememberedAnswers:
    """The history of one organisation, as a run read it; what it becomes is kept with the run's result.

    Rows are known by their place in one version of the dataset. People of an organisation may see different columns of
    it, so that there is a fingerprint for each set of columns.
    """

    def __init__(self, values: dict[str, Any] | None, *, version: str, columns: tuple[str, ...]) -> None:
        self._version, self._columns = version, chain_digest(list(columns))
        self._fingerprints: dict[str, str] = {} if values is None else dict(values["fingerprints"])
        self._answered = Answered() if values is None else Answered.from_dict(values["answered"])
        if values is not None and (values["schema"], values["version"]) != (_SCHEMA, version):
            raise InternalError("answers were remembered about another version of the dataset")

    @contextmanager
    def exclusive(self) -> Iterator[Answered]:
        """Return what was answered; whether it is still the newest is checked when the result is kept."""
        before, known = self._answered, self._fingerprints.get(self._columns)
        draft = replace(before.draft(), rows=None if known is None else before.rows, fingerprint=known or "")
        yield draft
        if before.rows not in (None, draft.rows):
            raise InternalError("a version of a dataset has changed its number of rows")
        self._fingerprints[self._columns] = draft.fingerprint
        self._answered = draft

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; they are protected like the table."""
        return {
            "schema": _SCHEMA,
            "version": self._version,
            "fingerprints": self._fingerprints,
            "answered": self._answered.to_dict(),
        }


class AskUnderControl:
    """Questions under inference control."""

    name: ClassVar[str] = "query.controlled"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Ask under inference control"
    summary: ClassVar[str] = "Exact counts, sums and means of groups; risky ones are refused. Not differential privacy."
    operation: ClassVar[PolicyOperation] = PolicyOperation.QUERY_AGGREGATE
    modes: ClassVar[frozenset[str]] = frozenset({str(Mode.SDC)})
    parameters: ClassVar[type[ServiceParameters]] = ControlledQuestion
    needs_approval: ClassVar[bool] = False
    owners_only: ClassVar[bool] = False
    page: ClassVar[str] = "service.html"

    def plan(self, work: ServiceWork, parameters: ControlledQuestion) -> ServicePlan:
        """Check that the question is understood, whatever the rows are; it costs nothing."""
        rows = with_unit(work)
        controls = controls_of(work.facts).about(rows.columns)
        check_question(rows, parameters.sql, controls=controls)
        check_query(parameters.sql, {"data": work.rights})
        return ServicePlan(
            guarantee=None,
            preview={"text": _in_words(controls), "controls": controls.to_dict(), "sql": parameters.sql},
            warnings=(_LABEL, _TOGETHER),
        )

    def run(self, work: ServiceWork, parameters: ControlledQuestion) -> ServiceOutcome:
        """Answer or refuse, and say what is to be remembered."""
        work.progress(0.1, "reading the rows")
        rows = with_unit(work)
        history = RememberedAnswers(work.remembered, version=work.version, columns=rows.columns)
        table = ControlledTable(rows, controls=controls_of(work.facts).about(rows.columns), history=history)
        work.progress(0.5, "deciding")
        try:
            frame = table.sql(parameters.sql)
        except QueryRefusedError as refusal:
            return _give_refusal(refusal, history)
        return _give_answer(frame, history)


service_registry.register(AskUnderControl.name)(AskUnderControl())


def _give_answer(frame: ControlledFrame, history: RememberedAnswers) -> ServiceOutcome:
    return ServiceOutcome(
        document=frame.to_dict(),
        summary=tuple((str(name), str(text)) for name, text in frame.summary()),
        guarantee=frame.guarantee.to_dict(),
        files=(csv_file("answer.csv", frame.to_arrow()),),
        remembered=history.to_dict(),
    )


def _give_refusal(refusal: QueryRefusedError, history: RememberedAnswers) -> ServiceOutcome:
    """Return a refusal as a result; it names the control, and no numbers."""
    return ServiceOutcome(
        document={
            "schema": "cloister.controlled_refusal/1",
            "guarantee": NOT_PRIVATE.to_dict(),
            "control": refusal.control,
            "problem": refusal.problem,
            "fix": refusal.fix,
        },
        summary=(("refused", refusal.problem), ("what to do", refusal.fix), ("promise", NOT_PRIVATE.explain())),
        guarantee=NOT_PRIVATE.to_dict(),
        remembered=history.to_dict(),
    )


def _in_words(controls: Controls) -> str:
    told = []
    if controls.min_size is not None:
        told.append(f"A question must be about at least {controls.min_size} rows, and leave out as many.")
    if controls.max_overlap is not None:
        told.append(f"Two questions may share at most {controls.max_overlap} rows.")
    if controls.audit:
        told.append("Sums are refused from which, with earlier ones, somebody's value would follow.")
    if any((controls.counts, controls.sums, controls.means)):
        told.append("Numbers are rounded.")
    for name, points in controls.cut_points.items():
        told.append(f"Conditions may cut {name} at {', '.join(map(str, points))} only.")
    told.append("Conditions on other sensitive columns are refused.")
    told.append(f"Your organisation may ask for {controls.max_questions:,} numbers; refused and repeated ones count.")
    return "\n".join(told)
