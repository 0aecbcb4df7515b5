"""Files are put, read, replaced and removed by their paths, and folders are listed and archived."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import zipfile
from typing import Any
from urllib.parse import quote

import pytest
import pytest_twisted

from tests.support.http_client import BOUNDARY, form_body
from tests.support.memory_server import Reply, Stack

DATA = b"hello\n"
OTHER = b"other\n"
SHA256 = hashlib.sha256(DATA).hexdigest()
R = "/repositories/main/files"
PROXY = {"type": "Proxy", "proxy": {"routes": [{"url": "http://127.0.0.1:1/"}]}}


@pytest_twisted.async_yield_fixture
async def world(stack: Stack) -> Any:
    """A server with a public raw repository."""
    await stack.add_repository("files", format="raw", config={"type": "Hosted"})
    yield stack


async def put(stack: Stack, path: str, data: bytes = DATA, status: int = 201, **rest: Any) -> Any:
    reply = await stack.call("PUT", f"{R}/{path}", raw=data, **rest)
    assert reply.status == status, reply.body
    return reply


async def test_a_file_is_read_as_it_was_put(world: Stack) -> None:
    made = await put(world, "tool/1.0/tool.bin")
    assert made.headers["etag"] == f'"{SHA256}"'
    assert (await put(world, "tool/1.0/tool.bin", status=200)).body == b"tool/1.0/tool.bin has these bytes already\n"
    got = await world.call("GET", f"{R}/tool/1.0/tool.bin", who=None)
    assert (got.status, got.body, got.headers["etag"]) == (200, DATA, f'"{SHA256}"')
    assert got.headers["x-checksum-sha256"] == SHA256
    assert got.headers["content-disposition"] == "attachment"
    part = await world.call("GET", f"{R}/tool/1.0/tool.bin", who=None, headers={"Range": "bytes=1-2"})
    assert (part.status, part.body) == (206, b"el")
    same = await world.call("GET", f"{R}/tool/1.0/tool.bin", headers={"If-None-Match": f'"{SHA256}"'})
    assert same.status == 304


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256", "sha512"])
async def test_checksums_are_beside_files(world: Stack, algorithm: str) -> None:
    await put(world, "tool/1.0/tool.bin")
    got = await world.call("GET", f"{R}/tool/1.0/tool.bin.{algorithm}", who=None)
    assert got.body.decode() == f"{hashlib.new(algorithm, DATA).hexdigest()}  tool.bin\n"
    assert (await world.call("GET", f"{R}/tool/1.0/none.{algorithm}", who=None)).status == 404
    await put(world, f"tool/1.0/tool.bin.{algorithm}", b"as it was sent")
    assert (await world.call("GET", f"{R}/tool/1.0/tool.bin.{algorithm}", who=None)).body == b"as it was sent"


async def test_checksums_are_answered_from_memory_until_the_file_is_another(world: Stack) -> None:
    path = f"{R}/tool/1.0/tool.bin.sha256"
    for data in (DATA, b"other", b"third"):
        await put(world, "tool/1.0/tool.bin", data, status=201 if data == DATA else 200)
        expected = f"{hashlib.sha256(data).hexdigest()}  tool.bin\n".encode()
        for more in (0, 1, 1):
            before = await hits(world)
            assert (await world.call("GET", path, who=None)).body == expected
            assert await hits(world) == before + more
    assert (await world.call("DELETE", f"{R}/tool/1.0/tool.bin")).status == 204
    assert (await world.call("GET", path, who=None)).status == 404


async def hits(world: Stack) -> int:
    """How many responses came from memory."""
    text = (await world.call("GET", "/metrics")).body.decode()
    found = re.search(r'\{format="raw",result="hit"\} (\d+)', text)
    return 0 if found is None else int(found[1])


async def test_a_file_may_be_named_like_an_ending_of_checksums(world: Stack) -> None:
    await world.add_repository("proxy", format="raw", config=PROXY)
    await put(world, "tool/.sha256")
    assert (await world.call("GET", f"{R}/tool/.sha256")).body == DATA
    found = await world.call("GET", "/repositories/main/proxy/tool/.sha256")
    assert found.status != 400  # it is asked of the upstream


async def test_conditions_are_about_what_is_there(world: Stack) -> None:
    absent = {"If-None-Match": "*"}
    await put(world, "tool/x", headers=absent)
    await put(world, "tool/x", OTHER, 412, headers=absent)
    await put(world, "tool/x", OTHER, 412, headers={"If-Match": '"0"'})
    await put(world, "tool/x", OTHER, 200, headers={"If-Match": f'"{SHA256}"'})
    await put(world, "tool/y", OTHER, 412, headers={"If-Match": "*"})
    assert (await world.call("GET", f"{R}/tool/y")).status == 404


async def test_announced_digests_are_compared(world: Stack) -> None:
    await put(world, "tool/x", headers={"X-Checksum-Sha256": SHA256})
    refused = await put(world, "tool/y", OTHER, 400, headers={"X-Checksum-Sha256": SHA256})
    assert refused.body.startswith(b"error: nothing was stored: ")
    assert (await world.call("GET", f"{R}/tool/y")).status == 404


async def test_a_path_is_a_file_or_a_folder(world: Stack) -> None:
    await put(world, "tool/1.0/x")
    await put(world, "notes")
    assert b"with a slash at the end" in (await put(world, "tool/1.0", status=409)).body
    await put(world, "notes/x", status=409)
    moved = await world.call("GET", f"{R}/tool/1.0", who=None)
    assert (moved.status, moved.headers["location"]) == (302, "1.0/")


async def test_what_may_be_replaced_says_the_policy_and_a_permission(world: Stack) -> None:
    policy = {"overwrite": ["*/latest/*"]}
    await world.add_repository("strict", format="raw", config={"type": "Hosted", "policy": policy})
    await world.add_user("builder")
    await world.grant("builder", "main/strict", "read", "write")

    async def send(path: str, data: bytes, who: str = "admin") -> int:
        return (await world.call("PUT", f"/repositories/main/strict/{path}", raw=data, who=who)).status

    assert [await send("tool/1.0/x", each) for each in (DATA, DATA, OTHER)] == [201, 200, 409]
    assert [await send("tool/latest/x", each) for each in (DATA, OTHER)] == [201, 200]
    assert await send("tool/latest/x", DATA, "builder") == 403
    assert await send("tool/latest/y", DATA, "builder") == 201
    assert (await world.call("DELETE", "/repositories/main/strict/tool/1.0/x")).status == 204
    assert await send("tool/1.0/x", OTHER) == 409  # its path is taken for ever


async def test_files_versions_and_packages_are_removed(world: Stack) -> None:
    for path in ("tool/1.0/x", "tool/1.0/y", "tool/2.0/x", "other"):
        await put(world, path)
    for path, left in (("tool/1.0/x", 404), ("tool/1.0", 404), ("tool/3.0", 404)):
        status = (await world.call("DELETE", f"{R}/{path}")).status
        assert status == (404 if path == "tool/3.0" else 204)
        assert (await world.call("GET", f"{R}/{path}")).status == left
    assert (await world.call("GET", f"{R}/tool/2.0/x")).status == 200
    assert (await world.call("DELETE", f"{R}/tool/")).status == 204
    assert (await world.call("GET", f"{R}/tool/2.0/x")).status == 404
    assert (await world.call("GET", f"{R}/other")).status == 200
    await put(world, "tool/1.0/x", OTHER)  # overwriting is allowed, so a path may be used again


async def test_folders_are_pages_and_json(world: Stack) -> None:
    for path in ("tool/1.0/x y", "tool/2.0/z", "tool/é", "top"):
        await put(world, "/".join(map(str, path.replace(" ", "%20").replace("é", "%C3%A9").split("/"))))
    page = await world.call("GET", f"{R}/tool/", who=None)
    assert b'<a href="1.0/">1.0/</a>' in page.body
    assert '<a href="%C3%A9">é</a>'.encode() in page.body
    found = (await world.call("GET", f"{R}/", headers={"Accept": "application/json"})).json
    assert [(each["name"], each["kind"]) for each in found["entries"]] == [("tool", "folder"), ("top", "file")]
    assert (await world.call("GET", f"{R}/none/", who=None)).status == 404


async def test_a_folder_is_an_archive(world: Stack) -> None:
    large = bytes(range(256)) * 5000
    await put(world, "tool/1.0/x", large)
    await put(world, "tool/2.0/deep/er/y")
    packed = await world.call("GET", f"{R}/tool/?archive=tar.gz", who=None)
    with tarfile.open(fileobj=io.BytesIO(packed.body)) as archive:
        found = {each.name: archive.extractfile(each).read() for each in archive}  # type: ignore[union-attr]
    assert found == {"1.0/x": large, "2.0/deep/er/y": DATA}
    packed = await world.call("GET", f"{R}/?archive=zip", who=None)
    with zipfile.ZipFile(io.BytesIO(packed.body)) as zipped:
        assert {each: zipped.read(each) for each in zipped.namelist()} == {
            "tool/1.0/x": large,
            "tool/2.0/deep/er/y": DATA,
        }
    assert (await world.call("GET", f"{R}/tool/?archive=rar", who=None)).status == 400


async def test_an_archive_is_a_download_of_each_file(world: Stack) -> None:
    for path in ("tool/1.0/x", "tool/2.0/y"):
        await put(world, path)
    await world.call("GET", f"{R}/tool/?archive=tar.gz")
    await world.assembly.core.downloads.flush()
    found = await world.ok("GET", "/recall?repository=main/files&package=tool")
    assert [each["user"] for each in found["items"]] == ["admin"], found
    for version in ("1.0", "2.0"):
        found = await world.ok("GET", f"/recall?repository=main/files&package=tool&version={version}")
        assert [each["user"] for each in found["items"]] == ["admin"], (version, found)


async def test_archives_are_bounded_for_each_address_and_together(world: Stack) -> None:
    await put(world, "tool/1.0/x")
    turns = world.assembly.core.formats["raw"].uploads.caches
    address = f"{R}/tool/?archive=zip"
    for others in ({"127.0.0.1": 2, "192.168.1.1": 2}, {f"10.0.0.{each}": 2 for each in range(4)}):
        turns.archives.update(others)
        turns.archives["192.168.1.1"] = max(turns.archives["192.168.1.1"], 2)
        refused = await world.call("GET", address, who=None)
        assert refused.status == 503, refused.body
        turns.archives.clear()
    for _ in range(3):  # what has ended counts no more
        assert (await world.call("GET", address, who=None)).status == 200
    assert not turns.archives


async def test_paths_of_a_deleted_folder_are_used_again_where_each_may_be_replaced(world: Stack) -> None:
    policy = {"overwrite": ["tool", "*/latest/*"]}
    await world.add_repository("strict", format="raw", config={"type": "Hosted", "policy": policy})
    base = "/repositories/main/strict"
    for path in ("tool/1.0/x", "tool/latest/x"):
        assert (await world.call("PUT", f"{base}/{path}", raw=DATA)).status == 201
    assert (await world.call("DELETE", f"{base}/tool")).status == 204
    refused = await world.call("PUT", f"{base}/tool/1.0/x", raw=OTHER)
    assert (refused.status, b"was deleted" in refused.body) == (409, True)
    assert (await world.call("PUT", f"{base}/tool/latest/x", raw=OTHER)).status == 201


async def test_the_addresses_of_another_server_are_an_alias(make_stack: Any) -> None:
    stack = await make_stack(aliases={"/api/packages/acme/generic/": "main/files"})
    await stack.add_repository("files", format="raw", config={"type": "Hosted"})
    address = "/api/packages/acme/generic/tool/1.0/tool.bin"
    assert (await stack.call("PUT", address, raw=DATA)).status == 201
    assert (await stack.call("GET", address, who=None)).body == DATA
    assert (await stack.call("DELETE", "/api/packages/acme/generic/tool/1.0")).status == 204
    assert (await stack.call("GET", address, who=None)).status == 404


async def test_rules_hide_files_from_pages_archives_and_reads(world: Stack) -> None:
    await put(world, "tool/1.0/x")
    await put(world, "tool/2.0/x", OTHER)
    await world.ok("POST", "/policy/blocks", {"repository": "main/files", "package": "tool", "versions": "2.0"})
    assert (await world.call("GET", f"{R}/tool/2.0/x", who=None)).status == 403
    assert (await world.call("GET", f"{R}/tool/2.0/x.sha256", who=None)).status == 403
    assert (
        b"x"
        not in (await world.call("GET", f"{R}/tool/2.0/", who=None)).body.partition(b"../</a>")[2].partition(b"<")[0]
    )
    packed = await world.call("GET", f"{R}/tool/?archive=tar.gz", who=None)
    with tarfile.open(fileobj=io.BytesIO(packed.body)) as archive:
        assert archive.getnames() == ["1.0/x"]


async def test_who_may_read_nothing_learns_nothing_of_folders(world: Stack) -> None:
    await world.add_repository("secret", format="raw", visibility="private", config={"type": "Hosted"})
    await world.call("PUT", "/repositories/main/secret/tool/1.0/x", raw=DATA)
    await world.add_user("eve")
    for path in ("tool/1.0/x", "tool/1.0", "tool/1.0/", "tool/1.0/x.sha256", "tool/?archive=zip", "none", "none/"):
        there = await world.call("GET", f"/repositories/main/secret/{path}", who="eve")
        absent = await world.call("GET", f"/repositories/main/none/{path}", who="eve")
        assert there.status == absent.status == 404, path
        assert "location" not in there.headers


async def test_a_token_for_one_package_reads_its_folder_alone(world: Stack) -> None:
    await world.add_repository("private", format="raw", visibility="private", config={"type": "Hosted"})
    for path in ("tool/1.0/x", "other/1.0/x"):
        await world.call("PUT", f"/repositories/main/private/{path}", raw=DATA)
    limits = [{"repository": "main/private", "packages": ["tool"], "actions": ["read", "write"]}]
    token = await world.token(repositories=limits)
    statuses = {
        path: (await world.call("GET", f"/repositories/main/private/{path}", who=token)).status
        for path in ("tool/1.0/x", "tool/", "tool/?archive=zip", "other/1.0/x", "other/", "")
    }
    assert statuses == {"tool/1.0/x": 200, "tool/": 200, "tool/?archive=zip": 200} | dict.fromkeys(
        ("other/1.0/x", "other/", ""), 403
    )
    for path, status in (("tool/2/x", 201), ("other/2/x", 403)):
        assert (await world.call("PUT", f"/repositories/main/private/{path}", raw=DATA, who=token)).status == status


async def test_packages_may_be_deeper_than_the_first_part(world: Stack) -> None:
    config = {"type": "Hosted", "packages": ["releases/*"]}
    await world.add_repository("deep", format="raw", config=config)
    await world.call("PUT", "/repositories/main/deep/releases/tool/1.0/x", raw=DATA)
    found = await world.ok("GET", "/repository/main%2Fdeep/packages")
    assert [each["name"] for each in found["items"]] == ["releases/tool"]
    body = {"name": "b", "storage": "main", "format": "raw", "visibility": "public"}
    refused = await world.api("POST", "/repository", body | {"config": {"type": "Hosted", "packages": ["a//b"]}})
    assert (refused.status, refused.pointer) == (422, "/config/packages/0")


async def test_index_pages_are_those_of_folders_where_the_repository_says_so(world: Stack) -> None:
    body = {"type": "Hosted", "index_pages": True}
    await world.add_repository("site", format="raw", config=body)
    await world.add_repository("joined", format="raw", config={"type": "Virtual", "members": ["main/site"]})
    base = "/repositories/main/site"
    for path in ("index.html", "docs/1.0/index.html", "docs/1.0/x"):
        for name in ("site", "files"):
            assert (await world.call("PUT", f"/repositories/main/{name}/{path}", raw=path.encode())).status == 201
    for path in ("", "docs/1.0/"):
        page = await world.call("GET", f"{base}/{path}", who=None)
        file = await world.call("GET", f"{base}/{path}index.html", who=None)
        assert (page.status, page.body) == (200, f"{path}index.html".encode())
        for field in ("content-type", "content-disposition", "content-security-policy", "etag"):
            assert page.headers[field] == file.headers[field]
        assert page.headers["content-disposition"] == "attachment"
        for other in (R, "/repositories/main/joined"):
            listing = await world.call("GET", f"{other}/{path}", who=None)
            assert b"../</a>" in listing.body
            assert "frame-ancestors 'none'" in listing.headers["content-security-policy"]
        listed = await world.call("GET", f"{base}/{path}", who=None, headers={"accept": "application/json"})
        assert listed.headers["content-type"] == "application/json"
    assert b'<a href="1.0/">' in (await world.call("GET", f"{base}/docs/")).body
    packed = await world.call("GET", f"{base}/docs/?archive=zip")
    assert packed.headers["content-type"] == "application/zip"
    assert (await world.call("DELETE", f"{base}/index.html")).status == 204
    assert b'<a href="docs/">' in (await world.call("GET", f"{base}/")).body
    await world.ok("POST", "/policy/blocks", {"repository": "main/site", "package": "docs", "versions": "1.0"})
    assert (await world.call("GET", f"{base}/docs/1.0/", who=None)).status == 403


async def post(world: Stack, path: str, *fields: Any, who: str | None = "admin") -> Reply:
    headers = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
    return await world.call("POST", f"{R}/{path}", raw=form_body(fields), headers=headers, who=who)


@pytest.mark.parametrize(
    ("folder", "fields", "path"),
    [
        ("tool/1.0/", (), "tool/1.0/a b.bin"),
        ("", (), "a b.bin"),
        ("tool/", (("path", "2.0/"),), "tool/2.0/a b.bin"),
        ("tool/", (("path", "2.0/other.bin"),), "tool/2.0/other.bin"),
    ],
)
async def test_the_file_of_a_form_is_stored_in_a_folder(world: Stack, folder: str, fields: Any, path: str) -> None:
    made = await post(world, folder, *fields, ("file", "c:/x/a b.bin", DATA))
    assert (made.status, made.body) == (201, f"stored {path} sha256={SHA256}\n".encode())
    assert (await world.call("GET", f"{R}/{quote(path)}")).body == DATA
    again = await post(world, folder, *fields, ("file", "a b.bin", DATA))
    assert (again.status, again.headers["etag"]) == (200, made.headers["etag"])


async def test_what_is_no_form_for_a_folder_is_refused(world: Stack) -> None:
    file = ("file", "x", DATA)
    for path, fields, status in (
        ("tool/x", (file,), 400),
        ("tool/", (("file", "..", DATA),), 400),
        ("tool/", (("path", "../"), file), 400),
        ("tool/", (("sha256", "0" * 64), file), 400),
        ("tool/", (("other", "x", DATA),), 400),
        ("tool/", (file, file), 400),
    ):
        refused = await post(world, path, *fields)
        assert refused.status == status, (path, fields, refused.body)
        assert refused.body.startswith(b"error: nothing was stored: "), refused.body
    assert (await world.call("POST", f"{R}/tool/", raw=DATA)).status == 415
    assert (await post(world, "tool/", file, who=None)).status == 401
    assert (await world.call("GET", f"{R}/tool/")).status == 404


@pytest.mark.parametrize("method", ["PATCH", "MKCOL", "PROPFIND"])
async def test_other_methods_are_refused(world: Stack, method: str) -> None:
    reply = await world.call(method, f"{R}/x", raw=DATA)
    assert (reply.status, reply.headers["allow"]) == (405, "DELETE, GET, HEAD, POST, PUT")
