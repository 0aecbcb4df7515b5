"""Access tokens: made, narrowed, rotated and revoked; none allows more than its creator may do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pkgrepo.errors import Forbidden
from pkgrepo.management.tokens.limits import check_not_wider
from pkgrepo.model import Action, RepositoryScope, TokenLimits
from tests.support.inprocess_server import PASSWORD
from tests.support.memory_server import Stack

READ, WRITE = Action.READ, Action.WRITE


def scope(repository: str, *actions: Action, packages: tuple[str, ...] = ()) -> RepositoryScope:
    return RepositoryScope(repository, frozenset(actions), packages)


def limits(*repositories: RepositoryScope, **rest: Any) -> TokenLimits:
    return TokenLimits(repositories=repositories, **rest)


SOON, LATER = datetime(2030, 1, 1, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("own", "wanted", "fine"),
    [
        (None, limits(), True),
        (limits(), limits(scope("main/*", READ)), True),
        (limits(scope("main/*", READ)), limits(), False),
        (limits(scope("main/*", READ, WRITE)), limits(scope("main/py", WRITE)), True),
        (limits(scope("main/*", READ, WRITE)), limits(scope("MAIN/py", WRITE)), True),
        (limits(scope("main/*", READ)), limits(scope("main/py", WRITE)), False),
        (limits(scope("main/py", READ)), limits(scope("main/p*", READ)), False),
        (limits(scope("main/*", READ)), limits(scope("main/*", READ)), True),
        (limits(scope("main/*", READ)), limits(scope("main/p*", READ)), True),
        (limits(scope("main/p?", READ)), limits(scope("main/p[xy]", READ)), False),  # it is not certain
        (limits(scope("*", READ)), limits(scope("main/p*", READ)), True),
        (limits(scope("a/*", READ), scope("b/*", WRITE)), limits(scope("a/x", READ), scope("b/y", WRITE)), True),
        (limits(scope("a/*", READ), scope("b/*", WRITE)), limits(scope("a/x", WRITE)), False),
        (limits(scope("*", READ, packages=("a*",))), limits(scope("*", READ)), False),
        (limits(scope("*", READ, packages=("a*",))), limits(scope("*", READ, packages=("abc",))), True),
        (limits(scope("*", READ, packages=("a*",))), limits(scope("*", READ, packages=("abc", "b"))), False),
        (limits(packages=("a*",)), limits(), False),
        (limits(packages=("a*",)), limits(packages=("abc",)), True),
        (limits(packages=("a*",)), limits(packages=("b",)), False),
        (limits(scopes=frozenset({"users"})), limits(scopes=frozenset({"users"})), True),
        (limits(scopes=frozenset({"users"})), limits(scopes=frozenset({"users", "audit"})), False),
        (limits(cidrs=("10.0.0.0/8",)), limits(), False),
        (limits(cidrs=("10.0.0.0/8",)), limits(cidrs=("10.0.0.0/8",)), True),
        (limits(expires_at=SOON), limits(expires_at=LATER), False),
        (limits(expires_at=SOON), limits(), False),
        (limits(expires_at=LATER), limits(expires_at=SOON), True),
    ],
)
def test_a_token_allows_nothing_that_its_creator_lacks(
    own: TokenLimits | None, wanted: TokenLimits, fine: bool
) -> None:
    if fine:
        check_not_wider(wanted, own)
    else:
        with pytest.raises(Forbidden):
            check_not_wider(wanted, own)


async def test_the_text_of_a_token_is_shown_once(stack: Stack) -> None:
    made = await stack.ok("POST", "/user/token", {"name": "ci", "description": "for builds", "kind": "ci"})
    text = made.pop("token")
    assert made.pop("notes") == []
    assert text.startswith("pkgr_c_")
    assert made["shown"].endswith(text[-4:])
    assert await stack.ok("GET", f"/user/token/{made['id']}") == made
    assert await stack.ok("GET", f"/user/token/get/{made['id']}") == made
    listed = await stack.api("GET", "/user/token/list")
    assert listed.json["items"] == [made]
    assert text.encode() not in listed.body
    assert text not in str(await stack.audited())
    end = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"])
    assert end == timedelta(days=90)


@pytest.mark.parametrize(
    ("body", "access", "scopes", "repositories"),
    [
        ({}, "owner", None, None),
        ({"scopes": []}, "none", [], None),
        ({"scopes": ["metrics"]}, "none", ["metrics"], None),
        ({"repositories": []}, "none", None, []),
        ({"scopes": ["Read"]}, "listed", ["Read"], None),
        ({"repositories": [{"repository": "*"}]}, "listed", None, [{"repository": "*", "actions": None}]),
        (
            {"repository_scopes": [{"repository_id": "main/py", "scopes": ["ReadRepository"]}]},
            "listed",
            None,
            [{"repository_id": "main/py", "scopes": ["ReadRepository"]}],
        ),
    ],
)
async def test_a_record_has_the_limits_and_the_request_of_a_token(
    stack: Stack, body: dict[str, Any], access: str, scopes: Any, repositories: Any
) -> None:
    await stack.add_repository(visibility="private")
    made = await stack.ok("POST", "/user/token", {"name": "x", **body})
    text = made.pop("token")
    may = (await stack.api("GET", "/repository/main%2Fpy", who=text)).status
    assert may == (404 if access == "none" else 200)
    turned = await stack.ok("POST", f"/user/token/{made['id']}/rotate", {})
    for record in (made, turned, *(await stack.ok("GET", "/user/token"))["items"]):
        assert record["repository_access"] == access
        assert record["asked"]["scopes"] == scopes
        found = record["asked"]["repositories"]
        assert (found is None) == (repositories is None)
        for given, shown in zip(repositories or (), found or (), strict=True):
            assert shown == {**shown, **given}


async def test_a_login_token_has_no_request(stack: Stack) -> None:
    await stack.ok("GET", "/auth/token?offline_token=true")
    (record,) = (await stack.ok("GET", "/user/token"))["items"]
    assert (record["repository_access"], record["asked"]) == ("owner", None)


async def test_a_token_for_one_repository_reaches_no_other(stack: Stack) -> None:
    one = await stack.add_repository("one", visibility="private")
    await stack.add_repository("two", visibility="private")
    for given in (
        {"repositories": [{"repository": "main/one", "actions": ["read"]}]},
        {"repositories": [{"repository": one["id"]}]},
        {"repository_scopes": [{"repository_id": one["id"], "scopes": ["ReadRepository"]}], "scopes": []},
        {"scopes": ["read"], "repositories": [{"repository": "main/on*"}]},
    ):
        token = await stack.token(**given)
        assert (await stack.api("GET", "/repository/main%2Fone/packages", who=token)).status == 200, given
        assert (await stack.api("GET", "/repository/main%2Ftwo/packages", who=token)).status == 404, given
        assert (await stack.api("PATCH", "/repository/main%2Fone", {"description": "x"}, who=token)).status == 403
        assert (await stack.api("GET", "/user/token", who=token)).status == 403


async def test_server_scopes_open_no_repository(stack: Stack) -> None:
    await stack.add_repository("one", visibility="private")
    token = await stack.token(scopes=["users"])
    assert (await stack.api("GET", "/users", who=token)).status == 200
    assert (await stack.api("GET", "/repository/main%2Fone", who=token)).status == 404
    assert (await stack.api("GET", "/audit", who=token)).status == 403
    plain = await stack.token()
    assert (await stack.api("GET", "/repository/main%2Fone", who=plain)).status == 200
    assert (await stack.api("GET", "/users", who=plain)).status == 403


async def test_a_token_with_all_scopes_and_actions_has_all_rights_of_its_owner(stack: Stack) -> None:
    known = await stack.ok("GET", "/info/scopes", who=None)
    everything = [each["name"] for each in (*known["scopes"], *known["actions"])]
    await stack.add_user("boss", user_manager=True)
    whole = await stack.token(scopes=everything)
    assert (await stack.ok("PATCH", "/users/boss", {"system_manager": True}, who=whole))["system_manager"] is True
    assert (await stack.api("POST", "/user/token", {"name": "plain"}, who=whole)).status == 201
    for less in everything:
        part = await stack.token(scopes=[each for each in everything if each != less])
        assert (await stack.api("PATCH", "/users/boss", {"admin": True}, who=part)).status == 403, less
    narrow = await stack.token(scopes=everything, packages=["a*"])
    assert (await stack.api("PATCH", "/users/boss", {"admin": True}, who=narrow)).status == 403
    own = await stack.token(who="boss", scopes=everything)
    assert (await stack.api("PATCH", "/users/boss", {"admin": True}, who=own)).status == 403


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/name"),
        ({"name": ""}, "/name"),
        ({"name": "x", "scopes": ["everything"]}, "/scopes/0"),
        ({"name": "x", "repositories": [{"actions": ["read"]}]}, "/repositories/0/repository"),
        ({"name": "x", "repositories": [{"repository": "main/none"}]}, "/repositories/0/repository"),
        ({"name": "x", "repositories": [{"repository": "none"}]}, "/repositories/0/repository"),
        ({"name": "x", "repositories": [{"repository": "*", "actions": ["fly"]}]}, "/repositories/0/actions/0"),
        ({"name": "x", "cidrs": ["10.0.0.0/33"]}, "/cidrs/0"),
        ({"name": "x", "expires_in_days": 0}, "/expires_in_days"),
        ({"name": "x", "expires_in_days": 10**30}, "/expires_in_days"),
        ({"name": "x", "expires_in_days": 366}, "/expires_in_days"),
        ({"name": "x", "expires_at": "2001-01-01T00:00:00Z"}, "/expires_at"),
        ({"name": "x", "expires_at": "2001-01-01T00:00:00"}, "/expires_at"),
    ],
)
async def test_a_wrong_token_is_refused(stack: Stack, body: dict[str, Any], pointer: str) -> None:
    reply = await stack.api("POST", "/user/token", body)
    assert (reply.status, reply.pointer) == (422, pointer)


async def test_a_token_that_ends_with_the_one_that_made_it_says_so(stack: Stack) -> None:
    asked = {"name": "short", "expires_in_days": 10, "scopes": ["api:write"]}
    short = (await stack.ok("POST", "/user/token", asked))["token"]
    for body, told in (({}, True), ({"expires_in_days": 5}, False)):
        made = await stack.ok("POST", "/user/token", {"name": "x", "scopes": ["api:write"], **body}, who=short)
        assert [each.startswith("the token ends on 20") for each in made["notes"]] == [True] * told
    assert (await stack.ok("POST", "/user/token", {"name": "x"}))["notes"] == []


async def test_a_token_makes_no_wider_one(stack: Stack) -> None:
    await stack.add_repository()
    parent = await stack.token(
        scopes=["api:write"], repositories=[{"repository": "main/py", "actions": ["read"]}], expires_in_days=10
    )
    wider: list[dict[str, Any]] = [
        {},
        {"scopes": ["api:write", "users"], "repositories": []},
        {"scopes": [], "repositories": [{"repository": "*", "actions": ["read"]}]},
        {"scopes": [], "repositories": [{"repository": "main/py", "actions": ["read", "write"]}]},
        {"scopes": [], "repositories": [], "expires_in_days": 11},
    ]
    for body in wider:
        assert (await stack.api("POST", "/user/token", {"name": "x", **body}, who=parent)).status == 403, body
    child = {"name": "x", "repositories": [{"repository": "main/py", "actions": ["read"]}]}
    reply = await stack.api("POST", "/user/token", child, who=parent)
    assert reply.status == 201
    assert datetime.fromisoformat(reply.json["expires_at"]) <= datetime.now(UTC) + timedelta(days=10)


async def test_a_bearer_token_makes_no_tokens_and_sets_no_passwords(stack: Stack) -> None:
    made = await stack.ok("POST", "/user/token", {"name": "x", "scopes": ["api:read", "api:write"]})
    await stack.add_user("ada")
    for who in ("admin", made["token"]):
        bearer = await stack.bearer(who)
        assert (await stack.api("GET", "/user/token", who=bearer)).status == 200
        for method, path, body in (
            ("POST", "/user/token", {"name": "x"}),
            ("POST", f"/user/token/{made['id']}/rotate", {}),
            ("POST", "/user/change-password", {"old_password": PASSWORD, "new_password": "entirely different"}),
            ("PUT", "/users/ada/password", {"password": "entirely different"}),
        ):
            assert (await stack.api(method, path, body, who=bearer)).status == 403, path
        assert "refresh_token" not in await stack.ok("GET", "/auth/token?offline_token=true", who=bearer)
    assert len((await stack.ok("GET", "/user/token"))["items"]) == 1


async def test_a_token_can_only_be_narrowed(stack: Stack) -> None:
    await stack.add_repository()
    made = await stack.ok(
        "POST", "/user/token", {"name": "x", "repositories": [{"repository": "main/*", "actions": ["read", "write"]}]}
    )
    path = f"/user/token/{made['id']}"
    changed = await stack.ok(
        "PATCH", path, {"name": "y", "repositories": [{"repository": "main/py", "actions": ["read"]}]}
    )
    assert (changed["name"], changed["repositories"][0]["repository"]) == ("y", "main/py")
    for body in (
        {"repositories": [{"repository": "main/*", "actions": ["read"]}]},
        {"scopes": ["users"]},
        {"expires_at": "2099-01-01T00:00:00Z"},
    ):
        assert (await stack.api("PATCH", path, body)).status == 403, body
    assert (await stack.api("PATCH", path, {"cidrs": ["nonsense"]})).status == 422
    assert (await stack.ok("PATCH", path, {"cidrs": ["10.0.0.0/8"]}))["cidrs"] == ["10.0.0.0/8"]


async def test_a_revoked_token_ends_at_once_and_stays_in_the_list(stack: Stack) -> None:
    made = await stack.ok("POST", "/user/token", {"name": "x", "scopes": ["api:read"]})
    assert (await stack.api("GET", "/user/me", who=made["token"])).status == 200
    assert await stack.ok("DELETE", f"/user/token/{made['id']}") is None
    assert (await stack.api("GET", "/user/me", who=made["token"])).status == 401
    assert (await stack.ok("GET", f"/user/token/{made['id']}"))["revoked_at"] is not None
    assert await stack.ok("DELETE", f"/user/token/delete/{made['id']}") is None
    assert (await stack.api("POST", f"/user/token/{made['id']}/rotate")).status == 409


@pytest.mark.parametrize(("grace", "old_status"), [(0, 401), (3600, 200)])
async def test_a_rotated_token_has_a_new_text(stack: Stack, grace: int, old_status: int) -> None:
    old = await stack.ok("POST", "/user/token", {"name": "x", "scopes": ["api:read"], "expires_in_days": 30})
    new = await stack.ok("POST", f"/user/token/{old['id']}/rotate", {"grace_s": grace})
    assert new["token"] != old["token"]
    assert (new["name"], new["scopes"]) == (old["name"], old["scopes"])
    assert (await stack.api("GET", "/user/me", who=new["token"])).status == 200
    assert (await stack.api("GET", "/user/me", who=old["token"])).status == old_status
    if grace:
        ends = datetime.fromisoformat((await stack.ok("GET", f"/user/token/{old['id']}"))["expires_at"])
        assert ends < datetime.now(UTC) + timedelta(hours=2)


async def test_nobody_sees_the_tokens_of_others(stack: Stack) -> None:
    await stack.add_user("ada")
    made = await stack.ok("POST", "/user/token", {"name": "x"}, who="ada")
    for method in ("GET", "DELETE"):
        assert (await stack.api(method, f"/user/token/{made['id']}")).status == 404
    assert (await stack.ok("GET", "/user/token?count=true"))["total"] == 0
