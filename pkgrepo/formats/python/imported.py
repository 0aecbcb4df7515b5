"""Python packages: any simple index by its address (PEP 503, PEP 691), and folders of distributions."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from attrs import Factory, evolve, frozen

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid, NotFound
from pkgrepo.formats.python.names import (
    PROVENANCE,
    SIGNATURE,
    FileName,
    collapse,
    file_path,
    is_valid_name,
    normalise,
    parse_filename,
    split_companion,
)
from pkgrepo.formats.python.proxied.listing import (
    ListedFile,
    Listing,
    read_html,
    read_html_list,
    read_json,
    read_json_list,
)
from pkgrepo.formats.python.proxied.normaliser import Links
from pkgrepo.formats.python.proxied.upstream import ACCEPT, indexes
from pkgrepo.formats.python.upload.imported import imported_release
from pkgrepo.gateway.imported.described import with_names
from pkgrepo.gateway.imported.items import Item, Place, SourcePackage, State, Taking
from pkgrepo.gateway.imported.kinds import Imported, take_files
from pkgrepo.gateway.imported.places import Folder, FoundFile, Site
from pkgrepo.interfaces import Reader
from pkgrepo.model import BlobInfo, VersionState
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import versions
from pkgrepo.untrusted.text import time_ms

LARGEST_PAGE: Final = 64 * 1024 * 1024  # bytes
LARGEST_COMPANION: Final = 16 * 1024 * 1024  # bytes of a signature, or of provenance
_BOM: Final = b"\xef\xbb\xbf"


@frozen
class About:
    """
    The parsed name of a distribution, and the requirement that its index lists.

    ``companions`` are the places of what lies beside it at the source, by suffix: a signature, and provenance.
    """

    name: FileName
    requires_python: str | None = None
    companions: Mapping[str, Place] = Factory(dict)


class PythonIndex:
    """A simple index; the address is its own, or the one above it."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._index = ""

    async def names(self) -> AsyncIterator[str]:
        """The projects that the index lists. :raises Invalid: it has no list"""
        try:
            content, _ = await self._read("")
        except NotFound:
            raise Invalid("the index does not list its projects: give their names", "/names") from None
        for each in await self._site.pools.cpu(_names_in, content):
            yield each

    async def package(self, name: str) -> SourcePackage:
        """The files of a project's page. :raises Invalid: the page cannot be read"""
        content, url = await self._read(f"{normalise(name)}/")
        return await self._site.pools.cpu(self._source_package, name, content, url)

    def _source_package(self, name: str, content: bytes, url: str) -> SourcePackage:
        page = read_json(content, url) if _is_json(content) else read_html(content, url)
        items, left_out, yanked = self._items(page, name)
        return SourcePackage(
            name=name,
            key=normalise(name),
            fingerprint=hashlib.sha256(content).hexdigest(),
            items=items,
            states=_states(items, yanked, left_out),
            left_out=left_out,
        )

    async def _read(self, path: str) -> tuple[bytes, str]:
        """A page below the index, and its final address. :raises NotFound: there is none"""
        candidates = [self._index] if self._index else indexes(self._site.url)
        for each in candidates:
            try:
                content, url = await self._site.read(f"{each}{path}", ACCEPT, largest=LARGEST_PAGE)
            except NotFound:
                continue
            self._index = each
            return content.removeprefix(_BOM), url
        raise NotFound("page", path or "of the index")

    def _items(self, page: Listing, project: str) -> tuple[list[Item], list[tuple[str, str]], dict[str, str]]:
        """The files of a page, those left out with the reason, and the reasons of yanked ones by file name."""
        links, items, left_out = Links(page.base), list[Item](), list[tuple[str, str]]()
        yanked: dict[str, str] = {}
        for file in page.files:
            try:
                name = parse_filename(file.filename, project=project, eggs=True)
                url = links.find(file.url)
                if url is None:
                    raise Invalid("its link cannot be fetched")
            except Invalid as error:
                left_out.append((file.filename[:255], error.message))
                continue
            provenance = None if file.provenance is None else links.find(file.provenance)
            items.append(_item(name, self._site, file, url, provenance))
            if file.yanked is not False:
                yanked[file.filename] = file.yanked
        return in_order(items), left_out, yanked


class PythonFolder:
    """A folder of distributions, also in folders below it, such as ``simple/<project>/`` of a mirror."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._found: dict[str, list[FoundFile]] = {}
        self._signatures: dict[str, FoundFile] = {}  # by the path of what they sign

    async def names(self) -> AsyncIterator[str]:
        """The projects of which the folder has files."""
        await self._folder.pools.cpu(self._sort_in, await self._folder.files())
        for each in sorted(self._found):
            yield each

    def _sort_in(self, files: Iterable[FoundFile]) -> None:
        for file in files:
            if file.name.endswith(SIGNATURE):
                self._signatures[file.path.removesuffix(SIGNATURE)] = file
            if split_companion(file.name)[1] or file.name.endswith((".html", ".json", ".txt", ".sha256", ".md5")):
                continue
            try:
                name = parse_filename(file.name, eggs=True)
            except Invalid as error:
                try:  # a folder of this name tells where name and version of an archive part
                    name = parse_filename(file.name, project=file.path.split("/")[-2], eggs=True)
                except (Invalid, IndexError):
                    self._folder.left_out[file.path] = error.message
                    continue
            self._found.setdefault(name.project_key, []).append(file)

    async def package(self, name: str) -> SourcePackage:
        """The files of a project."""
        return await self._folder.pools.cpu(self._source_package, name)

    def _source_package(self, name: str) -> SourcePackage:
        found = self._found.pop(name)  # an import of a million files has no more of them in memory than it needs
        seen: dict[str, Item] = {}
        left_out = []
        for file in found:
            parsed = parse_filename(file.name, project=name, eggs=True)
            if parsed.filename in seen:
                left_out.append((file.path, f"{seen[parsed.filename].name} is in the folder more than once"))
                continue
            seen[parsed.filename] = Item(
                name=parsed.filename,
                path=file_path(parsed.project_key, parsed.version_text, parsed.filename),
                place=self._folder.file(file),
                version=parsed.version_text,
                size=file.size,
                published_ms=file.modified_ns // 1_000_000,
                about=About(parsed, companions=self._companions(file)),
            )
        return SourcePackage(
            name=name,
            key=name,
            fingerprint=hashlib.sha256("\n".join(each.mark for each in found).encode()).hexdigest(),
            items=in_order(seen.values()),
            left_out=left_out,
        )

    def _companions(self, file: FoundFile) -> dict[str, Place]:
        signature = self._signatures.pop(file.path, None)
        return {} if signature is None else {SIGNATURE: self._folder.file(signature)}


async def take(_source_package: SourcePackage, item: Item, staged: Staged, blob: BlobInfo, pools: Pools) -> Release:
    """The release of a distribution; see L{pkgrepo.gateway.imported.items.Take}."""
    about: About = item.about
    companions: dict[str, BlobInfo] = {}
    for suffix, place in about.companions.items():
        with suppress(NotFound):  # an index may say that there is one, and not have it
            companions[suffix] = await staged.receive(place.chunks(), limit=LARGEST_COMPANION)
    return await imported_release(
        about.name, item.version, about.requires_python, staged, blob, pools, companions=companions
    )


def settle(reader: Reader, repository_id: int, source_package: SourcePackage) -> SourcePackage:
    """The package with the spelling of each version that its first file has, here or at the source."""
    texts: dict[str, str] = {}
    items = []
    for item in source_package.items:
        name: FileName = item.about.name
        if name.version_key not in texts:
            found = versions.find_by_keys(reader, repository_id, source_package.key, name.version_key)
            texts[name.version_key] = name.version_text if found is None else found.text
        text = texts[name.version_key]
        items.append(evolve(item, version=text, path=file_path(source_package.key, text, name.filename)))
    by_key = {each.about.name.version_text: each.version for each in items}
    states = {by_key.get(text, text): state for text, state in source_package.states.items()}
    return evolve(source_package, items=items, states=states)


TAKING: Final = Taking(take=take, settle=settle)


def _item(name: FileName, site: Site, file: ListedFile, url: str, provenance: str | None) -> Item:
    companions: dict[str, Place] = {}
    if file.has_sig:
        path, question, query = url.partition("?")
        companions[SIGNATURE] = site.file(f"{path}{SIGNATURE}{question}{query}")
    if provenance is not None:
        companions[PROVENANCE] = site.file(provenance)
    return Item(
        name=name.filename,
        path=file_path(name.project_key, name.version_text, name.filename),
        place=site.file(url),
        version=name.version_text,
        size=file.size,
        digests=file.hashes,
        published_ms=time_ms(file.upload_time),
        about=About(name, file.requires_python, companions),
    )


def in_order(items: Iterable[Item]) -> list[Item]:
    """Wheels first: their metadata can be read always, and describe the version."""
    return sorted(items, key=lambda each: (each.about.name.kind != "bdist_wheel", each.name))


def _states(items: Sequence[Item], yanked: Mapping[str, str], left_out: list[tuple[str, str]]) -> dict[str, State]:
    """The yanked versions; one of which only some files are yanked stays live, which is reported."""
    by_version: dict[str, list[Item]] = {}
    for each in items:
        by_version.setdefault(each.about.name.version_key, []).append(each)
    found: dict[str, State] = {}
    for some in by_version.values():
        reasons = [yanked[each.name] for each in some if each.name in yanked]
        if len(reasons) == len(some):
            found.update((each.version, (VersionState.YANKED, reasons[0])) for each in some)
        elif reasons:
            names = ", ".join(each.name for each in some if each.name in yanked)
            left_out.append((f"yank of {some[0].version}", f"only some of its files are yanked there: {names}"))
    return found


def _names_in(content: bytes) -> list[str]:
    """The keys of the projects in a list of an index, in order."""
    read = read_json_list if _is_json(content) else read_html_list
    return sorted({collapse(each.strip("/")) for each in read(content) if is_valid_name(each.strip("/"))})


def _is_json(text: bytes) -> bool:
    return text[:1024].lstrip()[:1] == b"{"


IMPORTED: Final = Imported(
    kind="python",
    about="Python packages: a simple index (PEP 503, PEP 691), or a folder of wheels and source distributions.",
    address=lambda site, request: with_names(PythonIndex(site), request.names),
    folder=lambda folder, _: PythonFolder(folder),
    taker=take_files(TAKING),
    read=lambda path: (parse_filename(path.rpartition("/")[2], eggs=True).project_key, ""),
    normal=collapse,
)
