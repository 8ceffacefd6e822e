"""Running services on data: planned without rows, paid for with the queue in one transaction, done and kept in another.

The money flows one way. `submit` decides, plans on a table without rows, and then charges the ledger and adds the work
in one transaction: both are kept or neither. `perform`, in a worker, decides again, runs against a ledger that holds
the reservation and nothing else, and keeps the sealed result, the stored answer and the end of the work in one
transaction: nobody sees any of it before, and a lost worker's work is done again for the same receipt.
"""

from cloister.hub.use_cases.jobs.decide import RunCase, consider
from cloister.hub.use_cases.jobs.keep import SeenResult, read_result, verify_result
from cloister.hub.use_cases.jobs.overview import describe_job, list_jobs, see_job
from cloister.hub.use_cases.jobs.pay import submit
from cloister.hub.use_cases.jobs.plan import RunPreview, preview
from cloister.hub.use_cases.jobs.release_decisions import cancel, decide_release
from cloister.hub.use_cases.jobs.work import perform, take

__all__ = [
    "RunCase",
    "RunPreview",
    "SeenResult",
    "cancel",
    "consider",
    "decide_release",
    "describe_job",
    "list_jobs",
    "perform",
    "preview",
    "read_result",
    "see_job",
    "submit",
    "take",
    "verify_result",
]
