"""Local differential privacy: each person's device changes the value before anyone receives it.

    protocol = cloister.local.OptimizedUnaryEncoding(domain=["a", "b", "c"], epsilon=1.0)
    reports = protocol.randomize(values)
    estimate = protocol.estimate(reports)

A protocol is public and shared by devices and collector. Devices call `randomize`, in Python or in the browser, and
only reports leave them; the collector calls `estimate`.
"""

from __future__ import annotations

from cloister.local.collection.attributes import SeveralAttributes
from cloister.local.collection.joint_estimates import consistent_together, with_known_counts
from cloister.local.collection.levels import LEVELS, LeveledQuestion, PrivacyLevels
from cloister.local.collection.longitudinal import MemoizedDevice, MemoizedQuestion, RepeatedDevice, RepeatedQuestion
from cloister.local.collection.respondent import Respondent
from cloister.local.collection.shuffle_model import shuffled
from cloister.local.collection.stratification import LeveledEstimate
from cloister.local.domain import Domain
from cloister.local.estimates import FrequencyEstimate, MeanEstimate
from cloister.local.frequency.hadamard import HadamardResponse
from cloister.local.frequency.hashing import OptimizedLocalHashing
from cloister.local.frequency.histogram import SummationHistogramEncoding, ThresholdHistogramEncoding
from cloister.local.frequency.pram import Pram
from cloister.local.frequency.randomized_response import DirectEncoding, RandomizedResponse
from cloister.local.frequency.rappor import Rappor, RapporDevice
from cloister.local.frequency.subset import SubsetSelection
from cloister.local.frequency.unary import OptimizedUnaryEncoding, SymmetricUnaryEncoding, UnarySet
from cloister.local.heavy_hitters import FrequentValues, HeavyHitters
from cloister.local.naive_bayes.categorical_model import LocalCategoricalNaiveBayes
from cloister.local.naive_bayes.features import Bins
from cloister.local.naive_bayes.gaussian_model import LocalGaussianNaiveBayes
from cloister.local.naive_bayes.projection import PublicProjection
from cloister.local.numeric.base import NumericProtocol, VectorEstimate, VectorProtocol
from cloister.local.numeric.duchi import Duchi, DuchiVector
from cloister.local.numeric.hybrid import Hybrid
from cloister.local.numeric.laplace import LaplaceVector, LocalLaplace
from cloister.local.numeric.piecewise import Piecewise, PiecewiseVector
from cloister.local.numeric.square_wave import DistributionEstimate, SquareWave
from cloister.local.poisoning import PoisoningBound, ReportCheck, check_reports, poisoning_bound
from cloister.local.protocol import Protocol, open_protocol, protocols
from cloister.local.recommendation import NumericRecommendation, Recommendation, recommend, recommend_numeric
from cloister.local.reports import LocalReport, Reports
from cloister.local.survey import Collector, Survey, SurveyQuestion

__all__ = [
    "LEVELS",
    "Bins",
    "Collector",
    "DirectEncoding",
    "DistributionEstimate",
    "Domain",
    "Duchi",
    "DuchiVector",
    "FrequencyEstimate",
    "FrequentValues",
    "HadamardResponse",
    "HeavyHitters",
    "Hybrid",
    "LaplaceVector",
    "LeveledEstimate",
    "LeveledQuestion",
    "LocalCategoricalNaiveBayes",
    "LocalGaussianNaiveBayes",
    "LocalLaplace",
    "LocalReport",
    "MeanEstimate",
    "MemoizedDevice",
    "MemoizedQuestion",
    "NumericProtocol",
    "NumericRecommendation",
    "OptimizedLocalHashing",
    "OptimizedUnaryEncoding",
    "Piecewise",
    "PiecewiseVector",
    "PoisoningBound",
    "Pram",
    "PrivacyLevels",
    "Protocol",
    "PublicProjection",
    "RandomizedResponse",
    "Rappor",
    "RapporDevice",
    "Recommendation",
    "RepeatedDevice",
    "RepeatedQuestion",
    "ReportCheck",
    "Reports",
    "Respondent",
    "SeveralAttributes",
    "SquareWave",
    "SubsetSelection",
    "SummationHistogramEncoding",
    "Survey",
    "SurveyQuestion",
    "SymmetricUnaryEncoding",
    "ThresholdHistogramEncoding",
    "UnarySet",
    "VectorEstimate",
    "VectorProtocol",
    "check_reports",
    "consistent_together",
    "open_protocol",
    "poisoning_bound",
    "protocols",
    "recommend",
    "recommend_numeric",
    "shuffled",
    "with_known_counts",
]
