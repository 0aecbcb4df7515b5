"""npm packages: any registry by its address, and the storage folder of Verdaccio or folders of tarballs."""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

import msgspec
from attrs import frozen

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid, NotFound, UpstreamFailed
from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.names import (
    check_tag,
    find_tarball_version,
    is_readable,
    split_scope,
    tarball_name,
)
from pkgrepo.formats.npm.paths import tarball_path
from pkgrepo.formats.npm.publish.imported import imported_release
from pkgrepo.formats.npm.publish.manifest import ALGORITHMS
from pkgrepo.gateway.imported.described import with_names
from pkgrepo.gateway.imported.items import Item, Place, SourcePackage, State, Taking
from pkgrepo.gateway.imported.kinds import Imported, take_files
from pkgrepo.gateway.imported.places import Folder, FoundFile, Site, texts
from pkgrepo.model import BlobInfo, VersionState
from pkgrepo.outbound.urls import parse_url, resolve_reference
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.repositories.semver import Version

LISTS: Final = ("-/all", "_all_docs", "-/verdaccio/data/packages")
SEARCH: Final = "-/v1/search?text=&size={size}&from={at}"
SEARCHED: Final = 250  # packages that one search returns; registries allow no more
MOST_SEARCHED: Final = 100_000
LARGEST_PACKUMENT: Final = 256 * 1024 * 1024  # bytes
LARGEST_MANIFEST: Final = 1024 * 1024  # bytes; nearly all have less than 20 KiB
LONGEST_TEXT: Final = 4096  # characters of a deprecation
MOST_PEOPLE: Final = 200
DOCUMENT: Final = "package.json"  # in the folder of a package of Verdaccio
_HEX: Final = re.compile(r"[0-9a-f]{40}")


@frozen
class About:
    """A version with the manifest that its registry served; empty if only the tarball is there."""

    name: str
    version: Version
    manifest: Mapping[str, Any]


class NpmRegistry:
    """A registry, which is asked for a list of its packages in the ways that registries have one."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def names(self) -> AsyncIterator[str]:
        """The names of the packages. :raises Invalid: the registry does not list them"""
        seen: set[str] = set()
        async for name in self._listed():
            if name not in seen:
                seen.add(name)
                yield name

    async def _listed(self) -> AsyncIterator[str]:
        for path in LISTS:
            try:
                found = await self._site.json(f"{self._site.url}/{path}")
            except (NotFound, UpstreamFailed):
                continue
            for name in _names_in(found):
                yield name
            return
        found_any = False
        async for name in self._searched():
            found_any = True
            yield name
        if not found_any:
            raise Invalid(
                "the registry does not list its packages (-/all, _all_docs, search): give their names", "/names"
            )

    async def _searched(self) -> AsyncIterator[str]:
        """The names that searches for everything find."""
        for at in range(0, MOST_SEARCHED, SEARCHED):
            try:
                found = await self._site.json(f"{self._site.url}/{SEARCH.format(size=SEARCHED, at=at)}")
            except NotFound:
                return
            some = [each.get("package") for each in _list(_object(found).get("objects")) if isinstance(each, dict)]
            for name in _names_in(some):
                yield name
            if len(some) < SEARCHED:
                return

    async def package(self, name: str) -> SourcePackage:
        """The versions of a package. :raises Invalid: the document of the package cannot be read"""
        encoded = quote(name, safe="@")
        content, url = await self._site.read(
            f"{self._site.url}/{encoded}", "application/json", largest=LARGEST_PACKUMENT
        )

        def place(tarball: str) -> Place | None:
            try:
                return self._site.file(resolve_reference(parse_url(url), tarball).text)
            except ValueError:
                return None

        return await self._site.pools.cpu(read_packument, name, content, place)


class NpmFolder:
    """
    A folder with a folder for each package, below one for its scope: that has a document as Verdaccio stores it, or
    only tarballs, which may be in folders of their versions.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._tarballs: dict[str, list[FoundFile]] = {}
        self._documents: dict[str, FoundFile] = {}

    async def names(self) -> AsyncIterator[str]:
        """The names of the packages."""
        await self._folder.pools.cpu(self._sort_in, await self._folder.files())
        for name in sorted({*self._tarballs, *self._documents}):
            yield name

    def _sort_in(self, files: Iterable[FoundFile]) -> None:
        for file in files:
            parts = file.path.split("/")
            name = "/".join(parts[: 2 if parts[0].startswith("@") else 1])
            if len(parts) < 2 or not is_readable(name):
                if file.name.endswith(".tgz"):
                    self._folder.left_out[file.path] = "it is not in a folder with the name of a package"
            elif file.name.endswith(".tgz"):
                self._tarballs.setdefault(name, []).append(file)
            elif parts[-1] == DOCUMENT and file.path == f"{name}/{DOCUMENT}":
                self._documents[name] = file

    async def package(self, name: str) -> SourcePackage:
        """The versions of a package."""
        tarballs = {each.name: each for each in self._tarballs.pop(name, ())}
        document = self._documents.get(name)
        marks = [each.mark for each in tarballs.values()]
        if document is None:
            return _package_of_tarballs(name, self._folder, tarballs, marks)
        content = await self._folder.read(document.path, LARGEST_PACKUMENT)

        def place(tarball: str) -> Place | None:
            found = tarballs.get(tarball.partition("?")[0].rpartition("/")[2])
            return None if found is None else self._folder.file(found)

        return await self._folder.pools.cpu(read_packument, name, content, place, "\n".join(marks))


def read_packument(name: str, content: bytes, place: Any, extra: str = "") -> SourcePackage:
    """
    What a document says of a package; ``place`` returns that of the tarball with a URL, or None.

    :raises Invalid: it is no document of a package of this name
    """
    try:
        document = msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError):
        raise Invalid("its document is no JSON object") from None
    if not is_readable(name) or document.get("name", name) != name:
        raise Invalid("its document is of another package, or it has no name that a package can have")
    times, tags = _object(document.get("time")), _object(document.get("dist-tags"))
    items: list[Item] = []
    left_out: list[tuple[str, str]] = []
    states: dict[str, State] = {}
    for text, manifest in _object(document.get("versions")).items():
        version = semver.find_version(text)
        dist = _object(manifest.get("dist")) if isinstance(manifest, dict) else {}
        tarball = dist.get("tarball")
        at = place(tarball) if isinstance(tarball, str) else None
        if version is None or at is None:
            left_out.append((str(text)[:200], "it is no version" if version is None else "its tarball is not there"))
            continue
        if len(msgspec.json.encode(manifest)) > LARGEST_MANIFEST:
            left_out.append((text, f"its manifest has more than {LARGEST_MANIFEST} bytes"))
            continue
        message = manifest.get("deprecated")
        if message:
            states[version.text] = (
                VersionState.DEPRECATED,
                message[:LONGEST_TEXT] if isinstance(message, str) else "deprecated",
            )
        person = _object(manifest.get("_npmUser")).get("name")
        items.append(
            Item(
                name=tarball_name(name, version.text),
                path=tarball_path(name, version.text),
                place=at,
                version=version.text,
                digests=_digests(dist),
                published_ms=_time_ms(times.get(text)),
                publisher=person if isinstance(person, str) else None,
                about=About(name, version, manifest),
            )
        )
    known = {each.version for each in items}
    kept: dict[str, str] = {}
    for tag, text in tags.items():
        try:
            check_tag(tag)
        except Invalid as error:
            left_out.append((f"tag {tag}"[:200], error.message))
            continue
        version = semver.find_version(text) if isinstance(text, str) else None
        if version is not None and version.text in known:
            kept[tag] = version.text
    people = _list(document.get("maintainers"))
    meta = {"maintainers": [texts(each) for each in people[:MOST_PEOPLE] if isinstance(each, dict)]} if people else {}
    return SourcePackage(
        name=name,
        key=name,
        fingerprint=hashlib.sha256(content + extra.encode()).hexdigest(),
        items=sorted(items, key=lambda each: each.published_ms or 0),
        tags=kept,
        states=states,
        left_out=left_out,
        meta=meta if items else {},
    )


def _package_of_tarballs(
    name: str, folder: Folder, tarballs: Mapping[str, FoundFile], marks: Sequence[str]
) -> SourcePackage:
    items, left_out = [], []
    for file in tarballs.values():
        version = find_tarball_version(name, file.name)
        if version is None:
            left_out.append((file.path, f"its name is not that of a version of {name}"))
            continue
        items.append(
            Item(
                name=file.name,
                path=tarball_path(name, version.text),
                place=folder.file(file),
                version=version.text,
                size=file.size,
                published_ms=file.modified_ns // 1_000_000,
                about=About(name, version, {}),
            )
        )
    fingerprint = hashlib.sha256("\n".join(marks).encode()).hexdigest()
    return SourcePackage(name=name, key=name, fingerprint=fingerprint, items=items, left_out=left_out)


async def take(_source_package: SourcePackage, item: Item, staged: Staged, blob: BlobInfo, pools: Pools) -> Release:
    """The release of a tarball; see L{pkgrepo.gateway.imported.items.Take}."""
    about: About = item.about
    return await imported_release(about.name, about.version, about.manifest, staged, blob, pools)


TAKING: Final = Taking(take=take, algorithms=ALGORITHMS)


def _names_in(found: Any) -> list[str]:
    """The names in a list of all packages, in any of its forms."""
    rows = found.get("rows") if isinstance(found, dict) else None
    if isinstance(rows, list):  # _all_docs
        names = [each.get("id") for each in rows if isinstance(each, dict)]
    elif isinstance(found, dict):  # -/all
        names = list(found)
    else:
        names = [each.get("name") for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    return [each for each in names if isinstance(each, str) and is_readable(each) and _is_package(each)]


def _is_package(name: str) -> bool:
    """Whether a name is no document of CouchDB's own, nor a member that is about the list."""
    return not name.startswith(("_", ".")) or bool(split_scope(name)[0])


def _digests(dist: Mapping[str, Any]) -> dict[str, str]:
    """The digests that a registry announces; those that are malformed are left out."""
    found: dict[str, str] = {}
    shasum, integrity = dist.get("shasum"), dist.get("integrity")
    if isinstance(shasum, str) and _HEX.fullmatch(shasum.lower()):
        found["sha1"] = shasum.lower()
    for each in integrity.split() if isinstance(integrity, str) else ():
        algorithm, _, rest = each.partition("-")
        try:
            digest = b64decode(rest.partition("?")[0], validate=True).hex()
        except Base64Error:
            continue
        if algorithm in ("sha1", "sha256", "sha512") and len(digest) == 2 * hashlib.new(algorithm).digest_size:
            found[algorithm] = digest
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _time_ms(text: Any) -> int | None:
    try:
        time = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return None if time is None or time.year < 1970 or time.tzinfo is None else round(time.timestamp() * 1000)


def _read(path: str) -> tuple[str, str]:
    """The package of a path such as ``@scope/name/-/@scope/name-1.0.tgz``; its version is not asked for."""
    return path.partition("/-/")[0] if "/-/" in path else "", ""


IMPORTED: Final = Imported(
    kind="npm",
    about="npm packages: a registry, or a folder with the tarballs of each package.",
    address=lambda site, request: with_names(NpmRegistry(site), request.names),
    folder=lambda folder, _: NpmFolder(folder),
    taker=take_files(TAKING),
    read=_read,
    listed=False,
    states=True,
)
