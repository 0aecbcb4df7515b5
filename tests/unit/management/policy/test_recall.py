"""Recall: who fetched a version, by the download log."""

from __future__ import annotations

import csv
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from pathlib import Path

import pytest
import pytest_twisted

from pkgrepo.repositories.downloads import prefix_of
from pkgrepo.storage.catalog import download_log
from pkgrepo.storage.catalog.server import settings
from tests.support.images import Registry, digest_of, make_image
from tests.support.memory_server import Stack, running_stacks

AT = "/repository/main%2Fpy"
MakeStack = Callable[..., Awaitable[Stack]]


@pytest_twisted.async_yield_fixture
async def stacks(tmp_path: Path) -> AsyncIterator[MakeStack]:
    """Starts servers with settings."""
    async with running_stacks(tmp_path) as make:
        yield make


async def fetched_file(stack: Stack, *people: str | None, version: str = "1.0") -> str:
    filename = await stack.publish("main/py", "My.Demo", version)
    path = f"/repositories/main/py/my-demo/{version}/{filename}"
    for who in people:
        reply = await stack.call("GET", path, who=who)
        assert reply.status == 200
    return path


async def test_the_log_reaches_back_to_its_first_row_unless_older_days_are_gone(stack: Stack) -> None:
    await stack.add_repository("py")
    await fetched_file(stack, "admin")
    found = await stack.ok("GET", "/recall?repository=main/py&package=my_DEMO")
    catalog, kept_s = stack.assembly.core.catalog, (found["log_days"] - 1) * 86_400
    for since_ms in (0, 4_000_000_000_000):
        await catalog.write(settings.put, download_log.SINCE, str(since_ms))
        since = (await stack.ok("GET", "/recall?repository=main/py&package=my_DEMO"))["since"]
        said_s = datetime.fromisoformat(since).timestamp()
        assert said_s == since_ms // 1000 if since_ms else 0 <= time.time() - kept_s - said_s < 2 * 86_400


async def test_who_fetched_a_version(stack: Stack) -> None:
    await stack.add_repository("py")
    await stack.add_user("ada")
    await stack.grant("ada", "main/py", "read")
    path = await fetched_file(stack, "ada", "ada", "admin", None)
    token = await stack.token("ada", name="ci", repositories=[{"repository": "main/py", "actions": ["read"]}])
    await stack.call("GET", path, headers={"Authorization": f"Bearer {token}"})
    await fetched_file(stack, "admin", version="2.0")
    found = await stack.ok("GET", "/recall?repository=main/py&package=my_DEMO&version=1")
    counts = {(each["user"], each["token"]): each["count"] for each in found["items"]}
    assert counts == {("ada", None): 2, ("ada", "ci"): 1, ("admin", None): 1}
    assert all(each["first_at"] <= each["last_at"] and each["address"] is None for each in found["items"])
    assert (found["anonymous"], found["count"], found["clients"], found["problem"]) == (1, 5, 3, "")
    assert [(each["address"], each["count"]) for each in found["anonymous_items"]] == [(None, 1)]
    (file,) = found["fetched"]
    assert (file["repository"], file["package"], file["version"]) == ("main/py", "My.Demo", "1.0")
    assert found["since"] is not None

    by_digest = await stack.ok("GET", f"/recall?digest={file['digest']}")
    by_purl = await stack.ok("GET", "/recall?purl=pkg:pypi/my-demo@1.0%3Fx=y")
    assert found["items"] == by_digest["items"] == by_purl["items"]
    assert (await stack.ok("GET", "/recall?purl=pkg:pypi/my-demo"))["files"] == 2
    first = await stack.ok("GET", f"/recall?digest={file['digest']}&limit=2&sort=-count")
    assert [each["count"] for each in first["items"]] == [2, 1]
    rest = await stack.ok("GET", f"/recall?digest={file['digest']}&limit=2&sort=-count&cursor={first['next']}")
    assert (len(rest["items"]), rest["next"]) == (1, None)
    assert (await stack.audited(action="recall.read"))[0]["object"] == f"digest={file['digest']}"


async def test_fetches_of_a_copy_are_fetches_of_what_it_is_made_of(stack: Stack) -> None:
    await stack.add_repository("py")
    await stack.publish("main/py", "torch", "1.0")
    await stack.publish("main/py", "torch", "2.0")
    for version in ("1.0", "1.0", "2.0"):
        path = f"/repositories/main/py/conda/noarch/pytorch-{version}-py_0.conda"
        assert (await stack.call("GET", path)).status == 200
    for question in ("repository=main/py&package=torch&version=1.0", "purl=pkg:pypi/torch@1.0"):
        found = await stack.ok("GET", f"/recall?{question}")
        assert (found["count"], [each["package"] for each in found["fetched"]]) == (2, ["pytorch"])


async def test_heads_ranges_and_copies_that_are_current(stack: Stack) -> None:
    await stack.add_repository("py")
    path = await fetched_file(stack)
    for headers in ({"Range": "bytes=5-"}, {"Range": "bytes=-5"}, {"If-None-Match": "*"}):
        assert (await stack.call("GET", path, headers=headers)).status in (206, 304)
    await stack.call("HEAD", path)
    question = "/recall?repository=main/py&package=my-demo&version=1.0"
    assert (await stack.ok("GET", question))["count"] == 0
    assert (await stack.call("GET", path, headers={"Range": "bytes=0-3"})).status == 206
    assert (await stack.ok("GET", question))["count"] == 1
    assert (await stack.ok("GET", f"{AT}/downloads?days=1"))["days"][0]["count"] == 0


async def test_fetches_through_a_virtual_repository_are_those_of_its_member(stack: Stack) -> None:
    made = await stack.add_repository("py")
    await stack.add_repository("all", config={"type": "Virtual", "members": ["main/py"]})
    path = await fetched_file(stack)
    assert (await stack.call("GET", path.replace("/main/py/", "/main/all/"))).status == 200
    for place in ("main/py", "main/all", made["id"]):
        found = await stack.ok("GET", f"/recall?repository={place}&package=my-demo&version=1.0")
        assert ([each["count"] for each in found["items"]], found["fetched"][0]["repository"]) == ([1], "main/py")


async def test_images_are_recalled_by_tag_and_by_digest(stack: Stack) -> None:
    await stack.add_repository("images", format="docker")
    registry = Registry(stack)
    image = make_image("one")
    await registry.push(image, "v1")
    digest = f"sha256:{image.digest}" if ":" not in image.digest else image.digest
    await stack.call("GET", "/v2/main/images/app/manifests/v1")
    await stack.call("GET", f"/v2/main/images/app/manifests/{digest}")
    at = "/recall?repository=main/images&package=app"
    assert (await stack.ok("GET", f"{at}&version=v1"))["count"] == 1
    assert (await stack.ok("GET", f"{at}&version={digest}"))["count"] == 2
    for query in (f"digest={digest}", f"purl=pkg:oci/app@{digest.replace(':', '%3A')}", "purl=pkg:docker/app"):
        assert (await stack.ok("GET", f"/recall?{query}"))["count"] == 2
    assert (await stack.ok("GET", "/recall?purl=pkg:docker/app@v1"))["count"] == 1
    layer = digest_of(bytes(image.blobs[-1]))
    assert (await stack.ok("GET", f"/recall?digest={layer}"))["count"] == 2


async def test_what_was_removed_is_recalled_with_the_names_that_it_had(stack: Stack) -> None:
    made = await stack.add_repository("py")
    await stack.add_user("ada")
    await stack.grant("ada", "main/py", "read")
    await fetched_file(stack, "ada")
    await stack.assembly.core.downloads.flush()
    (ada,) = [each for each in (await stack.ok("GET", "/users"))["items"] if each["username"] == "ada"]
    await stack.ok("DELETE", f"/users/{ada['id']}")
    await stack.ok("DELETE", f"/repository/{made['id']}?confirm=py")
    for query in ("purl=pkg:pypi/my-demo@1.0", "repository=main/py&package=my-demo&version=1.0"):
        found = await stack.ok("GET", f"/recall?{query}")
        assert ([each["user"] for each in found["items"]], found["fetched"][0]["version"]) == (["ada"], "1.0")
    await stack.add_repository("py")
    assert (await stack.ok("GET", "/recall?repository=main/py&package=my-demo"))["count"] == 1


async def test_nothing_found_is_told_from_something_unknown(stack: Stack) -> None:
    await stack.add_repository("py")
    await fetched_file(stack)
    at = "/recall?repository=main/py&package="
    assert (await stack.ok("GET", f"{at}my-demo&version=1.0"))["problem"] == ""
    assert (await stack.ok("GET", f"{at}my-demo"))["problem"] == ""
    for query in (f"{at}my-dmo", f"{at}my-demo&version=7", "/recall?purl=pkg:pypi/x@1", f"/recall?digest={'0' * 64}"):
        assert "check how it is written" in (await stack.ok("GET", query))["problem"]
        assert (await stack.api("GET", f"{query}&format=csv")).status == 422
    assert (await stack.api("GET", f"{at}my-demo&format=csv")).status == 200
    assert (await stack.api("GET", "/recall?repository=main/other&package=x")).status == 404


async def test_auditors_ask_with_a_token_for_the_audit_log(stack: Stack) -> None:
    await stack.add_user("mia", system_manager=True)
    for who, scope, status in (("admin", "audit", 200), ("admin", "metrics", 403), ("mia", "audit", 403)):
        token = await stack.token(who, scopes=[scope])
        assert (await stack.api("GET", "/recall?purl=pkg:npm/x", who=token)).status == status
    assert (await stack.api("GET", "/recall?purl=pkg:npm/x", who="mia")).status == 200


@pytest.mark.parametrize(
    "query",
    ["", "package=x", "repository=main/py", "digest=12", "purl=x", "purl=pkg:hex/x@1", "purl=pkg:oci/x@1",
     "purl=pkg:npm/x&digest=1", "purl=pkg:npm/x&sort=name", "purl=pkg:npm/x&limit=0", "purl=pkg:npm/x&cursor=x"],
)  # fmt: skip
async def test_wrong_questions_are_refused(stack: Stack, query: str) -> None:
    await stack.add_repository("py")
    assert (await stack.api("GET", f"/recall?{query}")).status == 422


async def test_networks_of_clients_and_the_table_for_other_programs(stacks: MakeStack) -> None:
    stack = await stacks(downloads__log_addresses=True)
    await stack.add_repository("py")
    await fetched_file(stack, await stack.token(name="=1+1"), None, None)
    found = await stack.ok("GET", "/recall?purl=pkg:pypi/my-demo@1.0")
    network = found["items"][0]["address"]
    assert network == prefix_of(network.partition("/")[0])
    assert [(each["address"], each["count"]) for each in found["anonymous_items"]] == [(network, 2)]
    reply = await stack.api("GET", "/recall?purl=pkg:pypi/my-demo@1.0&format=csv&sort=count")
    assert reply.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.reader(reply.body.decode().splitlines()))
    assert rows[0] == ["user", "token", "address", "first_at", "last_at", "count"]
    assert [[*row[:3], row[5]] for row in rows[1:]] == [["admin", "'=1+1", network, "1"], ["", "", network, "2"]]


async def test_a_server_without_a_log_says_so(stacks: MakeStack) -> None:
    stack = await stacks(downloads__log_days=0)
    await stack.add_repository("py")
    await fetched_file(stack, None)
    found = await stack.ok("GET", "/recall?purl=pkg:pypi/my-demo@1.0")
    assert (found["items"], found["problem"]) == ([], "this server logs no downloads (downloads.log_days is 0)")
    assert await stack.assembly.core.catalog.scan(download_log.count_rows) == 0
