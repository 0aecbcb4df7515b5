"""The twisted.cred portal with all checkers; site-specific checkers may be added."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from twisted.cred.checkers import AllowAnonymousAccess, ICredentialsChecker
from twisted.cred.error import UnauthorizedLogin
from twisted.cred.portal import IRealm, Portal
from twisted.internet.defer import Deferred
from zope.interface import Interface, implementer

from pkgrepo.interfaces import ICatalog
from pkgrepo.model import ANONYMOUS, Identity
from pkgrepo.storage.catalog.people.users import find_user_by_name

from .identities import identity_of


class IIdentity(Interface):
    """The avatar interface: a L{pkgrepo.model.Identity}."""


@implementer(IRealm)
class IdentityRealm:
    """
    Maps avatar ids to identities.

    Our checkers return identities. Any other cred checker returns a user name in bytes, whose user must exist here. The
    empty tuple is cred's id of an anonymous user.
    """

    def __init__(self, catalog: ICatalog) -> None:
        self._catalog = catalog

    def requestAvatar(self, avatarId: Any, mind: Any, *interfaces: Any) -> Deferred[tuple[Any, object, Any]]:  # noqa: ARG002 - cred asks so
        """The identity with its interface; logout does nothing."""
        if IIdentity not in interfaces:
            raise NotImplementedError("only identities live here")
        return Deferred.fromCoroutine(self._avatar(avatarId))

    async def _avatar(self, avatar_id: Any) -> tuple[Any, object, Any]:
        return IIdentity, await self._identity(avatar_id), _nothing

    async def _identity(self, avatar_id: Any) -> Identity:
        if isinstance(avatar_id, Identity):
            return avatar_id
        if avatar_id == ():
            return ANONYMOUS
        user = await self._catalog.look(find_user_by_name, avatar_id.decode())
        if user is None or not user.active:
            raise UnauthorizedLogin
        return identity_of(user, via="password")


def make_portal(catalog: ICatalog, checkers: Iterable[ICredentialsChecker]) -> Portal:
    """A portal with these checkers and one for anonymous access."""
    return Portal(IdentityRealm(catalog), [*checkers, AllowAnonymousAccess()])


def _nothing() -> None:
    """Logout: nothing to do, an identity ends with its request."""
