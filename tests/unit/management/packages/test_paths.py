"""What clients read of a repository is listed for whoever may read it, for all of it or as lock files name it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.conda_packages import make_conda
from tests.support.gems import make_gem
from tests.support.http_client import BOUNDARY, form_body
from tests.support.images import make_image, make_oci_archive
from tests.support.memory_server import Stack
from tests.support.npm_packages import make_tarball
from tests.support.python_packages import make_wheel

TYPE = f"multipart/form-data; boundary={BOUNDARY}"
REPODATA = ("repodata.json", "repodata.json.zst", "current_repodata.json", "current_repodata.json.zst")
SUBDIRS = ("noarch", "linux-64", "linux-aarch64", "osx-64", "osx-arm64", "win-64")
LOCK = """GEM
  remote: https://gems.example.test/
  specs:
    demo (1.0)
    gone (2.0)

PLATFORMS
  ruby

DEPENDENCIES
  demo
"""
LISTED = {
    "python": {
        "packages/demo/1.0/demo-1.0-py3-none-any.whl",
        "packages/demo/1.0/demo-1.0-py3-none-any.whl.metadata",
        *(f"simple/{place}index.{ending}" for place in ("", "demo/") for ending in ("html", "json")),
    },
    "npm": {"@team/demo/-/demo-1.0.0.tgz", "@team/demo/index.json", "-/npm/v1/keys"},
    "ruby": {
        *("gems/demo-1.0.gem", "quick/Marshal.4.8/demo-1.0.gemspec.rz", "info/demo", "versions", "names"),
        *("specs.4.8.gz", "latest_specs.4.8.gz", "prerelease_specs.4.8.gz"),
    },
    "conda": {
        *("noarch/demo-1.0-py_0.conda", "channeldata.json"),
        *(f"{subdir}/{name}" for subdir in SUBDIRS for name in REPODATA),
    },
    "maven": {
        "org/acme/demo/1.0/demo-1.0.jar",
        *(f"{folder}maven-metadata.xml" for folder in ("", "org/", "org/acme/", "org/acme/demo/")),
        *("org/acme/demo/1.0/maven-metadata.xml", "plain/file.txt", "plain/maven-metadata.xml"),
    },
    "docker": {"demo"},
    "raw": {"tool/1.0/demo.txt", "plain/file.txt"},
}
BESIDE = {"maven": [".md5", ".sha1", ".sha256", ".sha512"], "raw": [".sha256"]}
FILES: dict[str, list[tuple[str, Any]]] = {
    "python": [("file", *make_wheel("demo", "1.0"))],  # type: ignore[list-item]
    "npm": [("file", "x.tgz", make_tarball("@team/demo", "1.0.0"))],  # type: ignore[list-item]
    "ruby": [("file", "demo-1.0.gem", make_gem("demo", "1.0"))],  # type: ignore[list-item]
    "conda": [("file", "demo-1.0-py_0.conda", make_conda("demo", "1.0"))],  # type: ignore[list-item]
    "maven": [("path", "org/acme/demo/1.0/"), ("file", "demo-1.0.jar", b"PK")],  # type: ignore[list-item]
    "raw": [("path", "tool/1.0/"), ("file", "demo.txt", b"x")],  # type: ignore[list-item]
    "docker": [("image", "demo"), ("file", "x.tar", make_oci_archive({"acme/demo:1.0": make_image()}))],  # type: ignore[list-item]
}


async def publish(stack: Stack, fields: Any) -> None:
    reply = await stack.call(
        "POST", "/api/repository/main%2Frepo/upload", headers={"Content-Type": TYPE}, raw=form_body(fields)
    )
    assert reply.status == 200, reply.json


async def listed(stack: Stack, limit: int = 1000, **rest: Any) -> list[Any]:
    found: list[Any] = []
    cursor = ""
    while True:
        page = await stack.ok("GET", f"/repository/main%2Frepo/paths?limit={limit}{cursor}", **rest)
        found += page["items"]
        if page["next"] is None:
            return found
        cursor = f"&cursor={page['next']}"


@pytest.mark.parametrize("format_", LISTED)
async def test_files_and_documents_are_listed(stack: Stack, format_: str) -> None:
    await stack.add_repository("repo", format=format_)
    await publish(stack, FILES[format_])
    if format_ in ("maven", "raw"):
        reply = await stack.call("PUT", "/repositories/main/repo/plain/file.txt", raw=b"x")
        assert reply.status == 201
    found = await listed(stack)
    assert {each["path"] for each in found} == LISTED[format_]
    assert await listed(stack, 1) == found
    for each in found:
        if each["kind"] == "file":
            file = await stack.call("GET", f"/repositories/main/repo/{each['path']}")
            assert (file.status, len(file.body)) == (200, each["size"])
            assert each.get("beside", []) == BESIDE.get(format_, [])


async def test_who_may_read_some_packages_gets_these(stack: Stack) -> None:
    await stack.add_repository("repo", format="npm", visibility="private")
    for name in ("@team/demo", "other"):
        await publish(stack, [("file", "x.tgz", make_tarball(name, "1.0.0"))])
    scope = {"repository": "main/repo", "actions": ["read"], "packages": ["@team/*"]}
    made = await stack.ok("POST", "/user/token", {"name": "ci", "scopes": [], "repositories": [scope]})
    assert {each["path"] for each in await listed(stack, who=made["token"])} == LISTED["npm"]


async def test_what_may_not_be_known_is_not_there(stack: Stack) -> None:
    await stack.add_repository("repo", format="npm", visibility="private")
    await stack.add_user("ada")
    for method, body, place in (("GET", None, "paths"), ("POST", {}, "paths"), ("POST", {}, "lock-formats")):
        replies = [
            await stack.call(method, f"/api/repository/main%2F{name}/{place}", body, who="ada")
            for name in ("repo", "none")
        ]
        assert [each.status for each in replies] == [404, 404]
        assert replies[0].json["detail"].replace("repo'", "none'") == replies[1].json["detail"]


async def test_lock_files_choose_paths(stack: Stack) -> None:
    await stack.add_repository("repo", format="ruby")
    for version in ("1.0", "3.0"):
        await publish(stack, [("file", f"demo-{version}.gem", make_gem("demo", version))])
    lock = {"name": "Gemfile.lock", "text": LOCK}
    assert (await stack.ok("POST", "/repository/main%2Frepo/lock-formats", lock))["formats"] == ["ruby"]
    found = await stack.ok("POST", "/repository/main%2Frepo/paths", {"locks": [lock]})
    assert [each["path"] for each in found["items"] if each["kind"] == "file"] == [
        "gems/demo-1.0.gem",
        "quick/Marshal.4.8/demo-1.0.gemspec.rz",
    ]
    assert found["missing"] == {"gone 2.0": "the repository does not keep it"}
    await stack.ok("POST", "/package/main%2Frepo/demo/versions/1.0/yank", {"reason": "broken"})
    gem = (await stack.ok("POST", "/repository/main%2Frepo/paths", {"locks": [lock]}))["items"][0]
    assert (gem["withheld"], gem["address"], gem["state"]) == (True, "gems/demo-1.0.gem", "yanked")
    bad = await stack.call(
        "POST", "/api/repository/main%2Frepo/paths", {"locks": [{"name": "package-lock.json", "text": "{"}]}
    )
    assert (bad.status, "package-lock.json" in bad.json["detail"]) == (422, True)
