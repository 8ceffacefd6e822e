"""The tables of the hub, one module per area."""

from cloister.hub.store.models.accounts import (
    ApiToken,
    Enrolment,
    Identity,
    KnownBrowser,
    LoginSession,
    Organisation,
    RecoveryCode,
    SignInTries,
    UsedState,
    User,
)
from cloister.hub.store.models.algorithms import AlgorithmAllowance, AlgorithmVersion, HubAlgorithm
from cloister.hub.store.models.base import Base, exact_now, new_id, now
from cloister.hub.store.models.datasets import AccessRequestRecord, Dataset, DatasetVersion, PolicyVersion
from cloister.hub.store.models.hub_records import AuditEntry, HubFolder, NoticeRecord
from cloister.hub.store.models.jobs import AnswerHistory, Job, ResultRecord, Spending
from cloister.hub.store.models.surveys import (
    HubSurvey,
    SurveyInvitation,
    SurveyReport,
    SurveySignature,
    SurveyUsedId,
)

__all__ = [
    "AccessRequestRecord",
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
    "NoticeRecord",
    "Organisation",
    "PolicyVersion",
    "RecoveryCode",
    "ResultRecord",
    "SignInTries",
    "Spending",
    "SurveyInvitation",
    "SurveyReport",
    "SurveySignature",
    "SurveyUsedId",
    "UsedState",
    "User",
    "exact_now",
    "new_id",
    "now",
]
