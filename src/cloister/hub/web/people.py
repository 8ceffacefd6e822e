"""The pages of operators: people and institutions; and of whoever confirms new data owners or resets of theirs."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response

from cloister.hub.domain import actions
from cloister.hub.domain.roles import AccountRole
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.use_cases.accounts import administration, enrolment
from cloister.hub.web import shell

router = GuardedRouter()


@shell.page(
    router,
    "/people",
    actions.LIST_ACCOUNTS,
    twin="/people",
    menu=shell.MenuEntry(70, "People", (AccountRole.OPERATOR,)),
)
def list_people(request: Request, hub: CurrentHub, after: str = "") -> Response:
    """See all accounts and institutions, and make new ones."""
    with hub.store.reading() as session:
        accounts, following = administration.list_accounts(session, after=after)
        organisations = administration.list_organisations(session)
    return shell.render(
        request,
        "people.html",
        title="People",
        accounts=accounts,
        following=following,
        organisations=organisations,
        roles=list(AccountRole),
    )


@shell.page(router, "/people/confirmations", actions.SEE_CONFIRMATIONS, twin="/people/confirmations")
def confirmations(request: Request, hub: CurrentHub, access: CurrentAccess) -> Response:
    """See who waits to join the data owners of one's institution, and whose sign-in waits to be reset."""
    with hub.store.reading() as session:
        waiting = administration.list_proposed(session, access.person)
        resets = enrolment.list_resets(session, access.person)
    return shell.render(request, "confirmations.html", title="What waits for you", waiting=waiting, resets=resets)


@shell.page(router, "/people/{account_id}", actions.LIST_ACCOUNTS, twin="/people/{account_id}")
def person(request: Request, hub: CurrentHub, account_id: str) -> Response:
    """See and change one account."""
    with hub.store.reading() as session:
        user = administration.get_account(session, account_id)
        found, takes_two = administration.describe(user), enrolment.needs_second_person(session, user)
        organisations = administration.list_organisations(session)
    return shell.render(
        request,
        "person.html",
        title=found["name"],
        account=found,
        organisations=organisations,
        roles=list(AccountRole),
        needs_second_person=takes_two,
    )
