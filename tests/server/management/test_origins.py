"""What lists show of cached packages: where they came from, and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.inprocess_server import value_of

pytestmark = pytest.mark.server


def is_now(text: str) -> bool:
    return abs(datetime.now(UTC) - datetime.fromisoformat(text)) < timedelta(minutes=10)


async def test_packages_versions_and_files_show_their_origin(mirror: Any, upstream: Any) -> None:
    await mirror.create()
    upstream.add("@sc/shown", "1.0.0", published="2024-03-04T05:06:07.000Z")
    upstream.add("@sc/shown", "1.1.0")
    await mirror.install("@sc/shown")
    found = await mirror.package("@sc/shown")
    assert (found["source"], found["route"], found["versions"]) == ("cached", "up", 1)
    assert is_now(found["fetched_at"])
    (listed,) = (await mirror.api("GET", "packages"))["items"]
    assert listed == found
    (version,) = (await mirror.stack.ok("GET", "/package/main%2Fmirror/@sc%2fshown/versions"))["items"]
    assert (version["version"], version["route"], version["fetched_at"]) == ("1.0.0", "up", found["fetched_at"])
    path = "/package/main%2Fmirror/@sc%2fshown/versions/1.0.0"
    (file,) = (await mirror.stack.ok("GET", path))["files"]
    assert file["upstream"] == {
        "route": "up",
        "url": upstream.tarball_url("@sc/shown", "1.0.0"),
        "fetched_at": found["fetched_at"],
        "published_at": "2024-03-04T05:06:07Z",
    }
    (file,) = (await mirror.stack.ok("GET", path, who=None))["files"]
    assert (file["upstream"]["route"], file["upstream"]["url"]) == ("up", None)
    (entry,) = (await mirror.api("GET", f"tree/{file['path']}"))["items"]
    assert entry["upstream"] == file["upstream"]


async def test_published_packages_have_no_origin(mirror: Any) -> None:
    await mirror.stack.add_repository()
    await mirror.stack.publish("main/py", "demo", "1.0")
    found = await mirror.stack.ok("GET", "/package/main%2Fpy/demo")
    assert (found["source"], found["route"], found["fetched_at"]) == ("hosted", None, None)
    version = await mirror.stack.ok("GET", "/package/main%2Fpy/demo/versions/1.0")
    assert {file["upstream"] for file in version["files"]} == {None}


async def test_the_first_download_is_counted_as_soon_as_the_file_is_kept(mirror: Any, upstream: Any) -> None:
    async def counted() -> int:
        catalog = mirror.stack.assembly.core.catalog
        return int(await value_of(catalog, "SELECT COALESCE(SUM(count), 0) FROM download_count"))

    await mirror.create()
    for name, pad in (("small", 0), ("large", 300_000)):  # one is sent when it is verified, the other as it arrives
        upstream.add(name, pad=pad)
        before = await counted()
        await mirror.install(name)
        await mirror.flush()
        assert await counted() == before + 1
        await mirror.install(name)
        await mirror.flush()
        assert await counted() == before + 2
    upstream.add("part")
    before = await counted()
    path = upstream.tarball_path("part", "1.0.0")
    await mirror.look_up("part")
    assert (await mirror.get(path, Range="bytes=0-3")).status == 206
    await mirror.flush()
    assert (await counted()) == before, "a part is no download"
