"""The identity of a user for what an earlier request has asked for has the rights of now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pkgrepo.auth.login.identities import check_username, present_identity
from pkgrepo.errors import Invalid
from pkgrepo.model import Identity, TokenLimits
from pkgrepo.storage.catalog.people.tokens import revoke_token
from pkgrepo.storage.catalog.people.users import update_user
from tests.support.auth import AuthServices


class Scene:
    def __init__(self) -> None:
        self.services = AuthServices()
        self.user = self.services.user("ada", admin=True)

    def find(self, user_id: int | None, token_id: int | None) -> Identity | None:
        return self.services.catalog.peek(present_identity, user_id, token_id, self.services.clock())


def test_a_user_has_the_present_rights() -> None:
    scene = Scene()
    found = scene.find(scene.user.id, None)
    assert found is not None
    assert (found.username, found.admin, found.token_id, found.limits) == ("ada", True, None, None)
    scene.services.user("eve", admin=True)
    scene.services.catalog.do(update_user, scene.user.id, now_ms=1, admin=False)
    found = scene.find(scene.user.id, None)
    assert found is not None
    assert not found.admin


def test_a_token_limits_its_owner() -> None:
    scene = Scene()
    limits = TokenLimits(packages=("com.team:*",))
    _, token = scene.services.token(scene.user, limits)
    found = scene.find(scene.user.id, token.id)
    assert found is not None
    assert (found.token_id, found.limits) == (token.id, limits)
    other = scene.services.user("eve")
    assert scene.find(other.id, token.id) is None


@pytest.mark.parametrize("withdrawn", ["user", "token", "expiry"])
def test_withdrawn_credentials_give_no_identity(withdrawn: str) -> None:
    scene = Scene()
    services = scene.services
    ends = datetime.fromtimestamp(services.clock(), UTC) + timedelta(hours=1)
    _, token = services.token(scene.user, TokenLimits(expires_at=ends))
    services.user("eve", admin=True)
    assert scene.find(scene.user.id, token.id) is not None
    if withdrawn == "user":
        services.catalog.do(update_user, scene.user.id, now_ms=1, active=False)
        assert scene.find(scene.user.id, None) is None
    elif withdrawn == "token":
        services.catalog.do(revoke_token, token.id, now_ms=services.now_ms)
    else:
        services.clock.advance(3601)
    assert scene.find(scene.user.id, token.id) is None


def test_nobody_has_no_identity() -> None:
    scene = Scene()
    assert scene.find(None, None) is None
    assert scene.find(scene.user.id + 1, None) is None
    assert scene.find(scene.user.id, 999) is None


@pytest.mark.parametrize("name", ["bob", "Bob", "b.o_b-2", "0bob", "x" * 32])
def test_names_in_the_grammar_pass_as_they_are(name):
    assert check_username(name) == name


@pytest.mark.parametrize(
    "name", ["", "bo", "x" * 33, "-bob", ".bob", "_bob", "b b", "bob\n", "bób", "bob:", "a/b", "ſss"]
)
def test_others_are_refused(name):
    with pytest.raises(Invalid) as refused:
        check_username(name)
    assert refused.value.pointer == "/username"
