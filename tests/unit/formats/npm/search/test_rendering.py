"""Results of a search, and the list of all packages."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from datetime import UTC, datetime
from typing import Any

import pytest

from pkgrepo.errors import StorageFull
from pkgrepo.formats.npm.search.listing import Listings, listing_of
from pkgrepo.formats.npm.search.rows import LISTED, Person, Row, render_member, render_response
from pkgrepo.http.responses import Content
from pkgrepo.model import SYSTEM
from pkgrepo.storage.catalog import index_documents as documents
from pkgrepo.storage.catalog.packages import events, packages
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ALICE, BOB = Person("alice", "a@example.org"), Person("bob")


def row(name: str, **fields: object) -> Row:
    return Row(name=name, version="1.0.0", date=AT, publisher=ALICE, **fields)


def test_answer_has_the_fields_that_npm_prints() -> None:
    found = row(
        "@acme/x",
        description="d",
        keywords=["k"],
        author="Azer",
        license="MIT",
        maintainers=[BOB],
        links={"homepage": "https://example.org"},
        downloads=999,
    )
    document = render_response([(101.0, found)], 7, AT, "https://h/repositories/main/npm")
    assert document == {
        "objects": [
            {
                "package": {
                    "name": "@acme/x",
                    "scope": "acme",
                    "version": "1.0.0",
                    "description": "d",
                    "keywords": ["k"],
                    "date": "2026-01-02T03:04:05.000Z",
                    "links": {"npm": "https://h/repositories/main/npm/@acme/x", "homepage": "https://example.org"},
                    "publisher": {"username": "alice", "email": "a@example.org"},
                    "maintainers": [{"username": "bob", "email": ""}],
                    "author": {"name": "Azer"},
                    "license": "MIT",
                },
                "score": {"final": 101.0, "detail": {"quality": 1.0, "popularity": 0.5, "maintenance": 1.0}},
                "searchScore": 101.0,
                "flags": {"insecure": 0},
            }
        ],
        "total": 7,
        "time": "2026-01-02T03:04:05.000Z",
    }


def test_unscoped_and_deprecated_packages_are_marked() -> None:
    (found,) = render_response([(1.0, row("paddle", description="Boats", deprecated=True))], 1, AT, "")["objects"]
    assert found["package"]["scope"] == "unscoped"
    assert found["flags"]["deprecated"] is True


def test_member_of_the_old_list_begins_with_the_name() -> None:
    listed = json.loads(b"{%b}" % render_member(row("left-pad", maintainers=[ALICE])))
    assert listed.keys() == {"left-pad"}
    assert listed["left-pad"]["dist-tags"] == {"latest": "1.0.0"}
    assert listed["left-pad"]["maintainers"] == [{"name": "alice", "email": "a@example.org"}]


class World:
    def __init__(self) -> None:
        self.catalog = MemoryCatalog()
        self.repository = self.catalog.do(add_repository)
        self.listings = Listings()

    async def whole(self, now_ms: int) -> Content:
        return await self.listings.whole(self.catalog, self.repository, now_ms)

    def publish(self, name: str) -> None:
        def command(tx: Any) -> None:
            package, _ = packages.ensure_package(tx, self.repository.id, key=name, name=name, serial=1, now_ms=NOW)
            documents.put_fragment(tx, package.id, LISTED, b"", "", b'"%b":{}' % name.encode())
            events.append_event(
                tx,
                repository_id=self.repository.id,
                package_id=package.id,
                package_key=name,
                version_key="",
                kind="published",
                data={},
                actor=SYSTEM,
                now_ms=NOW,
            )

        self.catalog.do(command)


def read(content: Content) -> Any:
    assert content.open is not None
    descriptor = content.open()
    try:
        return json.loads(os.pread(descriptor, content.size, 0))
    finally:
        os.close(descriptor)


@pytest.fixture
def world() -> World:
    return World()


async def test_one_file_is_shared_until_a_change(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    real = tempfile.TemporaryFile
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: made.append(1) or real())
    assert read(await world.whole(1)) == {"_updated": 1}
    world.publish("a")
    first = await world.whole(2)
    assert read(await world.whole(3)) == read(first) == {"_updated": 2, "a": {}}
    world.publish("b")
    assert read(await world.whole(4)) == {"_updated": 4, "a": {}, "b": {}}
    assert read(first) == {"_updated": 2, "a": {}}
    assert read(await listing_of(world.catalog, world.repository, {"b"}, 5)) == {"_updated": 5, "b": {}}
    assert len(made) == 4


async def test_a_full_disk_is_reported(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> Any:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(StorageFull):
        await world.whole(1)
