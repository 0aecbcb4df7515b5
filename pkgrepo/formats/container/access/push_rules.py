"""
Enforcement of a repository's push rules, before the body of a request and again after it.

Refusals are 403 with a sentence, which clients print: after 400 some clients try other formats, after 401 other
credentials.
"""

from __future__ import annotations

from attrs import evolve

from pkgrepo.formats.container.configuration import policy
from pkgrepo.formats.container.target import Target
from pkgrepo.http.answers import Refusal
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Identity, Repository

from .authorization import Authorization


class PushRuleCheck:
    """Checks pushes by callers who have the permission to write."""

    def __init__(self, authorization: Authorization) -> None:
        self._authorization = authorization

    async def check_again(self, request: Request, identity: Identity, target: Target) -> None:
        """
        Check permissions and rules again after the body has come, which may have taken hours.

        Expiry of the credentials is ignored: a bearer token is valid for minutes, and clients cannot send a body a
        second time.

        :raises Refusal: the caller may not write any more; :raises RepositoryInactive: it was switched off
        """
        if identity.limits is not None:
            identity = evolve(identity, limits=evolve(identity.limits, expires_at=None))
        await self._authorization.require(request, identity, target, Action.WRITE)


def check_deletion(repository: Repository) -> None:
    """Check that content may be deleted. :raises Refusal: the policy forbids it"""
    if not policy(repository).allow_delete:
        raise Refusal(405, "nothing is deleted in this repository (allow_delete)", "UNSUPPORTED")
