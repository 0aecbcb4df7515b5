from datetime import UTC, datetime

import pytest

from pkgrepo.errors import NotFound
from pkgrepo.model import Action, RepositoryScope, TokenKind, TokenLimits, TokenUse
from pkgrepo.storage.catalog.people import tokens, users
from tests.support.catalog import MemoryCatalog

LIMITS = TokenLimits(
    scopes=frozenset({"api:read", "audit"}),
    repositories=(
        RepositoryScope("main/*", frozenset({Action.READ, Action.WRITE})),
        RepositoryScope("main/x", frozenset({Action.DELETE}), ("a-*", "b")),
    ),
    packages=("acme-*", "@acme/*"),
    cidrs=("192.0.2.0/24", "2001:db8::/32"),
    expires_at=datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC),
)


@pytest.fixture
def catalog():
    return MemoryCatalog()


def add(catalog, user, number=1, **fields):
    given = {"kind": TokenKind.CI, "name": f"t{number}", "now_ms": 1000} | fields
    return catalog.do(tokens.add_token, user_id=user.id, hash=bytes([number]) * 32, shown="pkgr_c_...abcd", **given)


def test_a_token_comes_back_as_added_with_all_its_limits(catalog, alice):
    token = add(catalog, alice, limits=LIMITS, description="d", created_from="192.0.2.1")
    assert token.limits == LIMITS
    assert (token.kind, token.name, token.description, token.shown) == (TokenKind.CI, "t1", "d", "pkgr_c_...abcd")
    assert (token.uses, token.revoked_at, token.last_used_at) == (0, None, None)
    assert catalog.peek(tokens.find_token, token.id) == token
    assert catalog.peek(tokens.find_token_by_uid, token.uid) == token
    assert catalog.peek(tokens.find_token_by_hash, b"\1" * 32) == token


def test_a_token_without_limits_has_none(catalog, alice):
    assert add(catalog, alice).limits == TokenLimits()


def test_absent_tokens_are_none_or_raise(catalog):
    assert catalog.peek(tokens.find_token, 5) is None
    assert catalog.peek(tokens.find_token_by_uid, "x") is None
    assert catalog.peek(tokens.find_token_by_hash, b"\2" * 32) is None
    with pytest.raises(NotFound):
        catalog.do(tokens.update_token, 5)
    with pytest.raises(NotFound):
        catalog.do(tokens.revoke_token, 5, now_ms=1)


def test_lists_are_paged_by_owner(catalog, alice):
    bob = catalog.do(users.add_user, username="bob", now_ms=1)
    mine = [add(catalog, alice, number) for number in (1, 2, 3)]
    add(catalog, bob, 4)
    assert catalog.peek(tokens.list_tokens, alice.id, limit=2) == mine[:2]
    assert catalog.peek(tokens.list_tokens, alice.id, after=(mine[1].id,)) == mine[2:]


def test_new_limits_invalidate_short_lived_tokens_and_a_new_name_does_not(catalog, alice):
    token = add(catalog, alice)
    catalog.do(tokens.update_token, token.id, name="other", description="d")
    assert catalog.peek(users.get_user, alice.id).generation == alice.generation
    changed = catalog.do(tokens.update_token, token.id, limits=LIMITS)
    assert (changed.limits, changed.name, changed.description) == (LIMITS, "other", "d")
    assert catalog.peek(users.get_user, alice.id).generation == alice.generation + 1


def test_revoking_keeps_the_row_and_the_first_time(catalog, alice):
    token = add(catalog, alice)
    catalog.do(tokens.revoke_token, token.id, now_ms=2000)
    again = catalog.do(tokens.revoke_token, token.id, now_ms=3000)
    assert again.revoked_at.timestamp() == 2
    assert catalog.peek(users.get_user, alice.id).generation == alice.generation + 1


def test_tokens_are_removed_with_their_owner(catalog, alice):
    token = add(catalog, alice)
    catalog.do(users.remove_user, alice.id)
    assert catalog.peek(tokens.find_token, token.id) is None


def test_uses_are_added_and_an_empty_address_keeps_the_stored_one(catalog, alice):
    token = add(catalog, alice)
    before = catalog.peek(users.identity_serial)
    catalog.do(tokens.record_use, [TokenUse(token.id, 5000, "192.0.2.1", "pip", 3), TokenUse(99, 1, "", "", 1)])
    catalog.do(tokens.record_use, [TokenUse(token.id, 6000, "", "", 2)])
    found = catalog.peek(tokens.get_token, token.id)
    assert (found.uses, found.last_used_ip, found.last_used_client) == (5, "192.0.2.1", "pip")
    assert found.last_used_at.timestamp() == 6
    assert catalog.peek(users.identity_serial) == before


def test_every_other_change_increments_the_serial(catalog, increments, alice):
    token = add(catalog, alice)
    assert increments(tokens.update_token, token.id, limits=LIMITS)
    assert increments(tokens.revoke_token, token.id, now_ms=1)
    assert increments(
        tokens.add_token, user_id=alice.id, hash=b"9" * 32, shown="", kind=TokenKind.CI, name="x", now_ms=1
    )
