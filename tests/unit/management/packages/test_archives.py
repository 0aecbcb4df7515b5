"""The routes that look into archives."""

from __future__ import annotations

import gzip
from typing import Any
from urllib.parse import quote

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred, gatherResults

from pkgrepo.management.packages import archives
from tests.support.gems import make_gemspec, pack_gem
from tests.support.memory_server import Stack
from tests.support.npm_packages import make_publish, make_tarball
from tests.support.tarballs import make_tar

HOSTILE = "demo/<script>alert(1)</script>\u202e.txt"


@pytest_twisted.async_yield_fixture
async def wheel(stack: Stack) -> Any:
    """The path of a wheel in a public repository, as its tree has it."""
    await stack.add_repository()
    texts = {HOSTILE: b"<b>text</b>", "demo/long.txt": b"x" * 70_000, "demo/icon.png": b"\x89PNG\x00"}
    await stack.publish("main/py", "demo", "1.0", extra_files=texts)
    found = await stack.ok("GET", "/package/main%2Fpy/demo/versions/1.0/files")
    yield found["items"][0]["path"]


async def test_entries_are_listed_for_readers_and_texts_are_sent_in_a_sandbox(stack: Stack, wheel: str) -> None:
    found = await stack.ok("GET", f"/repository/main%2Fpy/contents/{wheel}", who=None)
    sizes = {each["name"]: each["size"] for each in found["entries"]}
    assert (found["path"], found["complete"]) == (wheel, True)
    assert (sizes[HOSTILE], sizes["demo/long.txt"]) == (11, 70_000)
    reply = await stack.api("GET", f"/repository/main%2Fpy/text/{wheel}?entry={quote(HOSTILE)}", who=None)
    assert (reply.status, reply.body) == (200, b"<b>text</b>")
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert "sandbox" in reply.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("entry", "status"),
    [("demo/long.txt", 422), ("demo/icon.png", 422), ("demo/absent", 404), ("", 404), ("../../etc/passwd", 404)],
    ids=["long", "picture", "absent", "empty", "outside"],
)
async def test_what_is_no_small_text_is_refused(stack: Stack, wheel: str, entry: str, status: int) -> None:
    assert (await stack.api("GET", f"/repository/main%2Fpy/text/{wheel}?entry={quote(entry)}")).status == status


async def test_files_that_are_absent_or_no_archives_or_private_are_refused(stack: Stack, wheel: str) -> None:
    for path, status in (("demo/1.0/absent.whl", 404), (f"{wheel}.metadata", 422)):
        assert (await stack.api("GET", f"/repository/main%2Fpy/contents/{path}")).status == status
    await stack.ok("PATCH", "/repository/main%2Fpy", {"visibility": "private"})
    for operation in ("contents", "text"):
        reply = await stack.api("GET", f"/repository/main%2Fpy/{operation}/{wheel}?entry=x", who=None)
        assert reply.status == 401


async def test_the_list_of_an_archive_is_kept_and_made_once_for_all(
    stack: Stack, wheel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    real = archives.list_archive

    def counting(content: int | bytes, filename: str, **options: bool) -> Any:
        read.append(filename)
        return real(content, filename, **options)

    monkeypatch.setattr(archives, "list_archive", counting)
    path = f"/repository/main%2Fpy/contents/{wheel}"
    await gatherResults([Deferred.fromCoroutine(stack.ok("GET", path)) for _ in range(5)])
    await stack.ok("GET", path)
    assert len(read) == 1


async def test_requests_beyond_the_queue_are_refused(stack: Stack, wheel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All come at once from one address, of which one is served and some wait."""
    path = f"/repository/main%2Fpy/text/{wheel}?entry=demo/icon.png"
    many = archives.MOST_WAITING + 20
    replies = await gatherResults([Deferred.fromCoroutine(stack.api("GET", path)) for _ in range(many)])
    statuses = sorted(each.status for each in replies)
    assert set(statuses) == {422, 503}
    assert statuses.count(422) >= archives.MOST_WAITING
    assert (await stack.api("GET", path)).status == 422


async def test_a_readme_that_the_metadata_lack_is_read_from_the_archive(stack: Stack) -> None:
    await stack.add_repository("gems", format="ruby")
    await stack.add_repository("js", format="npm")
    data = gzip.compress(make_tar([("lib/a.rb", b""), ("README.rst", b"Of the gem")]))
    gem = pack_gem(make_gemspec("alpha", "1.0.0"), data=data)
    tarball = make_tarball("pad", "1.0.0", files={"README.md": b"# Pads"})
    octets = {"Content-Type": "application/octet-stream"}
    document = make_publish("pad", "1.0.0", tarball=tarball).replace(b'"readme":"# pad\\n",', b"")
    assert (await stack.call("POST", "/repositories/main/gems/api/v1/gems", raw=gem, headers=octets)).status == 200
    assert (await stack.call("PUT", "/repositories/main/js/pad", raw=document)).status < 300
    for package, text, kind in (("gems/alpha", "Of the gem", "text/x-rst"), ("js/pad", "# Pads", "text/markdown")):
        repository, name = package.split("/")
        for _ in range(2):  # the second time from memory
            reply = await stack.api("GET", f"/package/main%2F{repository}/{name}/versions/1.0.0/readme", who=None)
            assert (reply.status, reply.headers["x-readme-type"]) == (200, kind), reply.body
            assert reply.body.decode() == text
