"""Who may read: the npm format's own way of refusing."""

from __future__ import annotations

from pkgrepo.errors import Forbidden, NotFound
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Identity, Repository


async def admit_reader(services: Services, request: Request, repository: Repository, name: str | None) -> Identity:
    """
    The caller, once it is clear that they may read.

    :raises NotFound: they are known and may not: they are not told what there is
    :raises AuthenticationRequired: they are not known
    """
    try:
        return await services.access.admit(request, Action.READ, repository, name)
    except Forbidden:
        raise NotFound("package", name or repository.path) from None
