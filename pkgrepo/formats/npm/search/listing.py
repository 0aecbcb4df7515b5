"""
The list of all packages, ``/-/all``, which old clients request: one member per package, in a temporary file.

The file has no name in its folder. It is cached until the repository changes, and shared by all callers who may read
the whole repository. For a caller who may read only some packages a separate file is written.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Container
from typing import IO, Final

import msgspec
from attrs import frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.concurrency.single_flight import StampCache
from pkgrepo.errors import StorageFull
from pkgrepo.formats.npm.search.rows import render_member
from pkgrepo.http.responses import Content
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository, VersionState
from pkgrepo.repositories.policy.rules import NamedRules
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import events, packages, versions

from .rows import LISTED, ROW, make_row, read_row
from .shown import latest_left

PAGE: Final = 200  # packages in one query
MOST_FILES: Final = 64  # repositories whose lists are kept


@frozen
class _File:
    file: IO[bytes]
    size: int

    def content(self) -> Content:
        """A response body. The file exists as long as a body or the cache refers to it."""
        return Content(self.size, open=lambda: os.dup(self.file.fileno()))


class Listings:
    """The lists of all packages of hosted repositories and of what the others have, one instance per process."""

    def __init__(self) -> None:
        self._files: StampCache[int, _File] = StampCache(MOST_FILES)

    async def whole(self, catalog: ICatalog, repository: Repository, now_ms: int) -> Content:
        """The list of all packages as of now. :raises StorageFull: the disk has no room for the file"""
        seq = await catalog.look(events.last_seq_of_repository, repository.id)
        made = await self._files.get(repository.id, seq, lambda: _build(catalog, repository, now_ms, None))
        return made.content()


async def listing_of(
    catalog: ICatalog,
    repository: Repository,
    keys: Container[str] | None,
    now_ms: int,
    named: NamedRules | None = None,
) -> Content:
    """
    The list of the packages with these keys (None: of all), without the versions that rules hide.

    :raises StorageFull: the disk has no room for the file
    """
    return (await _build(catalog, repository, now_ms, keys, named)).content()


async def _build(
    catalog: ICatalog,
    repository: Repository,
    now_ms: int,
    keys: Container[str] | None,
    named: NamedRules | None = None,
) -> _File:
    try:
        return await catalog.scan(_write, repository.id, now_ms, keys, named)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise StorageFull("temporary files") from error


def _write(
    reader: Reader, repository_id: int, now_ms: int, keys: Container[str] | None, named: NamedRules | None
) -> _File:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with its last reference
    gil, after = GilReleaser(), ""
    file.write(b'{"_updated":%d' % now_ms)
    while page := index_documents.fragments_after(reader, repository_id, LISTED, after, PAGE):
        for key, body in page:
            listed = body if body is not None else _make_from_row(reader, repository_id, key)
            if listed is not None and named is not None:
                listed = _without_hidden(reader, repository_id, key, listed, named)
            if listed is not None and (keys is None or key in keys):
                file.write(b",\n" + listed)
        after = page[-1][0]
        gil.release_if_due()
    file.write(b"}")
    file.flush()
    return _File(file, file.tell())


def _make_from_row(reader: Reader, repository_id: int, key: str) -> bytes | None:
    """The member of a package that was indexed by a version of this program that wrote no members."""
    body = index_documents.find_single_fragment(reader, repository_id, key, ROW)
    return None if body is None else render_member(read_row(body))


class _Tags(msgspec.Struct, frozen=True):
    latest: str = ""


class _Listed(msgspec.Struct, frozen=True, rename={"tags": "dist-tags"}):
    tags: _Tags = _Tags()


_read_member = msgspec.json.Decoder(dict[str, _Listed]).decode


def _without_hidden(reader: Reader, repository_id: int, key: str, listed: bytes, named: NamedRules) -> bytes | None:
    """The member of a package in the latest version that is not hidden; None if all are."""
    shown = next(iter(_read_member(b"{%b}" % listed).values())).tags.latest
    package = packages.find_package(reader, repository_id, key) if named.hides(key, [shown]) else None
    if package is None:
        return listed
    every = versions.list_versions(reader, package.id)
    latest = latest_left(every, shown, named.hides(key, [each.text for each in every]))
    if latest is None:
        return None
    return render_member(make_row(package, latest, deprecated=latest.state is not VersionState.LIVE))
