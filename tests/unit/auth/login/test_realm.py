import pytest
from twisted.cred.checkers import ICredentialsChecker, InMemoryUsernamePasswordDatabaseDontUse
from twisted.cred.credentials import Anonymous, UsernamePassword
from twisted.cred.error import UnauthorizedLogin
from twisted.cred.portal import IRealm
from zope.interface import Interface
from zope.interface.verify import verifyObject

from pkgrepo.auth.login.checkers import IdentityRealm, IIdentity, make_portal
from pkgrepo.model import ANONYMOUS


def test_the_interface_is_kept(scene):
    assert verifyObject(IRealm, IdentityRealm(scene.catalog))


def test_our_checkers_are_checkers_of_cred(scene):
    for checker in {*scene.portal.checkers.values()}:
        assert verifyObject(ICredentialsChecker, checker)


async def test_nobody_is_a_credential_too(scene):
    _, identity, logout = await scene.portal.login(Anonymous(), None, IIdentity)
    assert identity is ANONYMOUS
    logout()


async def test_any_checker_of_cred_can_be_plugged_in(scene):
    user = scene.user("alice", password="")
    scene.user("retired", active=False)
    checker = InMemoryUsernamePasswordDatabaseDontUse(alice=b"pw", stranger=b"pw", retired=b"pw")
    portal = make_portal(scene.catalog, [checker])
    _, identity, _ = await portal.login(UsernamePassword(b"alice", b"pw"), None, IIdentity)
    assert (identity.user_id, identity.via) == (user.id, "password")
    for name in (b"stranger", b"retired"):
        with pytest.raises(UnauthorizedLogin):
            await portal.login(UsernamePassword(name, b"pw"), None, IIdentity)


async def test_only_identities_live_in_the_realm(scene):
    class ISomethingElse(Interface):
        pass

    with pytest.raises(NotImplementedError):
        await scene.portal.login(Anonymous(), None, ISomethingElse)
