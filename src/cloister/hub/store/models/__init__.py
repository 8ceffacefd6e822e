"""The tables of the hub, one module per area."""

from cloister.hub.store.models.algorithms import AlgorithmAllowance, AlgorithmVersion, HubAlgorithm
from cloister.hub.store.models.audit import AuditEntry, Notice
from cloister.hub.store.models.base import Base, new_id, now
from cloister.hub.store.models.datasets import AccessRequest, Dataset, DatasetVersion, PolicyVersion
from cloister.hub.store.models.folders import HubFolder
from cloister.hub.store.models.histories import AnswerHistory
from cloister.hub.store.models.jobs import Job, Result, Spending
from cloister.hub.store.models.people import ApiToken, LoginSession, Organisation, User
from cloister.hub.store.models.sign_in import (
    Enrolment,
    Identity,
    KnownBrowser,
    RecoveryCode,
    SignInTries,
    UsedState,
)
from cloister.hub.store.models.surveys import (
    HubSurvey,
    SurveyInvitation,
    SurveyReport,
    SurveySignature,
    SurveyUsedId,
)

__all__ = [
    "AccessRequest",
    "AlgorithmAllowance",
    "AlgorithmVersion",
    "AnswerHistory",
    "ApiToken",
    "AuditEntry",
    "Base",
    "Dataset",
    "DatasetVersion",
    "Enrolment",
    "HubAlgorithm",
    "HubFolder",
    "HubSurvey",
    "Identity",
    "Job",
    "KnownBrowser",
    "LoginSession",
    "Notice",
    "Organisation",
    "PolicyVersion",
    "RecoveryCode",
    "Result",
    "SignInTries",
    "Spending",
    "SurveyInvitation",
    "SurveyReport",
    "SurveySignature",
    "SurveyUsedId",
    "UsedState",
    "User",
    "new_id",
    "now",
]
