"""Checks of private PyTorch modules, run in an environment that has PyTorch; prints "done" if all hold."""

from __future__ import annotations

import re
import sys
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from cloister.accounting import Budget, SequenceEvent, compose, open_ledger
from cloister.core.random import SystemRandomSource
from cloister.errors import BudgetExceededError, CloisterError, SeededRandomnessWarning
from cloister.learn.torch import ROUNDED_TOGETHER, PrivateTorch, _row_gradients, _Rows

FEW: dict[str, Any] = {"epsilon": 8, "delta": 1e-6, "expected_rows": 1000, "sample_rate": 0.1, "epochs": 10}
INPUTS = torch.rand(1000, 3)
SIDES = (INPUTS[:, 0] > INPUTS[:, 1]).long()
WHOLE = {"epsilon": 8, "delta": 1e-6, "sample_rate": 1, "epochs": 1}
"""One step on all rows, for which the noise is known in closed form."""


def network() -> Any:
    return nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2))


def check_a_module_learns_and_pays() -> None:
    module = network()
    with open_ledger("memory:") as ledger:
        ledger.open_account("d", budget=Budget(epsilon=10, delta=1e-5), unit="row", adjacency="add_remove")
        options = {**FEW, "learning_rate": 0.05, "ledger": ledger, "dataset": "d"}
        trainer = PrivateTorch(module=module, **options).fit(INPUTS, SIDES)
        assert ledger.remaining("d").epsilon == 2
        refused(lambda: trainer.fit(INPUTS, SIDES), "epsilon", BudgetExceededError)
    accuracy = float((trainer.predict(INPUTS).argmax(1) == SIDES).double().mean())
    assert accuracy > 0.85, accuracy
    promise = trainer.guarantee_
    assert promise.holds
    assert (promise.epsilon, promise.delta) == (8, Fraction(1, 10**6))
    assert promise.caveats == (ROUNDED_TOGETHER,)
    event = SequenceEvent(events=tuple(step.event for step in trainer.steps_))
    spent = compose(event, epsilon=8, adjacency="add_remove", unit="row").delta
    assert Fraction(9, 10**7) < spent <= Fraction(1, 10**6)
    assert not hasattr(module[0].weight, "grad_sample")


def check_gradients_are_those_of_single_rows() -> None:
    module = network()
    loss = nn.CrossEntropyLoss(reduction="none")
    with _row_gradients(torch, module) as wrapped:
        rows = _Rows(torch, wrapped, loss, INPUTS, SIDES, 7)
        found = rows.clipped_sum(np.arange(20), clip=0.3) * (0.3 / 2**30)
    expected = np.zeros_like(found)
    for place in range(20):
        module.zero_grad()
        loss(module(INPUTS[place : place + 1]), SIDES[place : place + 1]).sum().backward()
        one = np.concatenate([item.grad.reshape(-1).double().numpy() for item in module.parameters()])
        expected += one * min(1.0, 0.3 / float(np.linalg.norm(one)))
    assert np.allclose(found, expected, atol=1e-4)


def check_one_row_at_a_time() -> None:
    trainer = PrivateTorch(module=network(), **WHOLE, rows_at_once=1)
    assert trainer.fit(INPUTS[:50], SIDES[:50]).guarantee_.caveats == ()
    assert [step.label for step in trainer.steps_] == ["number of rows", "noisy gradients of samples"]


def check_other_losses_and_optimizers() -> None:
    module = nn.Linear(3, 1)
    options = {**FEW, "loss": "mse", "optimizer": lambda items: torch.optim.SGD(items, lr=0.3)}
    trainer = PrivateTorch(module=module, **options).fit(INPUTS, INPUTS[:, 0])
    assert float(((trainer.predict(INPUTS)[:, 0] - INPUTS[:, 0]) ** 2).mean()) < 0.05
    custom = PrivateTorch(
        module=network(), loss=lambda found, truth: nn.functional.cross_entropy(found, truth, reduction="none"), **FEW
    )
    custom.fit(INPUTS, SIDES)


def check_refusals() -> None:
    mixing = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))

    class Centered(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, rows: Any) -> Any:
            return self.layer(rows - rows.mean(0))

    cases: list[tuple[dict[str, Any], str]] = [
        ({"module": mixing}, "GroupNorm"),
        ({"module": Centered()}, "one by one"),
        ({"module": "network"}, "network"),
        ({"module": nn.Tanh()}, "train from 1"),
        ({"loss": nn.CrossEntropyLoss()}, "reduction"),
        ({"loss": "hinge"}, "cross_entropy"),
        ({"delta": 0}, "delta"),
        ({"clip": 0}, "clip"),
        ({"rows_at_once": 0}, "rows_at_once"),
    ]
    for options, fix in cases:
        with open_ledger("memory:") as ledger:
            ledger.open_account("d", budget=Budget(epsilon=10, delta=1e-5), unit="row", adjacency="add_remove")
            given = {**FEW, "module": network(), "ledger": ledger, "dataset": "d", **options}
            refused(lambda given=given: PrivateTorch(**given).fit(INPUTS, SIDES), fix)
            assert ledger.remaining("d").epsilon == 10, options
    refused(lambda: PrivateTorch(module=network(), **FEW).fit(INPUTS, SIDES[:9]), "one target")


def check_a_seed_breaks_the_promise() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededRandomnessWarning)
        trainer = PrivateTorch(module=network(), **WHOLE, random_state=1).fit(INPUTS, SIDES)
    assert not trainer.guarantee_.holds
    assert (
        PrivateTorch(module=network(), **WHOLE, random_state=SystemRandomSource()).fit(INPUTS, SIDES).guarantee_.holds
    )


def refused(act: Any, fix: str, kind: type[CloisterError] = CloisterError) -> None:
    try:
        act()
    except kind as error:
        if fix in str(error):
            return
        raise
    raise AssertionError(fix)


def check_the_example_of_the_page(page: Path) -> None:
    blocks = re.findall(r"^```py\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(page), "exec"), {})


if __name__ == "__main__":
    torch.manual_seed(0)
    warnings.simplefilter("error")
    check_a_module_learns_and_pays()
    check_gradients_are_those_of_single_rows()
    check_one_row_at_a_time()
    check_other_losses_and_optimizers()
    check_refusals()
    check_a_seed_breaks_the_promise()
    check_the_example_of_the_page(Path(sys.argv[1]))
    sys.stdout.write("done\n")
