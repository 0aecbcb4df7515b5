"""The same over the real catalog: a file, a writer thread, and a second process that sees its commits."""

from functools import partial

import pytest
import pytest_twisted
from twisted.internet import reactor

from pkgrepo.auth.login.authenticator import Authenticator
from pkgrepo.auth.login.checkers import PasswordChecker, TokenChecker, identity_of, make_portal
from pkgrepo.auth.login.passwords import Passwords
from pkgrepo.auth.login.throttle import Throttle
from pkgrepo.auth.permissions.authorizer import Authorizer
from pkgrepo.auth.tokens.text import hash_token, make_token, shown_part
from pkgrepo.auth.tokens.uses import TokenUses
from pkgrepo.errors import AlreadyExists, AuthenticationFailed
from pkgrepo.model import Action, RepositoryScope, SubjectKind, TokenKind, TokenLimits
from pkgrepo.storage.catalog.engine.sqlite import SqliteCatalog
from pkgrepo.storage.catalog.people.grants import set_permission
from pkgrepo.storage.catalog.people.projects import add_project, bind_names, remove_project
from pkgrepo.storage.catalog.people.tokens import add_token, get_token, revoke_token
from pkgrepo.storage.catalog.people.users import add_user, list_users, remove_user
from tests.support.auth import PASSWORD, InlineThreads, basic, make_factors, make_repository
from tests.support.catalog import insert_repository
from tests.support.quick_starts import FAST

HOME = "192.0.2.1"


@pytest_twisted.async_yield_fixture
async def catalogs(tmp_path):
    both = [SqliteCatalog(tmp_path / "catalog.db", reactor=reactor) for _ in range(2)]
    for each in both:
        await each.start()
    await both[0].write(insert_repository, 1, "python")
    yield both
    for each in both:
        await each.stop()


def authenticator_over(catalog):
    throttle = Throttle()
    checkers = [
        PasswordChecker(
            catalog, Passwords(InlineThreads(), reactor, hasher=FAST), throttle, make_factors(catalog, throttle)
        ),
        TokenChecker(catalog),
    ]
    uses = TokenUses(catalog)
    return Authenticator(catalog, make_portal(catalog, checkers), uses), uses


async def test_another_process_feels_a_revocation_at_once(catalogs):
    here, there = catalogs
    user = await here.write(add_user, username="alice", password_hash=FAST.hash(PASSWORD), now_ms=1)
    text = make_token(TokenKind.CI)
    limits = TokenLimits(repositories=(RepositoryScope("main/*", frozenset({Action.READ})),), cidrs=("192.0.2.0/24",))
    token = await here.write(
        add_token,
        user_id=user.id,
        hash=hash_token(text),
        shown=shown_part(text),
        kind=TokenKind.CI,
        name="t",
        limits=limits,
        now_ms=1,
    )
    authenticator, uses = authenticator_over(there)
    header = b"Bearer " + text.encode()
    identity = await authenticator.authenticate(header, HOME)
    assert identity.limits == limits
    assert authenticator.recall(header, HOME) is identity
    assert (await authenticator.authenticate(basic("alice", PASSWORD), HOME)).via == "password"
    await uses.flush()
    assert here.peek(get_token, token.id).uses == 2
    await here.write(revoke_token, token.id, now_ms=2)
    assert authenticator.recall(header, HOME) is None
    with pytest.raises(AuthenticationFailed):
        await authenticator.authenticate(header, HOME)


async def test_another_process_feels_a_grant_at_once(catalogs):
    here, there = catalogs
    user = await here.write(add_user, username="alice", now_ms=1)
    authorizer, repository = Authorizer(there), make_repository(1)
    may = partial(authorizer.may_now, identity_of(user, via="password"), Action.READ, repository)
    assert not may()
    await here.write(set_permission, 1, SubjectKind.USER, user.id, [Action.READ])
    assert may()
    await here.write(remove_user, user.id)
    assert not may()


async def test_a_refused_command_leaves_nothing_behind(catalogs):
    here, there = catalogs
    await here.write(add_user, username="alice", now_ms=1)
    with pytest.raises(AlreadyExists):
        await there.write(add_user, username="ALICE", now_ms=1)
    assert [user.username for user in await there.scan(list_users)] == ["alice"]


async def test_what_hangs_on_a_project_goes_with_it(catalogs):
    here, _ = catalogs
    user = await here.write(add_user, username="alice", now_ms=1)
    project = await here.write(add_project, key="acme", owner_id=user.id, now_ms=1)
    await here.write(bind_names, 1, "acme-*", project.id)
    await here.write(remove_project, project.id)
    rows = here.peek(lambda r: r.all("SELECT 1 FROM project_binding UNION ALL SELECT 1 FROM project_member"))
    assert rows == []
