"""How good a synthetic table is: fidelity, utility, and evidence about privacy."""

from cloister.synth.evaluation.evaluating import evaluate
from cloister.synth.evaluation.membership import Membership, membership
from cloister.synth.evaluation.privately import PrivateEvaluation, evaluate_privately
from cloister.synth.evaluation.result import Evaluation

__all__ = ["Evaluation", "Membership", "PrivateEvaluation", "evaluate", "evaluate_privately", "membership"]
