"""One made-up result for each kind of details, in which the attacker succeeded."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from cloister import attacks
from cloister.attacks.anatomy.anatomy_details import Run
from cloister.attacks.auditing.exact_check import check_exactly
from cloister.attacks.synthetic.closest_records import ClosestRecords

SHARED: dict[str, Any] = {
    "attack": "trial",
    "assumption": "knows a lot",
    "success": 0.9,
    "baseline": 0.2,
    "interval": (0.8, 0.95),
    "confidence": 0.95,
    "trials": 50,
    "queries": 100,
    "control": 0.25,
    "control_interval": (0.2, 0.3),
    "mitigation": ("do less",),
    "worst": ((3, 0.75),),
}


def _calibration() -> attacks.Calibration:
    return attacks.calibration_of(np.array([0.25, 0.75, 1.0, 0.5]), np.array([False, True, True, True]))


def _evidence() -> Any:
    def two_coins(answer: str) -> dict[str, Fraction]:
        truth, other = ("yes", "no") if answer == "yes" else ("no", "yes")
        return {truth: Fraction(3, 4), other: Fraction(1, 4)}

    return check_exactly(two_coins, [("yes", "no")], epsilon=1)


_INTERFACE: dict[str, Any] = {"refused": 3, "typical_error": math.nan, "estimates": (1.5, 2.5)}
_SYNTHETIC: dict[str, Any] = {
    "kind": "made up",
    "residual_risk": 0.5,
    "residual_interval": (0.25, 0.75),
    "control_trials": 40,
    "is_telling": True,
    "left_out": ("town", "age"),
}
_NEAR = ClosestRecords(smallest=0.0, median=0.25, mean=0.5, identical=0.125, ratio_smallest=0.5, ratio_median=0.75)

DETAILS: tuple[attacks.AttackDetails, ...] = (
    attacks.AttackDetails(),
    attacks.AnatomyDetails(
        method="exact",
        groups=2,
        sizes=(2, 3),
        without_groups=0.5,
        whole_groups=0.25,
        claim="posterior",
        scores={"posterior": _calibration()},
        group_scores={},
        coverage=((0.5, 0.75, 1.0), (0.9, 0.25, None)),
        runs=(Run(objective=-3.5, success=0.5, iterations=7, converged=True),),
        learned_from=("age", "zip"),
        title="trial",
        guesses=pa.array(["flu", "flu", "none", "flu"]),
        certainty=np.array([0.25, 0.75, 1.0, 0.5]),
    ),
    attacks.AttributeInferenceDetails(prior="imputation", success_on_others=0.5, guesses=(0, 1), values=("a", "b")),
    attacks.AuditDetails(
        mode="exact",
        epsilon=Fraction(1),
        delta=Fraction(0),
        outcome="refuted",
        epsilon_lower=math.log(3),
        tight_epsilon=math.inf,
        limit=0.75,
        pairs=1,
        counterexample=_evidence().counterexample,
        evidence=_evidence(),
    ),
    attacks.AveragingDetails(errors=((1, 2.0), (4, 1.0)), unchanged=1, **_INTERFACE),
    attacks.CensusReconstructionDetails(solutions=3, is_complete=False, certain=0.5),
    attacks.CompromisedRecordsDetails(rank=4, compromised=(1, 5)),
    attacks.CorrelationDetails(gained=1, people=20, unique_before=(0.5, 0.25)),
    attacks.DictionaryDetails(method="sha256", tried=1000, seconds=0.5, finished=False, seconds_to_all=60.0),
    attacks.DisclosureDetails(
        column="illness",
        largest_posterior=0.75,
        prior=0.5,
        classes=4,
        disclosed_classes=2,
        achieved="learns the illness of",
        facts=(("mean belief", 0.625),),
    ),
    attacks.DistanceDetails(
        to_original=_NEAR, to_control=_NEAR, copies=0.125, copies_interval=(0.625, 0.75), **_SYNTHETIC
    ),
    attacks.EncryptionDetails(distinct=7, values_read=0.5),
    attacks.ExtractionDetails(
        method="equations", decimals=2, fidelity=((10, 0.5), (100, 1.0)), coefficient_error=0.25, copy=None
    ),
    attacks.GradientLeakageDetails(batch=1, clip=1.0, noise=0.5, signal_to_noise=31.5, signal_to_noise_of_guess=9.5),
    attacks.IdentificationDetails(hits=4, precision=0.75),
    attacks.InterfaceDetails(**_INTERFACE),
    attacks.IntersectionDetails(candidates=((3.5, 2), (1.0, 1)), resolved=(0.0, 1.0), counted="value", contradicted=1),
    attacks.InversionDetails(access="queries", correlations=(0.5, 0.75), nearest=(0.25, 0.5), inverted=None),
    attacks.LinkageDetails(
        columns=("age", "zip"),
        expected_hits=12.5,
        unique_matches=4,
        largest_risk=1.0,
        marketer_risk=0.25,
        unlinked=1,
        unread=("zip",),
        claims=8,
        precision=0.75,
        recall=0.5,
        tolerated=0.5,
        nearest=((1, 0.5), (5, 0.75)),
        weights=(("age", 2.5),),
        is_scored=True,
    ),
    attacks.LocalReportsDetails(epsilon=1.5, bound=0.875, reports_each=2),
    attacks.MembershipDetails(
        kind="confidence",
        members=25,
        non_members=25,
        auc=0.75,
        auc_interval=(0.625, 0.875),
        rate_at_1_percent=0.5,
        rate_at_01_percent=0.25,
        largest_gap=0.5,
        epsilon_lower=2.5,
        claim=(1.0, 0.125),
        curve=((0.0, 0.0), (0.5, 0.75), (1.0, 1.0)),
        scores=(0.5, 0.25),
        risks=(0.125,),
    ),
    attacks.MinimalityDetails(promised=0.5, largest_posterior=0.75, classes_with_groups=2),
    attacks.ModelDifferenceDetails(
        largest_influence=2.5, typical_influence=math.nan, shifts=((1.0, 2.0),), **_INTERFACE
    ),
    attacks.NodeIdentificationDetails(smallest=1, identified=0.5, candidates=((1, 5), (2, 4))),
    attacks.OneRunDetails(
        canaries=100,
        guesses=(30, 20),
        correct=45,
        epsilon_lower=2.5,
        epsilon=Fraction(1, 2),
        delta=Fraction(1, 8),
        limit=0.625,
    ),
    attacks.ReconstructionDetails(method="least_squares", misfit=math.nan, **_INTERFACE),
    attacks.SinglingOutDetails(columns=3, met_by_nobody=0.5),
    attacks.SparseLinkageDetails(accepted=6, precision=0.5, eccentricity=1.5),
    attacks.StoredRecordsDetails(places=("model._fit_X",), found=45),
    attacks.SyntheticDetails(**_SYNTHETIC),
    attacks.SyntheticMembershipDetails(area=0.75, ceiling=0.5, refuted=True, evidence=None),  # type: ignore[arg-type]
    attacks.TableMembershipDetails(delta=(0.25, 1.0), surely_in=0.5, surely_out=0.125, is_scored=True),
    attacks.TrajectoryUniquenessDetails(points=3, typical_candidates=2.0),
    attacks.UniquenessDetails(columns=("age", "zip"), subsets=((("age",), 0.25), (("age", "zip"), 0.75))),
)

RESULTS: dict[str, attacks.AttackResult] = {
    type(details).__name__: attacks.AttackResult(details=details, **SHARED) for details in DETAILS
}
