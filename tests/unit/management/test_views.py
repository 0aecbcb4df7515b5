"""Views of days that are past: how long clients may keep their documents."""

from __future__ import annotations

import hashlib
from typing import Any

from pkgrepo.repositories.clock import from_ms
from pkgrepo.storage.catalog.usage_counts import DAY_MS
from tests.support.maven_files import make_pom
from tests.support.memory_server import Stack


async def move_back(stack: Stack, days: int) -> None:
    """Have all that was published be so many days older."""

    def move(tx: Any) -> None:
        tx.execute("UPDATE version SET published_at = published_at - ?", (days * DAY_MS,))
        tx.execute("UPDATE file SET created_at = created_at - ?", (days * DAY_MS,))
        tx.execute("UPDATE event SET at = at - ?", (days * DAY_MS,))

    await stack.assembly.core.catalog.write(move)


async def day(stack: Stack, ago: int) -> str:
    def read(reader: Any) -> str:
        sql = "SELECT published_at FROM version ORDER BY id LIMIT 1"
        return f"{from_ms(reader.one(sql)[0] - ago * DAY_MS):%Y-%m-%d}"

    found: str = await stack.assembly.core.catalog.look(read)
    return found


async def test_documents_of_a_day_that_is_past_are_kept_for_ever(stack: Stack) -> None:
    await stack.add_repository("py")
    await stack.add_repository("secret", visibility="private")
    for name in ("py", "secret"):
        await stack.publish(f"main/{name}", "demo", "1.0")
    await move_back(stack, 3)
    for name in ("py", "secret"):
        await stack.publish(f"main/{name}", "demo", "2.0")
    then = await day(stack, 0)
    for name, scope in (("py", "public"), ("secret", "private")):
        for _ in range(2):  # also from memory
            found = await stack.call("GET", f"/repositories/main/{name}@{then}/simple/demo/")
            assert found.headers["cache-control"] == f"{scope}, max-age=31536000, immutable"
            assert (b"demo-1.0" in found.body, b"demo-2.0" in found.body) == (True, False)
        before = await day(stack, 1)
        gone = await stack.call("GET", f"/repositories/main/{name}@{before}/simple/demo/")
        assert (gone.status, gone.headers["cache-control"]) == (404, "no-store")
        live = await stack.call("GET", f"/repositories/main/{name}/simple/demo/")
        assert "immutable" not in live.headers["cache-control"]
    listed = await stack.call("GET", f"/repositories/main/py@{before}/simple/")
    assert b"demo" not in listed.body


JAVA = "/com/example"
RELEASE = f"{JAVA}/demo-plugin/{{}}/maven-metadata.xml"
LISTED = f"{JAVA}/maven-metadata.xml"


async def publish_plugin(stack: Stack, name: str, version: str) -> None:
    """Publish it as Maven does, which lists it in the metadata of its group."""
    stem = f"{JAVA}/{name}/{version}/{name}-{version}"
    plugin = f"<plugin><name>x</name><prefix>{name}</prefix><artifactId>{name}</artifactId></plugin>"
    for path, data in (
        (f"{stem}.pom", make_pom("com.example", name, version)),
        (f"{stem}.jar", b"PK"),
        (LISTED, f"<metadata><plugins>{plugin}</plugins></metadata>".encode()),
    ):
        reply = await stack.call("PUT", f"/repositories/main/java{path}", raw=data)
        assert reply.status in (200, 201), reply.body


async def test_metadata_of_releases_and_of_plugins_are_those_of_then(stack: Stack) -> None:
    await stack.add_repository("java", format="maven")
    config = {"type": "Virtual", "members": ["main/java"]}
    await stack.add_repository("around", format="maven", config=config)
    await publish_plugin(stack, "demo-plugin", "1.0")
    await move_back(stack, 3)
    await publish_plugin(stack, "demo-plugin", "2.0")
    await publish_plugin(stack, "later-plugin", "1.0")
    then, before = await day(stack, 0), await day(stack, 1)
    for name in ("java", "around"):

        async def get(path: str, at: str = "", name: str = name) -> tuple[int, bytes]:
            found = await stack.call("GET", f"/repositories/main/{name}{at}{path}")
            checksum = await stack.call("GET", f"/repositories/main/{name}{at}{path}.sha1")
            assert checksum.status == found.status
            if found.status == 200:
                assert checksum.body.decode() == hashlib.sha1(found.body).hexdigest()
            return found.status, found.body

        status, old = await get(RELEASE.format("1.0"), f"@{then}")
        assert (status, b"<version>1.0</version>" in old) == (200, True)
        assert await get(RELEASE.format("1.0")) == (200, old)
        assert [(await get(RELEASE.format("2.0"), at))[0] for at in ("", f"@{then}")] == [200, 404]
        assert (await get(RELEASE.format("1.0"), f"@{before}"))[0] == 404
        seen = [await get(LISTED, at) for at in ("", f"@{then}", f"@{before}")]
        assert [each[0] for each in seen] == [200, 200, 404]
        assert [body.count(b"<plugin>") for _, body in seen] == [2, 1, 0]
