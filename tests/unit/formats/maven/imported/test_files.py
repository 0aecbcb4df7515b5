"""What becomes of files of no version, and of metadata, that are taken in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from pkgrepo.formats.maven.imported.files import MavenTaker
from pkgrepo.formats.maven.metadata.reading import LARGEST
from pkgrepo.formats.maven.paths import parse_text
from pkgrepo.gateway.imported.engine import Report, Taken
from pkgrepo.gateway.imported.items import Item, SourcePackage
from pkgrepo.model import SYSTEM, Repository
from pkgrepo.repositories.upkeep.jobs import NoProgress
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import add_repository, publish
from tests.support.repositories import InlinePools

METADATA = b"<metadata><plugins><plugin><prefix>a</prefix><artifactId>b</artifactId></plugin></plugins></metadata>"
FILLER = b"<!--%s-->" % (b"x" * 65_000)


class Bytes:
    """A place with these bytes."""

    modified_ms = None

    def __init__(self, content: bytes) -> None:
        self._content = content

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._content


class Scene:
    """A Java repository; ``written`` are the paths of plain files that were published."""

    def __init__(self, *, dry_run: bool) -> None:
        self.catalog = MemoryCatalog()
        self.repository: Repository = self.catalog.do(add_repository)
        self.written: list[str] = []
        content = SimpleNamespace(stage=self._stage, change_with_blobs=self._write)
        tools: Any = SimpleNamespace(catalog=self.catalog, content=content, pools=InlinePools(), max_upload=100)
        order: Any = SimpleNamespace(repository=self.repository, actor=SYSTEM, dry_run=dry_run, place="/there")
        nothing: Any = None
        self.take = MavenTaker(tools=tools, order=order, indexer=nothing)

    @asynccontextmanager
    async def _stage(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        async def receive(chunks: AsyncIterator[bytes], **_: Any) -> Any:
            return SimpleNamespace(size=len(b"".join([each async for each in chunks])))

        yield SimpleNamespace(receive=receive)

    async def _write(self, _command: Any, _repository: Any, _staged: Any, _blobs: Any, new: Any, *_: Any) -> None:
        self.written.append(new.path)

    async def taken(self, path: str, content: bytes) -> Taken:
        item = Item(name=path, path=path, place=Bytes(content), size=len(content), about=parse_text(path))
        taken = Taken("x", Report(), NoProgress())
        await self.take(SourcePackage(name="x", key="x", fingerprint="", items=[item]), taken)
        return taken


@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_file_of_no_version_is_taken_in_unless_it_is_there(dry_run: bool) -> None:
    scene = Scene(dry_run=dry_run)
    report = (await scene.taken("docs/notes.txt", b"new")).report
    assert (report.files, report.size, report.present) == (1, 3, 0)
    assert scene.written == ([] if dry_run else ["docs/notes.txt"])
    scene.catalog.do(publish, scene.repository, "docs/notes.txt")
    report = (await scene.taken("docs/notes.txt", b"new")).report
    assert (report.files, report.size, report.present) == (0, 0, 1)
    assert len(scene.written) == (0 if dry_run else 1)


async def test_metadata_that_are_too_large_are_left_out() -> None:
    scene = Scene(dry_run=True)
    for size, count in ((LARGEST, 0), (LARGEST + 1, 1)):
        taken = await scene.taken("com/acme/maven-metadata.xml", (METADATA + FILLER * 64).ljust(size))
        assert len(taken.left_out) == count
