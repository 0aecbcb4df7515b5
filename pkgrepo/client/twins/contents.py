"""
What a static twin consists of: the files of a repository at their paths, and the documents in which clients find them.

The server lists both, with the path of the file that stands for each document. An image is an OCI layout in a folder of
its name, with all its tags. A twin whose place has addresses, as a bucket has, has a document of a folder also at the
folder's address.
"""

from __future__ import annotations

import errno
import re
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

import msgspec
from attrs import define, field, frozen

from pkgrepo.archives.image_layout import Descriptor
from pkgrepo.client.api import CONNECTIONS, Client
from pkgrepo.client.http import Failed
from pkgrepo.client.transfers.image_layouts import Fetch, Registry, write_image, write_index
from pkgrepo.concurrency.together import in_batches
from pkgrepo.errors import DigestMismatch, Invalid
from pkgrepo.untrusted.signed_lists import Listed

from .lists import OCTETS, Twin, write

ANY: Final = "*/*"
PARALLEL: Final = CONNECTIONS  # files that are fetched at once
# of paths that no file can have here: a file and a folder of one name, a name that is too long for the disk
UNUSABLE: Final = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)
BAD_REQUEST: Final = 400
WITHHELD: Final = (401, 403, 404, 410, 451)  # statuses of what the caller does not get
_PREFIX: Final = re.compile(r"https?://[^/\s]+(/.*)?")


@define
class Export:
    """
    One round: ``files`` are those of the twin so far, ``withheld`` how many files the server does not give the caller.

    ``url`` is the address of the repository as the server writes it, ``base_url`` that of the twin.
    """

    client: Client
    repository: str
    url: str
    base_url: str
    twin: Twin
    files: dict[str, Listed] = field(factory=dict)
    withheld: int = 0
    left_out: list[str] = field(factory=list)  # what cannot be a file of the twin, with the reason
    listed: int = 0  # files and images that the server lists

    async def file(self, path: str, sha256: str | None) -> None:
        """Fetch a stored file, unless the twin has it with this digest."""
        self.listed += 1
        known = None
        with self.leaving_out(path):
            known = None if sha256 is None else self.twin.known(path, sha256)
        if known is not None:
            self.files[path] = known
        elif not await self._fetch([path], quote(path, safe="/@+"), sha256, {}):
            self.withheld += 1

    async def document(self, path: str, source: str = "", accept: str = ANY, *, address: str = "") -> bool:
        """
        Fetch a document that the server makes. Returns whether there is one.

        ``address`` is that of the folder that it describes, if clients ask for this.
        """
        paths = [path, address] if address and self.twin.has_addresses else [path]
        return await self._fetch(paths, source or quote(path), None, {"Accept": accept})

    async def write(self, path: str, data: bytes, content_type: str = "application/json", address: str = "") -> None:
        """Write a small file; ``address`` as above."""
        for each in [path, address] if address and self.twin.has_addresses else [path]:
            with self.leaving_out(each):
                self.files[each] = await write(self.twin, each, data, content_type)

    @contextmanager
    def leaving_out(self, path: str) -> Iterator[None]:
        """Leave a file out, and note it, whose path or bytes cannot be those of a file here: it ends nothing else."""
        try:
            yield
        except (Invalid, DigestMismatch) as error:
            self.left_out.append(f"{path}: {error}")
        except Failed as error:
            if error.status != BAD_REQUEST:
                raise
            self.left_out.append(f"{path}: {error}")
        except OSError as error:
            if error.errno not in UNUSABLE:
                raise
            self.left_out.append(f"{path}: {error.strerror}")

    async def _fetch(self, paths: Sequence[str], source: str, sha256: str | None, headers: Mapping[str, str]) -> bool:
        """Fetch a file, and keep it at some paths. Returns False if the server does not give it to the caller."""
        with self.leaving_out(paths[0]), self.twin.draft(paths[0]) as draft:
            try:
                place = f"/repositories/{quote(self.repository)}/{source}"
                fields = await self.client.fetch(place, draft.write, headers)
            except Failed as error:
                if error.status in WITHHELD:
                    return False
                raise
            for path in paths:
                self.files[path] = await self.twin.keep(path, draft, sha256, fields.get("content-type", OCTETS))
        return True


async def export_repository(export: Export) -> None:
    """Fetch all that the server lists. :raises Invalid: the address of the twin is needed, and not known"""
    await in_batches(_works(export), PARALLEL)


async def _works(export: Export) -> AsyncIterator[Coroutine[Any, Any, None]]:
    images, listed = dict[str, list[str]](), set[str]()
    async for each in export.client.items("repository", export.repository, "paths"):
        path = str(each["path"])
        if each["kind"] == "image":
            images.setdefault(path, []).extend(filter(None, [each.get("version")]))
        elif path not in listed and not each.get("withheld"):
            listed.add(path)
            yield _path(export, each)
    registry = Registry(export.client, export.repository)
    for name, references in images.items():
        yield _images(registry, _Layout(export, name), references)


async def _path(export: Export, listed: Any) -> None:
    """Fetch a file or a document, and the documents beside it."""
    path = str(listed["path"])
    if listed["kind"] == "file":
        await export.file(path, listed["sha256"])
    elif listed.get("absolute"):
        await _moved(export, listed)
    else:
        source, accept = quote(listed.get("address", path), safe="/@+"), listed.get("accept", ANY)
        await export.document(path, source, accept, address=listed.get("folder", ""))
    if path in export.files:
        for ending in listed.get("beside", ()):
            await export.document(path + ending)


async def _moved(export: Export, listed: Any) -> None:
    """Fetch a document that has addresses of files, and give it those of the twin."""
    path = str(listed["path"])
    if _PREFIX.fullmatch(export.base_url) is None:
        raise Invalid(f"{path} has addresses of files: give that of the twin by --base-url")
    old, new = (json_text(f"{each}/") for each in (export.url, export.base_url.rstrip("/")))
    place = f"/repositories/{quote(export.repository)}/{quote(listed.get('address', path), safe='/@+')}"
    try:
        document = await export.client.call("GET", place, headers={"Accept": listed.get("accept", ANY)})
    except Failed as error:
        if error.status in WITHHELD:
            return
        raise
    data, kind = document.body.replace(old, new), document.headers.get("content-type", OCTETS)
    await export.write(path, data, kind, address=listed.get("folder", ""))


def json_text(url: str) -> bytes:
    """The beginning of a JSON string with an address."""
    return msgspec.json.encode(url)[:-1]


async def _images(registry: Registry, layout: _Layout, references: Sequence[str]) -> None:
    """Write the layout of an image with its tags and digests."""
    export, entries = layout.export, list[Descriptor]()
    export.listed += 1
    for each in references:
        try:
            entries.append(await write_image(registry, layout.folder, each, layout))
        except Failed as error:
            if error.status not in WITHHELD:
                raise
            export.withheld += 1
    await write_index(layout, entries)


@frozen
class _Layout:
    """The image layout of an image in a twin, in the ``folder`` of its name; see L{LayoutTarget}."""

    export: Export
    folder: str

    async def blob(self, path: str, blob: Descriptor, fetch: Fetch) -> None:
        """Write a blob, unless the twin has it."""
        export, path, sha256 = self.export, f"{self.folder}/{path}", blob.digest.removeprefix("sha256:")
        if path in export.files:
            return
        known = export.twin.known(path, sha256)
        if known is not None:
            export.files[path] = known
            return
        with export.leaving_out(path), export.twin.draft(path) as draft:
            await fetch(draft.write)
            export.files[path] = await export.twin.keep(path, draft, sha256)

    async def document(self, path: str, data: bytes, media_type: str) -> None:
        """Write a small file."""
        await self.export.write(f"{self.folder}/{path}", data, media_type)
