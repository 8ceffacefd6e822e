"""How good a synthetic table is: fidelity, utility, and evidence about privacy."""

from cloister.synth.evaluation.membership import Membership, membership
from cloister.synth.evaluation.private_evaluation import PrivateEvaluation, evaluate_privately
from cloister.synth.evaluation.quality import Evaluation, evaluate

__all__ = ["Evaluation", "Membership", "PrivateEvaluation", "evaluate", "evaluate_privately", "membership"]
