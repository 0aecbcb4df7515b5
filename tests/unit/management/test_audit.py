"""The audit log: every change and refusal has a row, no row contains a secret."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pkgrepo.management.api.call import Call
from pkgrepo.management.lifecycle import trash as routes
from pkgrepo.storage.catalog.server import trash
from tests.support.memory_server import OTHER_PASSWORD, Stack


async def test_a_line_says_who_what_and_whence(stack: Stack) -> None:
    token = await stack.token(scopes=["system"])
    body = {"name": "py", "storage": "main", "format": "python"}
    await stack.ok("POST", "/repository", body, who=token, headers={"X-Request-Id": "request-77"})
    line = (await stack.audited())[0]
    assert (line["actor"], line["action"], line["object"]) == ("admin", "repository.create", "main/py")
    assert (line["request_id"], line["address"], line["outcome"]) == ("request-77", "192.168.1.1", "ok")
    assert line["token_id"] is not None


async def test_refusals_leave_a_line(stack: Stack) -> None:
    await stack.add_user("ada")
    await stack.api("GET", "/users", who="ada")
    await stack.api("DELETE", "/users/admin", who="ada")
    await stack.api("GET", "/users", headers={"Authorization": "Basic YWRhOndyb25n"})
    lines = await stack.audited(outcome="refused")
    assert [(line["actor"], line["action"]) for line in lines] == [
        ("anonymous", "login"),
        ("ada", "user.delete"),
        ("ada", "GET /users"),
    ]


async def test_strangers_without_credentials_fill_no_log(stack: Stack) -> None:
    before = len(await stack.audited())
    await stack.api("GET", "/users", who=None)
    await stack.api("POST", "/repository", {"name": "x"}, who=None)
    assert len(await stack.audited()) == before


async def test_strangers_with_made_up_credentials_fill_no_log_either(stack: Stack) -> None:
    before = len(await stack.audited())
    made_up = {"Authorization": "Bearer aaa.bbb.ccc"}
    for number in range(50):
        await stack.api("GET", f"/users/{number}{'x' * 20_000}", who=None, headers=made_up)
    (line, *older) = await stack.audited()
    assert len(older) == before
    assert line["detail"]["count"] == 50
    assert len(json.dumps(line)) < 1000


async def test_a_change_that_fails_leaves_a_line_and_nothing_else(stack: Stack) -> None:
    await stack.add_repository()
    await stack.api("POST", "/repository", {"name": "py", "storage": "main", "format": "python"})
    (line,) = await stack.audited(outcome="failed")
    assert line["detail"]["reason"] == "repository 'py' already exists"
    assert len(await stack.audited(action="repository.create", outcome="ok")) == 1


async def prepare_undone(stack: Stack) -> None:
    """A server that has what ``UNDONE`` asks for, but not what is to be ended or removed of it."""
    await stack.add_user("ada")
    await stack.ok("POST", "/groups", {"name": "crew"})
    await stack.ok("POST", "/project", {"key": "acme"})
    await stack.add_repository()
    await stack.publish("main/py", "web", "1.0")
    route = {"url": "https://there.example/repositories/main/py"}
    config = {"type": "Proxy", "proxy": {"routes": [route]}, "replicate": {}}
    await stack.add_repository("copy", config=config)


UNDONE = [
    ("DELETE", "/package/main%2Fpy/web/versions/1.0/pin", None, 404),
    ("DELETE", "/package/main%2Fpy/web/versions/9.9", None, 404),
    ("DELETE", "/users/ada/second-factor", None, 404),
    ("DELETE", "/users/ada/password-link", None, 404),
    ("DELETE", "/users/ada/sessions/7", None, 404),
    ("DELETE", "/user/sessions/7", None, 404),
    ("DELETE", "/user/passkeys/7", None, 404),
    ("DELETE", "/groups/crew/members", {"user": "ada"}, 404),
    ("DELETE", "/project/acme/bindings?repository=main/py&pattern=web", None, 404),
    ("POST", "/repository/main%2Fcopy/replication/compare", {}, 409),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), UNDONE)
async def test_what_there_was_not_to_do_has_one_line_which_says_that_it_failed(
    stack: Stack, method: str, path: str, body: Any, status: int
) -> None:
    await prepare_undone(stack)
    before = len(await stack.audited())
    assert (await stack.api(method, path, body)).status == status
    (line, *older) = await stack.audited()
    assert (line["outcome"], len(older)) == ("failed", before)


async def test_of_two_who_purge_an_entry_of_the_trash_one_has_done_it(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stack.add_repository()
    await stack.publish("main/py", "web", "1.0")
    await stack.ok("DELETE", "/package/main%2Fpy/web/versions/1.0")
    [entry] = (await stack.ok("GET", "/trash"))["items"]

    async def find_entry(call: Call, uid: str) -> Any:
        """Another request is first when this one has found the entry."""
        found = await find(call, uid)
        await call.catalog.write(trash.purge_entry, found.id)
        return found

    find = routes._find_entry
    monkeypatch.setattr(routes, "_find_entry", find_entry)
    assert (await stack.api("DELETE", f"/trash/{entry['id']}")).status == 404
    assert [each["outcome"] for each in await stack.audited(action="trash.purge")] == ["failed"]


async def test_no_secret_reaches_the_log(stack: Stack) -> None:
    await stack.add_user("ada")
    made = await stack.ok("POST", "/user/token", {"name": "x"}, who="ada")
    rotated = await stack.ok("POST", f"/user/token/{made['id']}/rotate", who="ada")
    await stack.ok("PUT", "/users/ada/password", {"password": "yet another secret"})
    bearer = await stack.bearer()
    dump = (await stack.api("GET", "/audit?limit=1000")).body.decode()
    for secret in (OTHER_PASSWORD, made["token"], rotated["token"], "yet another secret", bearer, "argon2"):
        assert secret not in dump


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("actor=admin", 4),
        ("actor=ada", 0),
        ("object=main/r1", 1),
        ("action=repository.create", 3),
        ("action=repository.", 3),
        ("action=user.", 1),
        ("outcome=ok", 4),
        ("outcome=failed", 0),
        ("from={before}", 4),
        ("from={after}", 0),
        ("to={after}", 4),
        ("to={before}", 0),
    ],
)
async def test_lines_are_narrowed(stack: Stack, query: str, count: int) -> None:
    for number in range(3):
        await stack.add_repository(f"r{number}")
    await stack.add_user("ada")
    now = datetime.now(UTC)
    times = {"before": now - timedelta(hours=1), "after": now + timedelta(hours=1)}
    query = query.format(**{name: time.isoformat() for name, time in times.items()})
    assert len((await stack.ok("GET", f"/audit?{query}"))["items"]) == count


@pytest.mark.parametrize("time", ["yesterday", "2026-01-01T00:00:00", "12"])
async def test_a_time_that_is_none_is_refused(stack: Stack, time: str) -> None:
    reply = await stack.api("GET", f"/audit?from={time}")
    assert (reply.status, reply.pointer) == (422, "from")


async def test_the_log_is_read_in_pages_and_as_lines(stack: Stack) -> None:
    for number in range(5):
        await stack.add_repository(f"r{number}")
    first = await stack.ok("GET", "/audit?limit=3")
    second = await stack.ok("GET", f"/audit?limit=3&cursor={first['next']}")
    ids = [line["id"] for page in (first, second) for line in page["items"]]
    assert ids == [5, 4, 3, 2, 1]
    lines = await stack.api("GET", "/audit?limit=3&format=ndjson")
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in lines.body.splitlines()] == first["items"]
    assert f"cursor={first['next']}" in lines.headers["link"]
    accepted = await stack.api("GET", "/audit", headers={"Accept": "application/x-ndjson"})
    assert len(accepted.body.splitlines()) == 5


async def test_a_copy_goes_to_a_file(make_stack: Any, tmp_path: Path) -> None:
    stack: Stack = await make_stack(log__audit_file=str(tmp_path / "audit.jsonl"))
    await stack.add_repository()
    await stack.api("POST", "/repository", {"name": "py", "storage": "main", "format": "python"})
    await stack.audited()  # reading the log writes the queue first
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [(line["action"], line["outcome"], line["object"]) for line in lines] == [
        ("repository.create", "ok", "main/py"),
        ("repository.create", "failed", "main/py"),
    ]


async def test_what_people_do_with_their_accounts_through_clients_is_in_the_file_too(
    make_stack: Any, tmp_path: Path
) -> None:
    stack: Stack = await make_stack(log__audit_file=str(tmp_path / "audit.jsonl"))
    await stack.add_user("ada")
    await stack.add_repository("node", format="npm")
    document = json.dumps({"name": "ada", "password": OTHER_PASSWORD}).encode()
    path = "/repositories/main/node/-/user/org.couchdb.user:ada"
    assert (await stack.call("PUT", path, raw=document, who=None)).status == 201
    rows = await stack.audited()
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert rows[0]["action"] == "token.create"
    assert [line["action"] for line in reversed(lines)] == [row["action"] for row in rows]
