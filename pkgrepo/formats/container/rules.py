"""
The push rules, asked before the first byte and again when the manifest comes.

Refusals are 403 with a sentence, which clients print: 400 makes some try other formats, and 401 other credentials.
"""

from __future__ import annotations

from attrs import evolve

from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Refusal
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Identity, TokenKind
from pkgrepo.storage.catalog.people.tokens import find_token

from .admission import Admission, Target
from .configuration import push_rules


class PushGate:
    """Holds a push against the rules of its repository; callers may write as far as permissions go."""

    def __init__(self, services: Services, admission: Admission) -> None:
        self._services = services
        self._admission = admission

    def confirm(self, request: Request, identity: Identity, target: Target) -> None:
        """
        Let a push end that was let in before its body came, which may have taken hours.

        Permissions and rules are asked again, and not whether the credentials still hold: a bearer token lives for
        minutes, and clients cannot send a body a second time.

        :raises Refusal: the caller may not write any more; :raises RepositoryInactive: it was switched off
        """
        if identity.limits is not None:
            identity = evolve(identity, limits=evolve(identity.limits, expires_at=None))
        self._admission.require(request, identity, target, Action.WRITE)
        self.check(identity, target)

    def check(self, identity: Identity, target: Target) -> None:
        """
        Let a push begin, or say which rule is against it.

        :raises Refusal: with the rule's sentence
        """
        rules = push_rules(target.repository)
        if rules.must_use_auth_token_for_push and not self._came_with_token(identity):
            raise Refusal(403, "pushes to this repository need an access token, not a password", "DENIED")
        if rules.must_be_project_member:
            self._services.access.require_member(identity, target.repository, target.image)

    def _came_with_token(self, identity: Identity) -> bool:
        """Whether an access token established who this is; one that a login was kept by does not count."""
        if identity.token_id is None:
            return False
        token = self._services.catalog.look_inline(find_token, identity.token_id)
        return token is not None and token.kind is not TokenKind.LOGIN
