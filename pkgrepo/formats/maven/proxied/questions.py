"""
The questions that are asked of upstream repositories.

===========================  =================================  ========================================================
what                         routes                             asked again after
===========================  =================================  ========================================================
metadata of an artifact      all; what they answer is joined    ``cache_ttl``
metadata of a snapshot       all; what they answer is joined    ``cache_ttl``, at most a minute
a file of a release, or of   in order, or the one that has      never
a build of a snapshot        served the version before
a file of a literal          the same                           ``cache_ttl``, at most a minute
snapshot
indexes and catalogues of    in order                           ``cache_ttl``
the whole repository
===========================  =================================  ========================================================

Other plain files are not asked for: no rule about names protects their paths.

A file of an upstream is kept as a file of its version, which a POM describes. After a loss of the catalog the metadata
of an artifact are restored as far as its files are kept. Metadata of several routes are joined, and all files of a
version come from one: each route gets what came from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec
from attrs import frozen

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid, NotFound
from pkgrepo.formats.maven.metadata.reading import SnapshotFile, version_fragment
from pkgrepo.formats.maven.names import is_snapshot, package_directory
from pkgrepo.formats.maven.paths import (
    METADATA_NAME,
    ArtifactFile,
    Checksum,
    Directory,
    PlainFile,
    media_type,
    parse_text,
)
from pkgrepo.formats.maven.push_rules import permission_keys
from pkgrepo.formats.maven.upload.pom import POM_SIZE, Pom, read_pom, read_pom_file
from pkgrepo.formats.maven.upload.release import make_release, new_file
from pkgrepo.formats.maven.version_order import build_sort, sort_key
from pkgrepo.interfaces import Reader
from pkgrepo.model import BlobInfo, Origin, Package, Version
from pkgrepo.proxy.addressed.request import FileRequest
from pkgrepo.proxy.caching.questions import DocumentRequest
from pkgrepo.proxy.parts.values import Entry, Normalised
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.policy.facts import UNREADABLE
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files, versions

from .normaliser import BUILD, VERSION

SNAPSHOT_TTL_S: Final = 60
ALGORITHMS: Final = ("md5", "sha1", "sha512")  # beside sha256, which every blob has
COMPANIONS: Final = ("sha1", "md5")
PREFIXES: Final = ".meta/prefixes.txt"  # Maven 4 asks for nothing that it does not list
CATALOGUE: Final = "archetype-catalog.xml"
INDEXES: Final = (".index/", ".meta/")
NORMALISER: Final = "pkgrepo.formats.maven.proxied.normaliser:normalise"
ACCEPT: Final = "application/xml, text/xml, */*;q=0.5"


def metadata_question(key: str) -> DocumentRequest:
    """The metadata with this key: ``group:artifact``, or ``group:artifact:version`` of a snapshot."""
    group, artifact, *version = key.split(":")
    package_key = f"{group}:{artifact}"
    directory = "/".join([package_directory(package_key), *version])
    path = quote(f"{directory}/{METADATA_NAME}", safe="/+!$&'()*,;=@")
    return DocumentRequest(
        key=f"metadata/{key}",
        package_key=package_key,
        name=key,
        urls=lambda url: (f"{url}/{path}",),
        accept=ACCEPT,
        normaliser=NORMALISER,
        merges=True,
        most_ttl_s=SNAPSHOT_TTL_S if version else None,
    )


def file_question(key: str, path: str) -> FileRequest:
    """
    The file at a path; ``key`` is one by which permissions for it are asked.

    :raises NotFound: it is no file, or the key is that of something else
    """
    target = parse_text(path)
    if isinstance(target, Checksum | Directory) or key not in permission_keys(target):
        raise NotFound("file", path)
    if isinstance(target, ArtifactFile):
        at = target.coordinates
        literal = target.literal_snapshot
        return FileRequest(
            path=path,
            media_type=media_type(path),
            package_key=at.package_key,
            version_key=at.version,
            version_text=at.version,
            sort=sort_key(at.version),
            lasting=not literal,
            most_ttl_s=SNAPSHOT_TTL_S if literal else None,
            algorithms=ALGORITHMS,
            companions=COMPANIONS,
        )
    if not isinstance(target, PlainFile):
        raise NotFound("file", path)
    return FileRequest(
        path=path,
        media_type=media_type(path),
        lasting=False,
        of_one_route=path == PREFIXES,
        only_hosted=not (path == CATALOGUE or path.startswith(INDEXES)),
        algorithms=ALGORITHMS,
        companions=COMPANIONS,
    )


def probes(url: str) -> Sequence[tuple[str, Sequence[int]]]:
    """
    Requests that tell whether a URL is that of a repository; no path is in all of them.

    The metadata of a plugin group are in nearly every mirror. Others answer for a path that they do not have, or show
    a page for the whole.
    """
    return (
        (f"{url}/org/apache/maven/plugins/{METADATA_NAME}", (200,)),
        (f"{url}/{CATALOGUE}", (200,)),
        (f"{url}/", (200, 404)),
    )


@frozen
class _Kept:
    """A version of which some files came from a route, with their origins."""

    version: Version
    files: Sequence[tuple[ArtifactFile, Origin]]

    @property
    def newest(self) -> Origin:
        """The origin of the file that was fetched last."""
        return max((origin for _, origin in self.files), key=lambda each: each.fetched_ms)


def restore_metadata(reader: Reader, package: Package) -> Iterator[tuple[DocumentRequest, Origin, Normalised]]:
    """The parts of the metadata of an artifact and of its snapshots, with the file that was fetched last, by route."""
    for route, kept in _by_route(reader, package).items():
        question = metadata_question(package.key).of_route(route)
        entries = (_entry(each, each.version.sort, each.version.text, VERSION) for each in kept)
        yield question, _newest(kept), Normalised(_top(kept), entries)
        for each in kept:
            builds = list(_builds(each))
            if builds:
                question = metadata_question(f"{package.key}:{each.version.text}").of_route(route)
                yield question, each.newest, Normalised(_top([each]), iter(builds))


def _by_route(reader: Reader, package: Package) -> dict[str, list[_Kept]]:
    found: dict[str, list[_Kept]] = {}
    for version in versions.list_versions(reader, package.id):
        routes: dict[str, list[tuple[ArtifactFile, Origin]]] = {}
        for file in files.files_of_version(reader, version.id):
            target, origin = parse_text(file.path), file.origin
            if origin is not None and isinstance(target, ArtifactFile):
                routes.setdefault(origin.route, []).append((target, origin))
        for route, some in routes.items():
            found.setdefault(route, []).append(_Kept(version, some))
    return found


def _newest(kept: Sequence[_Kept]) -> Origin:
    return max((each.newest for each in kept), key=lambda each: each.fetched_ms)


def _top(kept: Sequence[_Kept]) -> dict[str, object]:
    newest = _newest(kept)
    updated_ms = newest.fetched_ms if newest.published_ms is None else newest.published_ms
    return {"last_updated_ms": updated_ms, "plugins": [], "others": []}


def _builds(kept: _Kept) -> Iterator[Entry]:
    """The files of a snapshot that belong to builds; none of a release."""
    if not is_snapshot(kept.version.text):
        return
    for file, _ in kept.files:
        if file.timestamp is None or file.build is None or file.role is not None:
            continue
        updated = file.timestamp.replace(".", "")
        listed = SnapshotFile(file.classifier, file.extension, file.file_version, updated, file.timestamp, file.build)
        yield _entry(kept, build_sort(updated, file.build), file.filename, BUILD, msgspec.json.encode(listed))


def _entry(kept: _Kept, sort: bytes, key: str, kind: str, body: bytes | None = None) -> Entry:
    origin, text = kept.newest, kept.version.text
    return Entry(
        sort=sort,
        key=key,
        version=text,
        published_ms=origin.fetched_ms if origin.published_ms is None else origin.published_ms,
        first_seen=origin.first_seen or origin.published_ms is None,
        fragments={kind: version_fragment(text) if body is None else body},
        files=[],
    )


async def release_of(file: RemoteFile, staged: Staged, blob: BlobInfo, pools: Pools) -> Release:
    """The release of a file whose bytes are ``blob``. :raises Invalid: it is no file of an artifact"""
    target = parse_text(file.source.path)
    if not isinstance(target, ArtifactFile):
        raise Invalid("this is not the path of a file of an artifact", "path")
    meta = None
    if target.extension == "pom" and not target.classifier:
        pom = await staged.inspect(pools.cpu, blob, _look) if blob.size <= POM_SIZE else None
        meta = {UNREADABLE: True} if pom is None else pom.meta()
    return make_release(target.coordinates, [new_file(target, blob)], meta)


def described_by(path: str) -> Sequence[str]:
    """The paths of the files that describe one at a path: the POM of its version, or of its build."""
    target = parse_text(path)
    if not isinstance(target, ArtifactFile):
        return ("",)
    at = target.coordinates
    return (f"{at.directory}/{at.artifact}-{target.file_version}.pom",)


def read_own(content: int | bytes, _path: str) -> Mapping[str, Any]:
    """What a POM says of its version. :raises Invalid: it cannot be read"""
    pom = read_pom_file(content)
    if pom is None:
        raise Invalid("the POM cannot be read", "pom")
    return pom.meta()


def _look(source: int | bytes) -> Pom | None:
    """What a POM says; None also if it is malformed, since clients get it as it is."""
    try:
        if isinstance(source, bytes):
            return read_pom(source)
        with open(source, "rb", closefd=False) as file:
            return read_pom(file.read(POM_SIZE))
    except Invalid:
        return None
