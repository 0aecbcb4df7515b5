"""
What is asked of upstreams: files by their paths, and the page of a folder for the versions of a package.

A file whose folder and name both say its version never changes. Any other one is asked for again after ``cache_ttl``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid, existing
from pkgrepo.formats.raw.files import make_release
from pkgrepo.formats.raw.paths import ALGORITHMS, check_path, check_version, media_type, sort_key, version_of
from pkgrepo.gateway.imported.listings import parse_listing
from pkgrepo.interfaces import Reader
from pkgrepo.model import BlobInfo, NewFile, Package
from pkgrepo.proxy.addressed.request import FileRequest
from pkgrepo.proxy.caching.questions import DocumentRequest
from pkgrepo.proxy.format import Latest, LatestReason, MemberParts, merge_versions
from pkgrepo.proxy.parts.values import Context, Entry, Normalised
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import packages, versions

VERSIONS: Final = "versions"  # the only form: it is made of no fragments
_NUMBER: Final = re.compile(r"\d+[._]\d+")


def file_question(package: str, path: str) -> FileRequest:
    """The file of a package (a key) at a path. :raises Invalid: it is no path"""
    version = check_version(version_of(package, check_path(path)))
    folder, _, name = path.rpartition("/")
    lasting = _NUMBER.search(version) is not None and version.removeprefix("v") in name and version in folder.split("/")
    return FileRequest(
        path=path,
        media_type=media_type(path),
        package_key=package,
        version_key=version,
        version_text=version,
        sort=sort_key(version),
        lasting=lasting,
        algorithms=ALGORITHMS,
    )


async def release_of(file: RemoteFile, _staged: Staged, blob: BlobInfo, _pools: Pools) -> Release:
    """The release of a file of an upstream."""
    path = file.source.path
    return make_release(file.key, NewFile(path=path, blob=blob, media_type=file.source.media_type))


def folder_question(package: str) -> DocumentRequest:
    """The page of the folder of a package, whose folders are its versions; some upstreams have none."""
    return DocumentRequest(
        key=f"folder/{package}",
        package_key=package,
        name=package,
        urls=lambda url: (f"{url}/{quote(package)}/",),
        accept="text/html",
        normaliser="pkgrepo.formats.raw.proxied:normalise",
    )


def normalise(source: bytes, context: Context) -> Normalised:
    """The versions that the page of a folder lists. :raises Invalid: it is no page"""
    found = parse_listing(source, context.url)
    if found is None:
        raise Invalid("there is no page of this folder")
    entries = (Entry(sort_key(each), each, each, None, False, {}, []) for each in found.folders if _is_version(each))
    return Normalised({}, entries)


def _is_version(name: str) -> bool:
    try:
        return check_version(name) == name
    except Invalid:
        return False


def read_parts(reader: Reader, repository_id: int, key: str, _form: str) -> tuple[MemberParts, Package]:
    """The versions of a package of a hosted repository, and the package. :raises NotFound: there is none"""
    package = existing(packages.find_package(reader, repository_id, key), "package", key)
    return MemberParts({}, {}, versions.sorted_texts(reader, package.id)), package


def latest(_key: str, members: Sequence[MemberParts]) -> Latest | None:
    """The highest version."""
    found = merge_versions(members)
    return Latest(found[-1], LatestReason.HIGHEST) if found else None
