from datetime import UTC, datetime, timedelta

import pytest

from pkgrepo.auth.tokens.limits import address_allowed, allows, check_limits, in_force, literal
from pkgrepo.errors import Invalid
from pkgrepo.model import Action, RepositoryScope, TokenLimits

READ, WRITE, EDIT = frozenset({Action.READ}), frozenset({Action.READ, Action.WRITE}), frozenset({Action.EDIT})


def limits(*scopes, packages=()):
    return TokenLimits(repositories=tuple(RepositoryScope(*scope) for scope in scopes), packages=packages)


@pytest.mark.parametrize(
    ("given", "action", "path", "package", "allowed"),
    [
        (limits(), "admin", "main/py", None, True),
        (limits(("main/py", WRITE)), "write", "main/py", "x", True),
        (limits(("main/py", READ)), "write", "main/py", "x", False),
        (limits(("main/py", WRITE)), "write", "main/npm", "x", False),
        (limits(("Main/PY", WRITE)), "write", "main/py", "x", True),
        (limits(("main/py", WRITE)), "write", "MAIN/Py", "x", True),
        (limits(("main/*", WRITE)), "write", "main/py", "x", True),
        (limits(("main/*", WRITE)), "write", "maintenance/py", "x", False),
        (limits(("main/p", WRITE)), "write", "main/py", "x", False),
        (limits(("*", READ), ("main/py", WRITE)), "write", "main/py", "x", True),
        (limits(("*", READ), ("main/py", WRITE)), "write", "main/npm", "x", False),
        (limits(packages=("acme-*",)), "read", "main/py", "acme-x", True),
        (limits(packages=("acme-*",)), "read", "main/py", "acme", False),
        (limits(packages=("@acme/*",)), "read", "main/npm", "@acme/x", True),
        (limits(packages=("@acme/*",)), "read", "main/npm", "@acmex/x", False),
        (limits(packages=("acme-*",)), "read", "main/py", "Acme-x", False),
        # without a name: asked in advance, or about everything
        (limits(packages=("acme-*",)), "write", "main/py", None, True),
        (limits(packages=("acme-*",)), "delete", "main/py", None, True),
        (limits(packages=("acme-*",)), "read", "main/py", None, False),
        (limits(packages=("acme-*",)), "edit", "main/py", None, False),
        # packages of one scope do not leak into another
        (limits(("main/a", WRITE, ("x",)), ("main/b", READ, ("y",))), "write", "main/a", "x", True),
        (limits(("main/a", WRITE, ("x",)), ("main/b", READ, ("y",))), "write", "main/a", "y", False),
        (limits(("main/a", WRITE, ("x",)), ("main/b", READ, ("y",))), "read", "main/b", "x", False),
    ],
)
def test_limits_reach_as_far_as_they_say(given, action, path, package, allowed):
    assert allows(given, Action(action), path, package) is allowed


def test_a_literal_matches_nothing_but_itself():
    odd = "a*b?c[d]"
    given = limits(packages=(literal(odd),))
    assert allows(given, Action.READ, "main/py", odd)
    assert not allows(given, Action.READ, "main/py", "axbxcd")


@pytest.mark.parametrize(
    ("cidrs", "address", "allowed"),
    [
        ((), "", True),
        (("192.0.2.0/24",), "192.0.2.7", True),
        (("192.0.2.0/24",), "192.0.3.7", False),
        (("192.0.2.7",), "192.0.2.7", True),
        (("192.0.2.9/24",), "192.0.2.7", True),
        (("2001:db8::/32", "192.0.2.0/24"), "2001:db8::1", True),
        (("2001:db8::/32",), "192.0.2.1", False),
        (("192.0.2.0/24",), "::ffff:192.0.2.7", True),
        (("fe80::/10",), "fe80::1%eth0", True),
        (("0.0.0.0/0",), "", False),
        (("0.0.0.0/0",), "a unix socket", False),
    ],
)
def test_addresses_are_compared_with_networks(cidrs, address, allowed):
    assert address_allowed(TokenLimits(cidrs=cidrs), address) is allowed


def test_limits_end_at_their_time_and_not_before():
    end = datetime(2026, 1, 1, tzinfo=UTC)
    given = TokenLimits(expires_at=end)
    assert in_force(given, end - timedelta(microseconds=1))
    assert not in_force(given, end)
    assert in_force(TokenLimits(), end)


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        (TokenLimits(scopes=frozenset({"root"})), "/scopes"),
        (TokenLimits(cidrs=("192.0.2.0/24", "300.1.1.1")), "/cidrs/1"),
        (TokenLimits(packages=("x", "")), "/packages/1"),
        (limits(("", READ)), "/repositories/0/repository"),
    ],
)
def test_limits_that_mean_nothing_are_refused_where_they_are_wrong(given, pointer):
    with pytest.raises(Invalid) as refused:
        check_limits(given)
    assert refused.value.pointer == pointer


def test_sensible_limits_pass_unchanged():
    given = TokenLimits(
        scopes=frozenset({"api:read"}),
        repositories=(RepositoryScope("main/*", READ),),
        packages=("acme-*",),
        cidrs=("192.0.2.0/24", "2001:db8::1"),
    )
    assert check_limits(given) == given
