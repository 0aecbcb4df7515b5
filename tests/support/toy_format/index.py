"""The document of a package: a fragment for each file, and how the documents of upstreams are asked for and read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid, existing
from pkgrepo.interfaces import Reader
from pkgrepo.model import BlobInfo, File, NewFile, Package, Version
from pkgrepo.proxy.caching.questions import DocumentRequest
from pkgrepo.proxy.format import Latest, LatestReason, MemberParts, merge_fragments, merge_versions
from pkgrepo.proxy.parts.values import Context, Entry, FileSource, Normalised
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.repositories.semver import highest_version, parse_version
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import packages, versions
from pkgrepo.untrusted.strict_json import decode_typed

from .names import INDEX, parse_path, sort_key

OCTETS = "application/octet-stream"


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
    if version is not None:
        for file in change.removed:
            index.remove_fragment(INDEX, version.sort, file.path)
        for file in change.added:
            for kind, body in fragments(version, file, version.published_at).items():
                index.put_fragment(kind, version.sort, file.path, body)


def fragments(version: Version, file: File, published: datetime) -> dict[str, bytes]:
    """The fragment of a file, by its kind."""
    name = file.path.rpartition("/")[2]
    return {INDEX: msgspec.json.encode(ListedFile(version.text, name, file.sha256, file.size, published))}


def read_parts(reader: Reader, repository_id: int, name: str, form: str) -> tuple[MemberParts, Package]:
    """The fragments of a package, and the package. :raises NotFound: there is none"""
    package = existing(packages.find_package(reader, repository_id, name), "package", name)
    found = index_documents.list_fragments(reader, package.id, form)
    return MemberParts({}, {form: found}, versions.sorted_texts(reader, package.id)), package


def splice(name: str, form: str, _serial: int, members: Sequence[MemberParts]) -> Spliced:
    """The document of a package from one or more repositories."""
    return Spliced(b'{"name":"%b","files":[' % name.encode(), merge_fragments(members, form), b"]}")


def latest(_name: str, members: Sequence[MemberParts]) -> Latest | None:
    """The highest release, or the highest version if there is no release."""
    found = highest_version(sorted(merge_versions(members), key=sort_key))
    return None if found is None else Latest(found.text, LatestReason.HIGHEST)


def document_request(name: str) -> DocumentRequest:
    """How upstreams are asked for the document of a package."""
    return DocumentRequest(
        key=f"index/{name}",
        package_key=name,
        name=name,
        urls=lambda url: [f"{url}/{name}/{INDEX}"],
        accept="application/json",
        normaliser=f"{__name__}:{normalise.__name__}",
    )


def normalise(source: bytes, context: Context) -> Normalised:
    """The parts of the document of an upstream. :raises Invalid: it is none of this package"""
    listing = decode_typed(source, Listing, f"it is no {INDEX}")
    if listing.name != context.name:
        raise Invalid(f"it is the {INDEX} of another package")
    return Normalised(top={}, entries=_entries(listing, context.url.rsplit("/", 2)[0]))


def _entries(listing: Listing, url: str) -> Iterator[Entry]:
    for each in listing.files:
        path = f"{listing.name}/{each.version}/{each.file}"
        parse_path(path)
        yield Entry(
            sort=sort_key(each.version),
            key=path,
            version=each.version,
            published_ms=round(each.published.timestamp() * 1000),
            first_seen=False,
            fragments={INDEX: msgspec.json.encode(each)},
            files=[
                FileSource(path, f"{url}/{path}", each.size, {"sha256": each.sha256}, "application/octet-stream", {})
            ],
        )


def make_release(path: str, blob: BlobInfo) -> Release:
    """The release of a file, whoever has it: a client, an upstream, or the source of an import."""
    package, text = parse_path(path)
    version = parse_version(text)
    return Release(
        package_key=package,
        package_name=package,
        version_key=version.key,
        version_text=version.text,
        sort=version.sort,
        files=(NewFile(path=path, blob=blob),),
    )


async def make_remote_release(file: RemoteFile, _staged: Staged, blob: BlobInfo, _pools: Pools) -> Release:
    """The release of a file that was fetched from an upstream."""
    return make_release(file.source.path, blob)
