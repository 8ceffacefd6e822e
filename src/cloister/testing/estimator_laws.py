"""The laws of private estimators: what is paid and when, what is promised, and what a saved model may hold.

    laws = EstimatorLaws(kind=PrivateGaussianNB)

    @pytest.mark.parametrize("law", laws, ids=str)
    def test_my_estimator(law):
        law.verify()

The rows are made up: two groups of people, told apart by two columns. One person is marked with digits that must not be
found in a saved model. Audits and statistics of the noise are the estimator's own tests.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from cloister.accounting.budget import Budget
from cloister.accounting.events import SequenceEvent
from cloister.accounting.ledger import Ledger, open_ledger
from cloister.core.guarantees import SEEDED_RANDOMNESS, Adjacency
from cloister.core.random import SeededRandomSource, integers_below
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import AccountingError, CloisterError
from cloister.testing.laws import Laws, law_violation, must_refuse

__all__ = ["EstimatorLaws", "PrivateProblem"]

_CANARY = 3.141592871
_BAD_EPSILONS = (0, -1, float("nan"), float("inf"), "much", None)
_ACCOUNT = "people"
_ROWS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateProblem:
    """Rows to learn from, and what is public about them.

    Attributes:
        columns: the features by name.
        target: the target, one per row.
        facts: the public parameters that an estimator needs.
    """

    columns: dict[str, list[Any]]
    target: list[Any]
    facts: dict[str, Any]

    @classmethod
    def for_kind(cls, kind: Any, *, rows: int = _ROWS) -> PrivateProblem:
        """Return made-up rows that a kind of estimator can learn from."""
        numbers = integers_below(SeededRandomSource(rows), 10**6, 2 * rows).reshape(rows, 2) / 10**6
        group = np.arange(rows) % 2
        facts: dict[str, Any] = {}
        if kind.encodes == "codes":
            letters = np.array(["a", "b", "c"])
            columns = {
                "first": letters[np.where(numbers[:, 0] < 0.8, group, 2)].tolist(),
                "second": letters[np.where(numbers[:, 1] < 0.8, 1 - group, 2)].tolist(),
            }
            facts["domain"] = {"first": ["a", "b", "c"], "second": ["a", "b", "c"]}
        else:
            first, second = 1 + numbers[:, 0] * 3 + 4 * group, 2 + numbers[:, 1] * 6
            first[0] = _CANARY
            columns = {"first": first.tolist(), "second": second.tolist()}
            facts["bounds"] = {"first": (0, 10), "second": (0, 10)}
        if kind.target == "classes":
            facts["classes"] = ["no", "yes"]
            return cls(columns=columns, target=np.array(["no", "yes"])[group].tolist(), facts=facts)
        if kind.target == "number":
            facts["target_bounds"] = (0, 10)
        return cls(columns=columns, target=(2 + 5 * group + numbers[:, 1]).tolist(), facts=facts)

    def table(self) -> Table:
        """Return the rows as a table."""
        return open_table(pa.table({**self.columns, "target": self.target}))

    def frame(self) -> Any:
        """Return the features as a data frame."""
        import pandas as pd

        return pd.DataFrame(self.columns)

    def empty(self) -> Table:
        """Return a table with the same columns and no rows."""
        whole = pa.table({**self.columns, "target": self.target})
        return open_table(whole.slice(0, 0))


@dataclass(frozen=True, kw_only=True)
class EstimatorLaws(Laws):
    """The laws of private estimators.

    Attributes:
        kind: the class.
        options: parameters that it needs besides public facts, such as a delta.
        problem: what it learns from.
    """

    kind: Any
    options: dict[str, Any] = field(default_factory=dict)
    problem: PrivateProblem | None = None

    # Parameters ------------------------------------------------------------------------------------------------------

    def law_constructor_only_stores(self) -> None:
        """Any parameter is accepted as it is; checking is for fit."""
        strange = {name: object() for name in self.kind().get_params(deep=False)}
        made = self.kind(**strange)
        if any(made.get_params(deep=False)[name] is not value for name, value in strange.items()):
            raise law_violation("The constructor changes a parameter", "store it, and check it in fit.")
        again = self.kind().set_params(**strange)
        if any(getattr(again, name) is not value for name, value in strange.items()):
            raise law_violation("set_params does not set a parameter", "use the names of the constructor.")

    def law_clones_are_alike_and_share_the_ledger(self) -> None:
        """A clone has the same parameters, is not fitted, and pays to the same ledger."""
        from sklearn.base import clone

        ledger = _book()
        made = self._make(ledger=ledger, dataset=_ACCOUNT)
        self._fit(made)
        copied = clone(made)
        if copied.ledger is not ledger or hasattr(copied, "guarantee_"):
            raise law_violation("A clone has another ledger, or is fitted", "keep __sklearn_clone__ of the base.")
        if copied.get_params(deep=False).keys() != made.get_params(deep=False).keys():
            raise law_violation("A clone has other parameters", "let the constructor store all of them.")

    def law_fit_does_not_change_parameters(self) -> None:
        """What was given stays as it was given."""
        made = self._make()
        before = dict(made.get_params(deep=False))
        self._fit(made)
        if any(made.get_params(deep=False)[name] is not value for name, value in before.items()):
            raise law_violation("fit changes a parameter", "keep what is derived in an attribute that ends in _.")

    # Paying ----------------------------------------------------------------------------------------------------------

    def law_missing_facts_are_refused_before_paying(self) -> None:
        """Without bounds, values or classes nothing is learned and nothing is paid."""
        for missing in self._problem.facts:
            ledger = _book()
            made = self._make(ledger=ledger, dataset=_ACCOUNT, **{missing: None})
            must_refuse(partial(self._fit, made), f"no {missing}")
            self._unpaid(ledger, f"no {missing}")

    def law_bad_epsilons_are_refused_before_paying(self) -> None:
        """An epsilon that is not a positive number is refused with a fix."""
        for epsilon in _BAD_EPSILONS:
            ledger = _book()
            must_refuse(partial(self._fit, self._make(ledger=ledger, dataset=_ACCOUNT, epsilon=epsilon)), "an epsilon")
            self._unpaid(ledger, "an epsilon that is no price")

    def law_odd_rows_are_refused_before_paying_and_not_quoted(self) -> None:
        """Rows that cannot be learned from are refused to whoever holds them, for free."""
        frame, target = self._problem.frame(), self._problem.target
        odd = frame.astype(object)
        odd.iloc[0, 0] = 8128003 if self.kind.encodes == "codes" else "secret-8128003"
        short = target[:-1]
        for rows, labels in ((odd, target), (frame, short), (frame.iloc[:0], [])):
            if self.kind.target == "none" and labels is short:
                continue
            ledger = _book()
            made = self._make(ledger=ledger, dataset=_ACCOUNT)
            error = must_refuse(partial(made.fit, rows, labels), "rows that cannot be learned from")
            if "8128003" in str(error):
                raise law_violation("An error quotes a private value", "say what is wrong without the value.")
            self._unpaid(ledger, "rows that cannot be learned from")

    def law_each_fit_is_paid(self) -> None:
        """A fit returns the estimator and costs what it promises, again each time; without steps it is free."""
        ledger = _book()
        made = self._make(ledger=ledger, dataset=_ACCOUNT)
        for times in (1, 2):
            if self._fit(made) is not made:
                raise law_violation("fit does not return the estimator", "return self.")
            self._use(made)
            if ledger.spent(_ACCOUNT).amount != (times * made.guarantee_.epsilon if made.steps_ else 0):
                raise law_violation("A fit does not cost what it promises", "pay once for each fit.")

    def law_a_table_is_not_looked_at_before_paying(self) -> None:
        """Whether a table is refused does not depend on its rows: one without any is learned from."""
        made = self._make()
        made.fit(self._problem.empty(), self._label)
        self._use(made)

    # Promise ---------------------------------------------------------------------------------------------------------

    def law_guarantee_states_the_parameters(self) -> None:
        """The guarantee has the epsilon, delta and relation that were asked for."""
        for epsilon in (Fraction(1, 2), Fraction(3)):
            for adjacency in (Adjacency.ADD_REMOVE, Adjacency.REPLACE):
                made = self._fit(self._make(epsilon=epsilon, adjacency=adjacency))
                promise, delta = made.guarantee_, getattr(made.guarantee_, "delta", 0)
                asked = (epsilon, Fraction(str(self.options.get("delta", 0))), adjacency)
                if not made.steps_:  # what takes nothing from the rows costs nothing
                    asked = (Fraction(0), Fraction(0), adjacency)
                if (promise.epsilon, delta, promise.adjacency) != asked or not promise.holds:
                    raise law_violation("The guarantee is not what was asked for", "use the calibration's.")

    def law_steps_cost_no_more_than_the_promise(self) -> None:
        """What the steps lose together is within the guarantee."""
        for epsilon in (Fraction(1, 10), Fraction(2)):
            made = self._fit(self._make(epsilon=epsilon))
            if not made.steps_:
                continue
            event = SequenceEvent(events=tuple(step.event for step in made.steps_))
            try:
                _book().spend(_ACCOUNT, guarantee=made.guarantee_, event=event)
            except AccountingError:
                raise law_violation(
                    "The steps lose more than the guarantee admits", "let shares add up to one."
                ) from None

    def law_steps_do_not_depend_on_the_rows(self) -> None:
        """The plan is made from public facts: other rows, and another number of them, change nothing."""
        few = PrivateProblem.for_kind(self.kind, rows=_ROWS // 2) if self.problem is None else self.problem
        plans = [self._make().fit(problem.frame(), problem.target).steps_ for problem in (self._problem, few)]
        if plans[0] != plans[1]:
            raise law_violation("The plan depends on the rows", "plan from the facts and the calibration alone.")

    def law_tables_and_frames_agree(self) -> None:
        """A table and a data frame with the same rows have the same promise, plan and encoding."""
        made = [self._fit(self._make()), self._make().fit(self._problem.table(), self._label)]
        for name in ("guarantee_", "steps_", "encoding_"):
            if getattr(made[0], name) != getattr(made[1], name):
                raise law_violation(f"A table and a frame differ in {name}", "plan from the facts alone.")

    def law_persons_are_a_group_of_rows(self) -> None:
        """A person with at most three rows is protected by a third of epsilon for each."""
        rows = pa.table({**self._problem.columns, "target": self._problem.target})
        table = open_table(rows.append_column("person", pa.array([place // 4 for place in range(rows.num_rows)])))
        made = self._make(unit="person", max_rows_per_unit=3).fit(table, self._label)
        if made.guarantee_.unit != "person":
            raise law_violation("The guarantee does not name the person", "use the calibration's.")
        if not self.options.get("delta"):
            single = self._fit(self._make(epsilon=Fraction(self._epsilon) / 3))
            if single.steps_ != made.steps_:
                raise law_violation("Persons do not get the noise of a group", "take epsilon from the calibration.")

    # Randomness ------------------------------------------------------------------------------------------------------

    def law_seed_repeats_and_taints(self) -> None:
        """The same source gives the same model, and breaks the promise."""
        pair = [self._fit(self._make(random_state=SeededRandomSource(4711))) for _ in range(2)]
        if _dump_learned(pair[0]) != _dump_learned(pair[1]):
            raise law_violation("A seed does not give the same model again", "draw from the source alone.")
        if pair[0].guarantee_.holds or SEEDED_RANDOMNESS not in pair[0].guarantee_.caveats:
            raise law_violation("A seed does not break the guarantee", "keep fit of the base.")

    def law_default_randomness_is_secure(self) -> None:
        """Without a random_state the promise holds and models differ."""
        models = [self._fit(self._make(epsilon=Fraction(1, 10))) for _ in range(6)]
        if not all(model.guarantee_.holds for model in models):
            raise law_violation("The default randomness breaks the guarantee", "use the source that fit passes.")
        if models[0].steps_ and len({_dump_learned(model) for model in models}) == 1:
            raise law_violation("Six models are all alike", "put noise on what is learned.")

    # Saved models ----------------------------------------------------------------------------------------------------

    def law_saved_models_are_the_same(self) -> None:
        """A model survives JSON: it predicts the same and promises the same."""
        from cloister.learn.persistence import document_of, model_of

        made = self._fit(self._make())
        again = model_of(json.loads(json.dumps(document_of(made), allow_nan=False)))
        if again.guarantee_ != made.guarantee_ or again.steps_ != made.steps_:
            raise law_violation("A saved model promises something else", "keep the base's attributes.")
        if not np.array_equal(np.asarray(self._use(again)), np.asarray(self._use(made))):
            raise law_violation("A saved model predicts something else", "list every learned attribute in learned.")
        lost = {name for name in vars(made) if name.endswith("_")} - set(vars(again))
        if lost:
            raise law_violation(f"A saved model loses {', '.join(sorted(lost))}", "list it in learned.")

    def law_saved_models_hold_no_row(self) -> None:
        """No number of the rows is in the file: no canary, and no exact smallest or largest value."""
        from cloister.learn.persistence import document_of

        text = json.dumps(document_of(self._fit(self._make())))
        columns = [column for column in self._problem.columns.values() if isinstance(column[0], float)]
        extremes = [end for column in columns for end in (min(column), max(column))]
        if str(_CANARY) in text or any(repr(end) in text for end in extremes):
            raise law_violation("A saved model holds a number of the rows", "keep noisy numbers only.")

    # Parts -----------------------------------------------------------------------------------------------------------

    @property
    def _problem(self) -> PrivateProblem:
        return PrivateProblem.for_kind(self.kind) if self.problem is None else self.problem

    @property
    def _label(self) -> str | None:
        return None if self.kind.target == "none" else "target"

    @property
    def _epsilon(self) -> Any:
        return self.options.get("epsilon", 3)

    def _make(self, **changes: Any) -> Any:
        given = {"epsilon": self._epsilon, "features": ["first", "second"], **self._problem.facts, **self.options}
        return self.kind(**{**given, **changes})

    def _fit(self, made: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return made.fit(self._problem.frame(), None if self.kind.target == "none" else self._problem.target)

    def _use(self, made: Any) -> Any:
        return (
            made.predict(self._problem.frame()) if hasattr(made, "predict") else made.transform(self._problem.frame())
        )

    def _unpaid(self, ledger: Ledger, what: str) -> None:
        if ledger.spent(_ACCOUNT).amount:
            raise law_violation(f"{what} is refused after paying", "refuse it in _plan, from public facts.")


def _book() -> Ledger:
    ledger = open_ledger("memory:")
    ledger.open_account(_ACCOUNT, budget=Budget(epsilon=Fraction(100), delta=Fraction(1, 2)))
    return ledger


def _dump_learned(model: Any) -> str:
    from cloister.learn.persistence import document_of

    return json.dumps(document_of(model)["learned"])


def find_needed_options(kind: Any) -> dict[str, Any]:
    """Return a delta if a kind of estimator does not learn without one."""
    laws = EstimatorLaws(kind=kind)
    try:
        laws._fit(laws._make())  # noqa: SLF001  # its own parts
    except CloisterError:
        return {"delta": Fraction(1, 10**5)}
    return {}
