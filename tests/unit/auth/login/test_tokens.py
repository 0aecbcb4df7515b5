"""Access tokens and bearer tokens as credentials."""

import pytest
from attrs import evolve

from pkgrepo.auth.login.identities import identity_of
from pkgrepo.auth.tokens.bearer import Access
from pkgrepo.model import ANONYMOUS, TokenLimits
from pkgrepo.storage.catalog.people.tokens import get_token, revoke_token, update_token
from pkgrepo.storage.catalog.people.users import remove_user, set_password, update_user
from tests.support.auth import HOME, PASSWORD, at, basic, fails


@pytest.mark.parametrize("name", ["alice", "ALICE", "", "token", "__token__", "whoever"])
async def test_a_token_is_its_owner_under_any_name_that_is_nobody_elses(scene, name):
    user = scene.user("alice")
    limits = TokenLimits(packages=("x",))
    text, token = scene.token(user, limits)
    identity = await scene.authenticator.authenticate(basic(name, text), HOME)
    assert (identity.user_id, identity.token_id, identity.via, identity.limits) == (user.id, token.id, "token", limits)


async def test_a_token_under_another_users_name_fails(scene):
    scene.user("bob")
    text, _ = scene.token(scene.user("alice"))
    await fails(scene, basic("bob", text))


async def test_a_user_who_is_called_token_changes_nothing_for_tokens(scene):
    scene.user("token")
    text, _ = scene.token(scene.user("alice"))
    assert (await scene.authenticator.authenticate(basic("token", text), HOME)).username == "alice"


@pytest.mark.parametrize("end", ["revoke", "expire", "deactivate", "remove"])
async def test_a_token_ends_at_once(scene, end):
    user = scene.user("alice")
    text, token = scene.token(user, TokenLimits(expires_at=at(30)))
    header = b"Bearer " + text.encode()
    await scene.authenticator.authenticate(header, HOME)
    match end:
        case "revoke":
            scene.catalog.do(revoke_token, token.id, now_ms=1)
        case "expire":
            scene.clock.advance(30)
        case "deactivate":
            scene.catalog.do(update_user, user.id, now_ms=1, active=False)
        case "remove":
            scene.catalog.do(remove_user, user.id)
    assert scene.authenticator.recall(header) is None
    await fails(scene, header)


async def test_a_well_formed_token_that_was_never_issued_fails(scene):
    from pkgrepo.auth.tokens.text import make_token
    from pkgrepo.model import TokenKind

    await fails(scene, make_token(TokenKind.PERSONAL).encode())


async def test_a_token_bound_to_a_network_works_from_there_only_recalled_or_not(scene):
    text, _ = scene.token(scene.user("alice"), TokenLimits(cidrs=("192.0.2.0/24",)))
    header = b"Bearer " + text.encode()
    await fails(scene, header, "198.51.100.1")
    assert (await scene.authenticator.authenticate(header, "192.0.2.9")).username == "alice"
    assert scene.authenticator.recall(header, "192.0.2.9") is not None
    assert scene.authenticator.recall(header, "198.51.100.1") is None
    assert scene.authenticator.recall(header) is None
    await fails(scene, header, "198.51.100.1")


async def test_uses_are_counted_recalled_or_not_and_written_together(scene):
    text, token = scene.token(scene.user("alice"))
    header = b"Bearer " + text.encode()
    await scene.authenticator.authenticate(header, HOME, "pip/26")
    scene.clock.advance(5)
    scene.authenticator.recall(header)
    scene.authenticator.recall(header)
    await scene.authenticator.authenticate(header, HOME, "pip/26", counted=False)
    assert scene.catalog.peek(get_token, token.id).uses == 0
    await scene.uses.flush()
    found = scene.catalog.peek(get_token, token.id)
    assert (found.uses, found.last_used_ip, found.last_used_client) == (3, HOME, "pip/26")
    assert found.last_used_at == at(5)
    assert scene.authenticator.recall(header) is not None  # writing them down forgot nothing


async def test_a_bearer_token_stands_for_its_user_until_something_changes(scene):
    user = scene.user("alice")
    identity = await scene.authenticator.authenticate(basic("alice", PASSWORD), HOME)
    issued = await scene.bearer.issue(identity, [Access("main/r1/x", "main/r1", "x", ("pull",))])
    header = b"Bearer " + issued.text.encode()
    found = await scene.authenticator.authenticate(header, HOME)
    assert (found.user_id, found.via, found.token_id) == (user.id, "bearer", None)
    assert scene.authenticator.recall(header) is found
    scene.catalog.do(set_password, user.id, "", now_ms=1)
    assert scene.authenticator.recall(header) is None
    await fails(scene, header)


@pytest.mark.parametrize("change", ["revoke", "limits", "flags", "deactivate", "time"])
async def test_a_bearer_token_issued_for_an_access_token_ends_with_it(scene, change):
    user = scene.user("alice", user_manager=True)
    text, token = scene.token(user)
    identity = await scene.authenticator.authenticate(b"Bearer " + text.encode(), HOME)
    header = b"Bearer " + (await scene.bearer.issue(identity, [])).text.encode()
    assert (await scene.authenticator.authenticate(header, HOME)).token_id == token.id
    match change:
        case "revoke":
            scene.catalog.do(revoke_token, token.id, now_ms=1)
        case "limits":
            scene.catalog.do(update_token, token.id, limits=TokenLimits(packages=("y",)))
        case "flags":
            scene.catalog.do(update_user, user.id, now_ms=1, user_manager=False)
        case "deactivate":
            scene.catalog.do(update_user, user.id, now_ms=1, active=False)
        case "time":
            scene.clock.advance(961)
    await fails(scene, header)


async def test_a_bearer_token_keeps_the_networks_of_its_access_token(scene):
    text, _ = scene.token(scene.user("alice"), TokenLimits(cidrs=("192.0.2.0/24",)))
    identity = await scene.authenticator.authenticate(b"Bearer " + text.encode(), HOME)
    header = b"Bearer " + (await scene.bearer.issue(identity, [])).text.encode()
    await fails(scene, header, "198.51.100.1")
    assert (await scene.authenticator.authenticate(header, HOME)).via == "bearer"


async def test_a_bearer_token_with_somebody_elses_access_token_fails(scene):
    _, token = scene.token(scene.user("bob"))
    mixed = evolve(identity_of(scene.user("alice"), via="token"), token_id=token.id)
    await fails(scene, b"Bearer " + (await scene.bearer.issue(mixed, [])).text.encode())


async def test_an_anonymous_bearer_token_is_nobody_narrowed(scene):
    issued = await scene.bearer.issue(ANONYMOUS, [Access("main/r1/x", "main/r1", "x", ("pull",))])
    found = await scene.authenticator.authenticate(b"Bearer " + issued.text.encode(), HOME)
    assert found.anonymous
    assert found.via == "bearer"
    assert found.limits.repositories
