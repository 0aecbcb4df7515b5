"""
What the twin of each format consists of: where a document of the server is a file.

=======  ==============================================================================================================
format   documents, beside the files of all versions at their own paths
=======  ==============================================================================================================
python   ``simple/index.html`` and ``simple/index.json``, and both for each project
npm      ``NAME/index.json``, also of ``@scope/NAME``; with the addresses of tarballs below the twin's address;
         attestations, and the keys of signatures
maven    ``maven-metadata.xml`` of each folder that has one, and the checksums beside every file
ruby     the compact index (``versions``, ``names``, ``info/``) and the legacy one (``specs.4.8.gz`` and the others)
conda    ``SUBDIR/repodata.json`` with its packed form, and ``channeldata.json``
docker   an OCI image layout in a folder of each image, with all its tags
=======  ==============================================================================================================

A twin whose place has addresses, as a bucket has, has a document of a folder also at the folder's address, which is
``simple/NAME/`` or ``NAME`` for npm.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import msgspec
from attrs import define, field, frozen

from pkgrepo.archives.image_layout import Descriptor
from pkgrepo.client.api import Client
from pkgrepo.client.http import Failed
from pkgrepo.client.transfers.image_layouts import Fetch, Registry, write_image, write_index
from pkgrepo.concurrency.together import together
from pkgrepo.errors import DigestMismatch, Invalid
from pkgrepo.formats.rubygems.paths import is_hidden
from pkgrepo.untrusted.signed_lists import Listed

from .lists import OCTETS, Twin, write

HTML: Final = "text/html"
JSON: Final = "application/vnd.pypi.simple.v1+json"
CHECKSUMS: Final = (".md5", ".sha1", ".sha256", ".sha512")
PARALLEL: Final = 8  # packages that are exported at once
# of paths that no file can have here: a file and a folder of one name, a name that is too long for the disk
UNUSABLE: Final = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)
BAD_REQUEST: Final = 400
WITHHELD: Final = (401, 403, 404, 410, 451)  # statuses of what the caller does not get
ATTESTATIONS: Final = "-/npm/v1/attestations"
KEYS: Final = "-/npm/v1/keys"
LISTS: Final = ("versions", "names", "specs.4.8.gz", "latest_specs.4.8.gz", "prerelease_specs.4.8.gz")
REPODATA: Final = ("repodata.json", "repodata.json.zst", "current_repodata.json", "current_repodata.json.zst")
# Clients ask for those of their machine, also where a channel has no package of it.
SUBDIRS: Final = ("noarch", "linux-64", "linux-aarch64", "osx-64", "osx-arm64", "win-64")
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

    async def document(self, path: str, source: str = "", accept: str = "*/*", *, address: str = "") -> bool:
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


async def export_python(export: Export) -> None:
    """Wheels and sdists, and the simple index in both forms."""

    async def one(package: Any) -> None:
        key = str(package["key"])
        await _stored_files(export, package)
        await _simple(export, f"simple/{key}/")

    await _each_package(export, one)
    await _simple(export, "simple/")


async def _simple(export: Export, folder: str) -> None:
    await export.document(f"{folder}index.html", quote(folder), HTML, address=folder)
    await export.document(f"{folder}index.json", quote(folder), JSON)


async def export_npm(export: Export) -> None:
    """Tarballs and packuments. :raises Invalid: the address of the twin is not known"""
    if _PREFIX.fullmatch(export.base_url) is None:
        raise Invalid("packages of npm have the address of their tarballs: give that of the twin by --base-url")
    old, new = (json_text(f"{each}/") for each in (export.url, export.base_url.rstrip("/")))

    async def one(package: Any) -> None:
        name = str(package["name"])
        await _stored_files(export, package)
        path = f"/repositories/{quote(export.repository)}/{quote(name, safe='@')}"
        try:
            packument = await export.client.call("GET", path)
        except Failed as error:
            if error.status in WITHHELD:
                return
            raise
        for version, manifest in packument.value["versions"].items():
            if "attestations" in manifest.get("dist", {}):
                place = f"{ATTESTATIONS}/{name}@{version}"
                await export.document(place, quote(place, safe="/@"))
        await export.write(f"{name}/index.json", packument.body.replace(old, new), address=name)

    await _each_package(export, one)
    await export.document(KEYS)


def json_text(url: str) -> bytes:
    """The beginning of a JSON string with an address."""
    return msgspec.json.encode(url)[:-1]


async def export_maven(export: Export) -> None:
    """The tree with the metadata of its folders, and the checksums of all files."""
    folders = [""]
    while folders:
        folder = folders.pop()
        async for item in export.client.items("repository", export.repository, "tree", *folder.split("/")):
            path = str(item["path"])
            if item["kind"] == "folder":
                folders.append(path)
            else:
                digest = item["digest"]
                await export.file(path, str(digest).removeprefix("sha256:") if digest else None)
                if path in export.files:
                    await _checksums(export, path)
        metadata = f"{folder}/maven-metadata.xml".lstrip("/")
        if metadata not in export.files and await export.document(metadata):
            await _checksums(export, metadata)


async def _checksums(export: Export, path: str) -> None:
    for ending in CHECKSUMS:
        await export.document(path + ending)


async def export_ruby(export: Export) -> None:
    """Gems, and both kinds of index."""

    async def one(package: Any) -> None:
        await _stored_files(export, package, is_hidden)
        await export.document(f"info/{package['name']}")

    await _each_package(export, one)
    for each in LISTS:
        await export.document(each)


async def export_conda(export: Export) -> None:
    """The packages of all subdirs, and their documents."""
    await _each_package(export, partial(_stored_files, export))
    for subdir in sorted({*SUBDIRS, *(path.partition("/")[0] for path in export.files if "/" in path)}):
        for name in REPODATA:
            await export.document(f"{subdir}/{name}")
    await export.document("channeldata.json")


async def export_images(export: Export) -> None:
    """An OCI layout of each image; one whose name lies below that of another has its own folder there."""
    registry = Registry(export.client, export.repository)

    async def one(package: Any) -> None:
        image = str(package["key"])
        export.listed += 1
        layout = _Layout(export, image)
        entries: list[Descriptor] = []
        async for version in export.client.items("package", export.repository, image, "versions"):
            try:
                entries.append(await write_image(registry, image, str(version["version"]), layout))
            except Failed as error:
                if error.status not in WITHHELD:
                    raise
                export.withheld += 1
        await write_index(layout, entries)

    await _each_package(export, one)


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


async def _each_package(export: Export, work: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    """Do the work of each package, a few at a time."""
    some: list[Any] = []
    async for package in export.client.items("repository", export.repository, "packages"):
        some.append(package)
        if len(some) == PARALLEL:
            await together(work(each) for each in some)
            some = []
    await together(work(each) for each in some)


async def _stored_files(export: Export, package: Any, withdrawn: Callable[[str], bool] = lambda _path: False) -> None:
    """Fetch the files of all versions but those that are ``withdrawn``, by their paths."""
    place = ("package", export.repository, str(package["key"]), "versions")
    async for version in export.client.items(*place):
        async for file in export.client.items(*place, str(version["version"]), "files"):
            if withdrawn(str(file["path"])):
                continue
            await export.file(str(file["path"]), file["digests"].get("sha256"))


FORMATS: Final[Mapping[str, Callable[[Export], Awaitable[None]]]] = {
    "python": export_python,
    "npm": export_npm,
    "maven": export_maven,
    "ruby": export_ruby,
    "conda": export_conda,
    "docker": export_images,
}
