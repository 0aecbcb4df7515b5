"""The twisted.cred portal behind which every checker stands; site-specific checkers are added to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from twisted.cred.checkers import AllowAnonymousAccess, ICredentialsChecker
from twisted.cred.error import UnauthorizedLogin
from twisted.cred.portal import IRealm, Portal
from zope.interface import Interface, implementer

from pkgrepo.interfaces import ICatalog
from pkgrepo.model import ANONYMOUS, Identity
from pkgrepo.storage.catalog.people.identity import find_user_by_name

from .checkers import identity_of


class IIdentity(Interface):
    """What a login gives: a L{pkgrepo.model.Identity}."""


@implementer(IRealm)
class IdentityRealm:
    """
    Avatar ids to identities.

    Our checkers establish identities themselves. Any other cred checker gives a user name in bytes, and its user must
    exist here; the empty tuple is cred's word for nobody.
    """

    def __init__(self, catalog: ICatalog) -> None:
        self._catalog = catalog

    def requestAvatar(self, avatarId: Any, mind: Any, *interfaces: Any) -> tuple[Any, Identity, Any]:  # noqa: ARG002 - cred asks so
        """The identity with its interface; there is nothing to do at logout."""
        if IIdentity not in interfaces:
            raise NotImplementedError("only identities live here")
        return IIdentity, self._identity(avatarId), _nothing

    def _identity(self, avatar_id: Any) -> Identity:
        if isinstance(avatar_id, Identity):
            return avatar_id
        if avatar_id == ():
            return ANONYMOUS
        user = self._catalog.look(find_user_by_name, avatar_id.decode())
        if user is None or not user.active:
            raise UnauthorizedLogin
        return identity_of(user, via="password")


def make_portal(catalog: ICatalog, checkers: Iterable[ICredentialsChecker]) -> Portal:
    """A portal with these checkers, and one for people without credentials."""
    return Portal(IdentityRealm(catalog), [*checkers, AllowAnonymousAccess()])


def _nothing() -> None:
    """Log nobody out: a request's identity ends with the request."""
