"""The document of a package: a fragment for each file, and how the document of an upstream is asked for and read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import msgspec

from pkgrepo.errors import Invalid, existing
from pkgrepo.interfaces import Reader
from pkgrepo.model import BlobInfo, Fragment, NewFile, Origin, Package
from pkgrepo.proxy.documents.held import DocumentRequest, restored_entry
from pkgrepo.proxy.format import Latest, LatestReason, MemberParts, merge_fragments, merge_versions
from pkgrepo.proxy.parts.values import Context, Entry, FileSource, Normalised
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.storage.pools import Pools
from pkgrepo.untrusted.strict_json import decode_typed

from .names import FILE_TYPE, INDEX, FilePath, is_prerelease, sort_key


class ListedFile(msgspec.Struct, frozen=True):
    """A file in the document of a package; ``sha256`` is in lower-case hex, ``size`` in bytes."""

    version: str
    file: str
    sha256: str
    size: int
    published: datetime


class Listing(msgspec.Struct, frozen=True):
    """The document of a package."""

    name: str
    files: list[ListedFile]


def index_files(index: PackageIndex, change: Change) -> None:
    """Bring the fragments of a changed version up to date."""
    version = change.version
    if version is None:
        return
    for file in change.removed:
        index.remove_fragment(INDEX, version.sort, file.path)
    new = []
    for file in change.added:
        listed = ListedFile(version.text, file.path.rpartition("/")[2], file.sha256, file.size, version.published_at)
        new.append((INDEX, Fragment(version.sort, file.path, msgspec.json.encode(listed))))
    index.put_fragments(new)


def read_parts(reader: Reader, repository_id: int, name: str, form: str) -> tuple[MemberParts, Package]:
    """The fragments of a package, and the package. :raises NotFound: there is none"""
    package = existing(packages.find_package(reader, repository_id, name), "package", name)
    found = index_documents.list_fragments(reader, package.id, form)
    return MemberParts({}, {form: found}, versions.sorted_texts(reader, package.id)), package


def splice(name: str, form: str, _serial: int, members: Sequence[MemberParts]) -> Spliced:
    """The document of a package from one or more repositories."""
    head = b'{"name":%b,"files":[' % msgspec.json.encode(name)
    return Spliced(head, merge_fragments(members, form), b"]}")


def latest(_name: str, members: Sequence[MemberParts]) -> Latest | None:
    """The highest release, or the highest version if there is no release."""
    shown = sorted(merge_versions(members), key=sort_key)
    chosen = [each for each in shown if not is_prerelease(each)] or shown
    return Latest(chosen[-1], LatestReason.HIGHEST) if chosen else None


def document_request(name: str) -> DocumentRequest:
    """How upstreams are asked for the document of a package."""
    return DocumentRequest(
        key=f"index/{name}",
        package_key=name,
        name=name,
        urls=lambda url: [f"{url}/{name}/{INDEX}"],
        accept="application/json",
        normaliser=NORMALISER,
    )


def normalise(source: bytes, context: Context) -> Normalised:
    """The parts of the document of an upstream. :raises Invalid: it is none of this package"""
    return Normalised(top={}, entries=_entries(read_listing(source, context.name), context.url))


NORMALISER: Final = f"{__name__}:{normalise.__name__}"


def read_listing(source: bytes, name: str) -> Listing:
    """The document of a package. :raises Invalid: it is another one, or names what cannot be"""
    listing = decode_typed(source, Listing, f"it is no {INDEX}")
    if listing.name != name:
        raise Invalid(f"it is the {INDEX} of another package")
    for each in listing.files:
        FilePath(name, each.version, each.file)
    return listing


def file_source(listing: Listing, listed: ListedFile, url: str) -> FileSource:
    """A file in the document with a URL."""
    place = f"{url.rpartition('/')[0]}/{listed.version}/{listed.file}"
    path = FilePath(listing.name, listed.version, listed.file).path
    return FileSource(path, place, listed.size, {"sha256": listed.sha256}, FILE_TYPE, {})


def _entries(listing: Listing, url: str) -> Iterator[Entry]:
    for each in listing.files:
        source = file_source(listing, each, url)
        yield Entry(
            sort=sort_key(each.version),
            key=source.path,
            version=each.version,
            published_ms=round(each.published.timestamp() * 1000),
            first_seen=False,
            fragments={INDEX: msgspec.json.encode(each)},
            files=[source],
        )


def make_release(place: FilePath, blob: BlobInfo, *, reuse: bool = False) -> Release:
    """The release of a file, whoever has it: a client, an upstream, or the source of an import."""
    return Release(
        package_key=place.package,
        package_name=place.package,
        version_key=place.version,
        version_text=place.version,
        sort=sort_key(place.version),
        files=(NewFile(path=place.path, blob=blob, media_type=FILE_TYPE),),
        reuse=reuse,
    )


async def make_remote_release(file: RemoteFile, _staged: Staged, blob: BlobInfo, _pools: Pools) -> Release:
    """The release of a file that was fetched from an upstream."""
    return make_release(FilePath(*file.source.path.split("/")), blob)


def restore(reader: Reader, package: Package) -> tuple[Origin, Normalised] | None:
    """The document of a package of an upstream as far as its files are kept; None if none is."""
    entries: list[Entry] = []
    origins: list[Origin] = []
    for version in versions.list_versions(reader, package.id):
        for file in files.files_of_version(reader, version.id):
            if file.origin is None:
                continue
            said_ms = file.origin.published_ms
            published = from_ms(file.origin.fetched_ms if said_ms is None else said_ms)
            listed = ListedFile(version.text, file.path.rpartition("/")[2], file.sha256, file.size, published)
            fragments = {INDEX: msgspec.json.encode(listed)}
            entries.append(restored_entry(version, file.path, file.origin, fragments, [file]))
            origins.append(file.origin)
    return (max(origins, key=lambda each: each.fetched_ms), Normalised({}, iter(entries))) if origins else None
