"""Notes about quotas that are nearly used for clients that publish: npm and gem print them, others get a field."""

from __future__ import annotations

from pkgrepo.errors import AuthenticationFailed
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.repositories.publish.room import nearly_used_quotas
from pkgrepo.storage.catalog.server import quotas
from pkgrepo.storage.catalog.server.quotas import Limits, QuotaKind


async def note_quotas(services: Services, repository: Repository, request: Request) -> None:
    """
    Add notes to a request that publishes, about the quotas of which 80 % or more are used before it.

    They are sent with its response, if it succeeds: those of the repository, its storage and the server, and of the
    user. Without any quotas, nothing is read.
    """
    if not services.registry.limited or repository.type is not RepositoryType.HOSTED:
        return
    try:
        user_id = (await services.access.identify(request, counted=False)).user_id
    except AuthenticationFailed:
        return  # which the request is answered with
    request.notes += tuple(await services.catalog.scan(_notes, repository, user_id))


def _notes(r: Reader, repository: Repository, user_id: int | None) -> list[str]:
    found = nearly_used_quotas(r, repository)
    limits = Limits() if user_id is None else quotas.limits_of(r, QuotaKind.USER, user_id)
    if user_id is not None and limits != Limits():
        found.append(("your account", limits, quotas.usage_of_user(r, user_id)))
    return [
        f"{name} has used {100 * getattr(used, what) // max(1, getattr(limits, what))} % of its quota of {what}"
        for name, limits, used in found
        for what in quotas.nearly_used(limits, used)
    ]
