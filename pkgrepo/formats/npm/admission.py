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


async def admit_auditor(services: Services, request: Request, repository: Repository) -> Identity:
    """
    The caller, once it is clear that they may ask about vulnerabilities.

    Whoever is known may: the answer tells nothing of the repository, and who may read some packages of it (as a member
    of a project, or by a token) audits what they have installed.

    :raises AuthenticationRequired: they are not known, and the repository is not for everybody
    """
    identity = await services.access.identify(request)
    if identity.anonymous:
        services.access.require(identity, Action.READ, repository)
    return identity
