"""One's own account: each change leaves exactly one row in the audit log, by whom it was made."""

import pytest
import pytest_twisted

from pkgrepo.auth.accounts import Accounts, ensure_admin
from pkgrepo.errors import AuthenticationFailed, Forbidden, Invalid, NotFound
from pkgrepo.model import Actor, TokenLimits
from pkgrepo.storage.catalog.people.users import find_user_by_name, password_hash
from pkgrepo.storage.catalog.server.audit import list_audit
from tests.support.auth import PASSWORD, AuthServices

HOME = "192.0.2.1"
NEW = "another long secret"


@pytest.fixture
def copied():
    return []


@pytest.fixture
def accounts(scene, copied):
    return Accounts(
        catalog=scene.catalog,
        authenticator=scene.authenticator,
        passwords=scene.passwords,
        now_ms=lambda: scene.now_ms,
        token_max_days=365,
        copy_entry=copied.append,
    )


@pytest_twisted.async_yield_fixture
async def ada(scene, accounts):
    scene.user("ada")
    yield await accounts.login("ada", PASSWORD, HOME)


def actor_of(identity):
    return Actor.of(identity, address=HOME, request_id="r-1")


def rows(scene):
    return [(row.actor, row.action, row.object, row.outcome) for row in scene.catalog.peek(list_audit)]


async def issue(accounts, ada):
    return await accounts.issue(ada, "ci", TokenLimits(), actor_of(ada))


async def test_a_changed_password_leaves_a_row(scene, accounts, ada):
    await accounts.change_password(ada, PASSWORD, NEW, actor_of(ada))
    assert rows(scene) == [("ada", "account.password", "ada", "ok")]
    assert (await accounts.login("ada", NEW, HOME)).username == "ada"


async def test_a_changed_account_leaves_a_row_with_what_changed(scene, accounts, ada):
    await accounts.change(ada, {"email": "ada@example.org", "name": "Ada"}, actor_of(ada))
    assert rows(scene) == [("ada", "account.update", "ada", "ok")]
    assert scene.catalog.peek(list_audit)[0].detail == {"changed": ["email", "name"]}


async def test_a_token_leaves_a_row_when_it_comes_and_one_when_it_goes(scene, accounts, ada):
    token, text = await issue(accounts, ada)
    await accounts.revoke(ada, token.uid, actor_of(ada))
    _, text = await issue(accounts, ada)
    await accounts.revoke_text(ada, text, actor_of(ada))
    come, gone = ("ada", "token.create", "ci", "ok"), ("ada", "token.revoke", "ci", "ok")
    assert rows(scene) == [gone, come, gone, come]
    assert text not in str(scene.catalog.peek(list_audit))


async def test_what_is_refused_changes_nothing_and_leaves_no_row(scene, accounts, ada):
    _, text = await issue(accounts, ada)
    by_token = await scene.authenticator.login("ada", text, HOME)
    before = rows(scene)
    with pytest.raises(AuthenticationFailed):
        await accounts.change_password(ada, "wrong", NEW, actor_of(ada))
    with pytest.raises(Forbidden):
        await accounts.change_password(ada, text, NEW, actor_of(ada))
    with pytest.raises(Invalid):
        await accounts.change_password(ada, PASSWORD, "short", actor_of(ada))
    with pytest.raises(Forbidden):
        await issue(accounts, by_token)
    with pytest.raises(NotFound):
        await accounts.revoke(ada, "nobodys", actor_of(ada))
    assert rows(scene) == before


async def test_each_row_is_given_on_once_it_is_durable(scene, accounts, copied, ada):
    token, _ = await issue(accounts, ada)
    await accounts.revoke(ada, token.uid, actor_of(ada))
    await accounts.change(ada, {"name": "Ada"}, actor_of(ada))
    await accounts.change_password(ada, PASSWORD, NEW, actor_of(ada))
    assert [(each.actor.name, each.action, each.object, each.outcome) for each in copied] == rows(scene)[::-1]


def test_the_first_admin_is_made_once_and_never_touched_again():
    scene = AuthServices()
    user = scene.catalog.do(ensure_admin, "root", "hash one", now_ms=1)
    assert user.admin
    assert user.active
    assert scene.catalog.do(ensure_admin, "root", "hash two", now_ms=2) is None
    assert scene.catalog.do(ensure_admin, "other", "hash two", now_ms=2) is None
    assert scene.catalog.peek(password_hash, user.id) == "hash one"
    assert scene.catalog.peek(find_user_by_name, "other") is None


def test_a_server_with_any_user_gets_no_admin_from_its_configuration():
    scene = AuthServices()
    scene.user("alice")
    assert scene.catalog.do(ensure_admin, "root", "hash", now_ms=1) is None
