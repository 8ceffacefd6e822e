"""Synthetic tables: rows that look like the data, drawn from what was measured under differential privacy."""

from cloister.synth.adaptive import AdaptiveMarginals
from cloister.synth.base import Synthesizer, synthesizers
from cloister.synth.bayesian_network import BayesianNetwork
from cloister.synth.constraints import AtMost, Determines, Impossible, SumOf
from cloister.synth.deniability import plausible_deniability
from cloister.synth.documents import load
from cloister.synth.evaluation import (
    Evaluation,
    Membership,
    PrivateEvaluation,
    evaluate,
    evaluate_privately,
    membership,
)
from cloister.synth.grouped_gaussian import GroupedGaussian
from cloister.synth.histogram import HistogramSynthesizer, RangeCount
from cloister.synth.k_anonymous import KAnonymousSynthesizer
from cloister.synth.marginal_based import IndependentMarginals
from cloister.synth.microaggregated import MicroaggregatedGaussian
from cloister.synth.multiplicative_weights import MultiplicativeWeights
from cloister.synth.spanning_tree import SpanningTree

__all__ = [
    "AdaptiveMarginals",
    "AtMost",
    "BayesianNetwork",
    "Determines",
    "Evaluation",
    "GroupedGaussian",
    "HistogramSynthesizer",
    "Impossible",
    "IndependentMarginals",
    "KAnonymousSynthesizer",
    "Membership",
    "MicroaggregatedGaussian",
    "MultiplicativeWeights",
    "PrivateEvaluation",
    "RangeCount",
    "SpanningTree",
    "SumOf",
    "Synthesizer",
    "evaluate",
    "evaluate_privately",
    "load",
    "membership",
    "plausible_deniability",
    "synthesizers",
]
