"""Every action that a route can take: who may try it, by a token or only signed in, and what it takes besides.

A route without an action cannot be made, and an action that is not in this table does not exist. Actions of several
modules are named here; a page that is made with its twin in one module may define its own there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from cloister.errors import InternalError
from cloister.hub.domain.roles import AccountRole


class ObjectRelation(StrEnum):
    """What somebody can be to an object."""

    OWNER = "owner"
    REQUESTER = "requester"
    SELF = "self"
    PROVIDER = "provider"
    MEMBER = "member"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something that a route does.

    Attributes:
        name: the name that tokens, audits and tables use, such as "dataset.query".
        sentence: what it does, for a person.
        roles: platform roles that may try it; empty for everybody who is signed in.
        is_public: whether it needs no account.
        target: the kind of object it is about, whose id is in the path, or None.
        relations: what the person must be to the target, one of them; empty where any will do.
        operation: the operation that the target's policy must allow, where no relation helps.
        is_audited: whether allowed decisions are kept in the audit log; refused ones always are.
        needs_sign_in: whether the person must have signed in, so that no token will do, whatever its scopes.
    """

    name: str
    sentence: str
    roles: frozenset[AccountRole] = frozenset()
    is_public: bool = False
    target: str | None = None
    relations: frozenset[ObjectRelation] = frozenset()
    operation: str | None = None
    is_audited: bool = False
    needs_sign_in: bool = False


_ACTIONS: dict[str, Action] = {}


def define(
    name: str,
    sentence: str,
    *roles: AccountRole,
    public: bool = False,
    target: str | None = None,
    relations: tuple[ObjectRelation, ...] = (),
    operation: str | None = None,
    audited: bool = False,
    by_token: bool = True,
) -> Action:
    """Add an action to the table."""
    if name in _ACTIONS:
        raise InternalError(f'two actions are called "{name}"')
    action = Action(
        name=name,
        sentence=sentence,
        roles=frozenset(roles),
        is_public=public,
        target=target,
        relations=frozenset(relations),
        operation=operation,
        is_audited=audited,
        needs_sign_in=not by_token,
    )
    _ACTIONS[name] = action
    return action


def all_actions() -> Iterator[Action]:
    """Iterate over every action, in the order of the table."""
    return iter(_ACTIONS.values())


# Everybody -----------------------------------------------------------------------------------------------------------

HEALTH = define("hub.health", "see that the hub runs", public=True)
METRICS = define("hub.metrics", "read the hub's own measurements", AccountRole.OPERATOR)
READ_PUBLIC = define("hub.read", "read public pages, their style and their code", public=True)
SIGN_IN = define("session.open", "sign in", public=True)
SIGN_OUT = define("session.close", "sign out", by_token=False)
SEE_SELF = define("account.see", "see one's own account")
CHANGE_SELF = define(
    "account.change", "change one's own password, second factor and tokens", audited=True, by_token=False
)
SEE_HOME = define("home.see", "see one's own start page and notices")
ENROL = define("account.enrol", "set a password by a one-time link", public=True)

# Accounts ------------------------------------------------------------------------------------------------------------

LIST_ACCOUNTS = define("accounts.list", "list accounts and organisations", AccountRole.OPERATOR)
MANAGE_ACCOUNTS = define(
    "accounts.manage", "make, change and close accounts and organisations", AccountRole.OPERATOR, audited=True
)
SEE_CONFIRMATIONS = define(
    "accounts.waiting",
    "see who waits for one's confirmation, as a data owner or to have a sign-in set or reset",
    AccountRole.DATA_OWNER,
    AccountRole.AUDITOR,
    AccountRole.OPERATOR,
)
CONFIRM_RESET = define(
    "accounts.reset",
    "confirm, as a second person, that a data owner's, operator's or auditor's sign-in is set or reset",
    AccountRole.DATA_OWNER,
    AccountRole.AUDITOR,
    AccountRole.OPERATOR,
    audited=True,
    by_token=False,
)
CONFIRM_ACCOUNT = define(
    "accounts.confirm",
    "confirm a new data owner of one's own institution, or of one that has none left",
    AccountRole.DATA_OWNER,
    AccountRole.AUDITOR,
    audited=True,
    by_token=False,
)

# Datasets ------------------------------------------------------------------------------------------------------------

_OWNED = (ObjectRelation.OWNER,)

LIST_CATALOGUE = define("catalogue.list", "search the catalogue of discoverable datasets")
CREATE_DATASET = define("dataset.create", "make a dataset and upload its rows", AccountRole.DATA_OWNER, audited=True)
LIST_OWN_DATASETS = define("dataset.list", "list the datasets of one's own", AccountRole.DATA_OWNER)
SEE_DATASET = define(
    "dataset.see", "see what a dataset is about", target="dataset", relations=_OWNED, operation="discover"
)
DESCRIBE_DATASET = define(
    "dataset.describe",
    "see the public description of a dataset's columns",
    target="dataset",
    relations=_OWNED,
    operation="describe",
)
EDIT_DATASET = define(
    "dataset.edit",
    "change a dataset's description, schema and versions",
    AccountRole.DATA_OWNER,
    target="dataset",
    relations=_OWNED,
    audited=True,
)
EDIT_POLICY = define(
    "dataset.policy",
    "change who may do what with a dataset",
    AccountRole.DATA_OWNER,
    target="dataset",
    relations=_OWNED,
    audited=True,
)
EDIT_BUDGET = define(
    "dataset.budget",
    "set and raise a dataset's budget and its limits",
    AccountRole.DATA_OWNER,
    target="dataset",
    relations=_OWNED,
    audited=True,
)
DELETE_DATASET = define(
    "dataset.delete",
    "delete a dataset for good",
    AccountRole.DATA_OWNER,
    target="dataset",
    relations=_OWNED,
    audited=True,
)
SEE_LEDGER = define(
    "dataset.ledger",
    "see what was spent of a dataset's budget, and by whom",
    AccountRole.DATA_OWNER,
    target="dataset",
    relations=_OWNED,
)
SEE_POLICY = define(
    "dataset.see_policy",
    "see who may do what with a dataset, and why",
    AccountRole.DATA_OWNER,
    target="dataset",
    relations=_OWNED,
)

# Access --------------------------------------------------------------------------------------------------------------

REQUEST_ACCESS = define(
    "access.request",
    "ask the owner for access to a dataset",
    AccountRole.DATA_USER,
    target="dataset",
    operation="discover",
    audited=True,
)
SEE_REQUEST = define(
    "access.see", "see an access request", target="request", relations=(ObjectRelation.OWNER, ObjectRelation.REQUESTER)
)
LIST_REQUESTS = define("access.list", "list access requests of one's own, or for one's own data")
DECIDE_REQUEST = define(
    "access.decide",
    "approve, reject, or revoke access",
    AccountRole.DATA_OWNER,
    target="request",
    relations=_OWNED,
    audited=True,
)
ANSWER_REQUEST = define(
    "access.answer",
    "add to or withdraw one's own access request",
    target="request",
    relations=(ObjectRelation.REQUESTER,),
    audited=True,
)
SEE_STANDING = define(
    "access.standing",
    "see what one may do with a dataset oneself, and why",
    target="dataset",
    relations=_OWNED,
    operation="discover",
)

# Services ------------------------------------------------------------------------------------------------------------

LIST_SERVICES = define("services.list", "list what the hub can do with data")
PREVIEW_SERVICE = define(
    "service.preview",
    "see what running a service would cost and how exact it would be",
    target="dataset",
    relations=_OWNED,
    operation="describe",
)
RUN_SERVICE = define(
    "service.run",
    "run a service on a dataset, within its policy and budget",
    target="dataset",
    relations=_OWNED,
    operation="describe",
    audited=True,
)
LIST_JOBS = define("jobs.list", "list one's own work, and work on one's own data")
SEE_JOB = define(
    "job.see", "see a piece of work", target="job", relations=(ObjectRelation.OWNER, ObjectRelation.REQUESTER)
)
CANCEL_JOB = define(
    "job.cancel",
    "cancel a piece of work",
    target="job",
    relations=(ObjectRelation.OWNER, ObjectRelation.REQUESTER),
    audited=True,
)
SEE_RESULT = define(
    "result.see",
    "see the result of one's own work, or a release of one's own data that needs one's approval",
    target="job",
    relations=(ObjectRelation.OWNER, ObjectRelation.REQUESTER),
    audited=True,
)
DECIDE_RELEASE = define(
    "release.decide",
    "approve or reject a release of one's own data",
    AccountRole.DATA_OWNER,
    target="job",
    relations=_OWNED,
    audited=True,
)

LIST_SYNTHETICS = define(
    "synthetics.list",
    "list the synthetic tables that were made from a dataset and released",
    target="dataset",
    relations=_OWNED,
    operation="discover",
)
READ_SYNTHETIC = define(
    "synthetic.read",
    "see a released synthetic table, download it, and draw more rows",
    target="synthetic",
    relations=(ObjectRelation.OWNER, ObjectRelation.REQUESTER),
    operation="discover",
    audited=True,
)

VERIFY_RESULT = define("result.verify", "learn whether a result that one holds is genuine", public=True)

VERIFY_CERTIFICATE = define("certificate.verify", "have a certificate read: whether it is whole, and whose word it is")

# Audit ---------------------------------------------------------------------------------------------------------------

READ_AUDIT = define("audit.read", "read and verify the audit log and the ledger", AccountRole.AUDITOR)
READ_OWN_AUDIT = define(
    "audit.own", "read the audit of one's own data", AccountRole.DATA_OWNER, target="dataset", relations=_OWNED
)

# Surveys -------------------------------------------------------------------------------------------------------------

_ASKERS = (ObjectRelation.OWNER, ObjectRelation.REQUESTER)

LIST_SURVEYS = define("surveys.list", "list the surveys of one's own organisation")
CHECK_SURVEY = define(
    "surveys.check", "check and plan a survey before it is kept", AccountRole.DATA_OWNER, AccountRole.DATA_USER
)
CREATE_SURVEY = define("survey.create", "make a survey", AccountRole.DATA_OWNER, AccountRole.DATA_USER, audited=True)
SEE_SURVEY = define(
    "survey.see", "see a survey of one's own organisation", target="survey", relations=(ObjectRelation.MEMBER, *_ASKERS)
)
EDIT_SURVEY = define("survey.edit", "change a draft of a survey", target="survey", relations=_ASKERS, audited=True)
PUBLISH_SURVEY = define("survey.publish", "open a survey to answers", target="survey", relations=_ASKERS, audited=True)
CLOSE_SURVEY = define("survey.close", "close a survey for good", target="survey", relations=_ASKERS, audited=True)
DELETE_SURVEY = define(
    "survey.delete", "delete a survey and its reports for good", target="survey", relations=_ASKERS, audited=True
)
INVITE_TO_SURVEY = define(
    "survey.invite", "make invitations to a survey", target="survey", relations=_ASKERS, audited=True
)
SEE_ESTIMATES = define(
    "survey.estimates",
    "see the estimates of a survey of one's own organisation",
    target="survey",
    relations=(ObjectRelation.MEMBER, *_ASKERS),
)
SEE_PUBLIC_ESTIMATES = define(
    "survey.public_estimates",
    "see the estimates of a survey that shows them to everybody",
    public=True,
    target="survey",
)
READ_SURVEY = define("survey.read", "read an open survey and the code that asks it", public=True, target="survey")
SIGN_INVITATION = define(
    "survey.sign", "exchange an invitation to a survey for a blind signature", public=True, target="survey"
)
ANSWER_SURVEY = define("survey.answer", "answer an open survey", public=True, target="survey")

# Algorithms ----------------------------------------------------------------------------------------------------------

_PROVIDED = (ObjectRelation.PROVIDER,)

LIST_ALGORITHMS = define("algorithms.list", "list the algorithms of outside providers, and one's own")
REGISTER_ALGORITHM = define("algorithm.register", "register an algorithm", AccountRole.ALGORITHM_PROVIDER, audited=True)
SEE_ALGORITHM = define(
    "algorithm.see",
    "see an algorithm, its manifest, its sources and its checks",
    target="algorithm",
    relations=_PROVIDED,
    operation="discover",
)
EDIT_ALGORITHM = define(
    "algorithm.edit",
    "add, check, publish, deprecate and revoke versions of one's own algorithm",
    AccountRole.ALGORITHM_PROVIDER,
    target="algorithm",
    relations=_PROVIDED,
    audited=True,
)
SEE_ALGORITHM_USE = define(
    "algorithm.use",
    "see how often one's own algorithm was run, and nothing else about it",
    AccountRole.ALGORITHM_PROVIDER,
    target="algorithm",
    relations=_PROVIDED,
)
ALLOW_ALGORITHM = define(
    "algorithm.allow",
    "allow a version of an algorithm for a dataset, or stop allowing it",
    AccountRole.DATA_OWNER,
    target="dataset",
    relations=_OWNED,
    audited=True,
)
LIST_ALLOWED = define(
    "algorithms.allowed",
    "see which algorithms of outside providers a dataset's owner allows",
    target="dataset",
    relations=_OWNED,
    operation="describe",
)
