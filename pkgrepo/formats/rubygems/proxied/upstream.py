"""
What is requested from an upstream gem server, how its files are stored, and its documents as far as gems are stored.

The URL of a route is the one that clients have as source. A file that an upstream serves is stored although a push
would refuse it; then it has no metadata.

Restored lists have the stored gems only: ``/versions`` names the MD5 of each ``/info`` as it is restored, so that both
fit together, and the legacy lists follow from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from attrs import evolve, frozen

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.gemspec import meta_of, spec_of
from pkgrepo.formats.rubygems.index.info import HEAD, INFO, info_line, info_md5, render_time
from pkgrepo.formats.rubygems.index.list_files import ListWriter
from pkgrepo.formats.rubygems.legacy import LATEST, PRERELEASES, SPECS
from pkgrepo.formats.rubygems.names import full_name, sort_key
from pkgrepo.formats.rubygems.paths import GEM, QUICK, gem_path
from pkgrepo.formats.rubygems.proxied.derived_lists import write_specs
from pkgrepo.formats.rubygems.proxied.legacy_index import MOST_TTL_S, info_composition, versions_composition
from pkgrepo.formats.rubygems.proxied.normaliser import (
    GZIP_NORMALISER,
    INFO_NORMALISER,
    TAIL_NORMALISER,
    VERSIONS_NORMALISER,
    confirms,
    keep_gzip,
    keep_versions,
    read_pieces,
)
from pkgrepo.formats.rubygems.push.gem_metadata import inspect_gem
from pkgrepo.formats.rubygems.push.requests import QUICK_ROLE
from pkgrepo.interfaces import Reader
from pkgrepo.model import BlobInfo, File, NewFile, Origin, Package, Version
from pkgrepo.proxy.caching.questions import DocumentRequest, Growing, Listing, restored_entry
from pkgrepo.proxy.parts.values import Context, Entry, Normalised
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.policy.facts import UNREADABLE
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files, packages, versions

_ANY: Final = "*/*"

_PAGE = 200  # packages that are read at once


def info_question(name: str) -> DocumentRequest:
    """The versions of a gem."""
    question = DocumentRequest(
        key=f"info/{name}",
        package_key=name,
        name=name,
        urls=lambda url: [f"{url}/info/{quote(name)}"],
        accept=_ANY,
        normaliser=INFO_NORMALISER,
        most_ttl_s=MOST_TTL_S,
        listing=Listing(versions_question(), confirms, info_md5([])),
    )
    return evolve(question, composition=info_composition(question))


def versions_question() -> DocumentRequest:
    """The list of all changes."""
    return DocumentRequest(
        key="versions",
        package_key="",
        name="list of versions",
        urls=lambda url: [f"{url}/versions"],
        accept=_ANY,
        normaliser=VERSIONS_NORMALISER,
        most_ttl_s=MOST_TTL_S,
        growing=Growing(TAIL_NORMALISER, read_pieces),
        composition=versions_composition(),
    )


def specs_question(file: str) -> DocumentRequest:
    """A list of the legacy index, by its file name."""
    return DocumentRequest(
        key=file,
        package_key="",
        name=file,
        urls=lambda url: [f"{url}/{file}"],
        accept=_ANY,
        normaliser=GZIP_NORMALISER,
    )


def gem_server_probes(url: str) -> Sequence[tuple[str, Sequence[int]]]:
    """Requests that check an upstream. The body, which is large at some servers, is not read."""
    return [(f"{url}/versions", (200,)), (f"{url}/latest_specs.4.8.gz", (200,))]


async def make_release(file: RemoteFile, staged: Staged, blob: BlobInfo, pools: Pools) -> Release:
    """The release of a file that was fetched from an upstream."""
    meta: Mapping[str, Any] = {}
    gem = file.source.path.endswith(GEM)
    if gem:
        meta = await staged.inspect(pools.cpu, blob, _read_meta)
    number, _, platform = file.entry.version.partition("-")
    kept = NewFile(
        path=file.source.path,
        blob=blob,
        media_type=file.source.media_type,
        attrs={} if gem else {"role": QUICK_ROLE},
    )
    return Release(
        package_key=file.key,
        package_name=file.key,
        version_key=file.entry.version,
        version_text=file.entry.version,
        sort=sort_key(number, platform or "ruby"),
        files=(kept,),
        meta=meta,
        overwrite=gem,  # the metadata of a version whose specification was kept first
    )


def main_of(path: str) -> str:
    """The path of the gem whose specification is at a path, or of itself."""
    return gem_path(path.rpartition("/")[2].removesuffix(QUICK)) if path.endswith(QUICK) else path


def read_own(content: int | bytes, _path: str) -> Mapping[str, Any]:
    """The metadata in a gem. :raises Invalid: they cannot be read"""
    return meta_of(inspect_gem(content))


def _read_meta(content: int | bytes) -> Mapping[str, Any]:
    try:
        return meta_of(inspect_gem(content))
    except Invalid:
        return {UNREADABLE: True}


@frozen
class _Kept:
    """A version whose gem is kept: its line in ``/info``, and its files with their origins."""

    version: Version
    origin: Origin
    line: bytes
    files: list[File]

    @property
    def published_ms(self) -> int:
        """When it was published, or else fetched."""
        return self.origin.fetched_ms if self.origin.published_ms is None else self.origin.published_ms

    def entry(self, number: int) -> Entry:
        """The entry of the version, which is the one with this number."""
        sort, text = number.to_bytes(8, "big"), self.version.text
        return restored_entry(self.version, text, self.origin, {INFO: self.line}, self.files, sort=sort)


def restore_info(reader: Reader, package: Package) -> tuple[Origin, Normalised] | None:
    """The parts of ``/info/<gem>``, and the origin of the gem that was fetched last; None if none can be described."""
    kept = _kept(reader, package)
    if not kept:
        return None
    return _newest(kept), Normalised({}, (each.entry(number) for number, each in enumerate(kept)))


def restore_lists(reader: Reader, repository_id: int) -> Iterator[tuple[DocumentRequest, Origin, Normalised]]:
    """The list ``/versions`` and those of the legacy index, with the origin of the gem that was fetched last."""
    writer, origin = ListWriter.new(), None
    after = ""
    while page := packages.list_packages(reader, repository_id, after=after, limit=_PAGE):
        for package in page:
            kept = _kept(reader, package)
            if not kept:
                continue
            newest = _newest(kept)
            if origin is None:
                writer.add(f"created_at: {render_time(from_ms(newest.fetched_ms))}\n".encode() + HEAD)
            if origin is None or newest.fetched_ms > origin.fetched_ms:
                origin = newest
            texts = ",".join(each.version.text for each in kept)
            writer.add(f"{package.key} {texts} {info_md5(each.line for each in kept)}\n".encode())
        after = page[-1].key
    if origin is None:
        return
    listed = writer.end()
    question = versions_question()
    yield question, origin, keep_versions(listed.read(), Context(question.name, origin.url))
    for file in (SPECS, LATEST, PRERELEASES):
        question = specs_question(f"{file}.gz")
        yield question, origin, keep_gzip(write_specs(listed, file).read(), Context(question.name, origin.url))


def _kept(reader: Reader, package: Package) -> list[_Kept]:
    """The versions of a gem in the order of their publication."""
    found: list[_Kept] = []
    for version in versions.list_versions(reader, package.id):
        stored = files.files_of_version(reader, version.id)
        path = gem_path(full_name(package.key, version.text))
        gem = next((each for each in stored if each.path == path), None)
        origin = None if gem is None else gem.origin
        if gem is None or origin is None or not version.meta:
            continue
        said_ms = origin.published_ms
        line = info_line(spec_of(version.meta), gem.sha256, None if said_ms is None else from_ms(said_ms))
        found.append(_Kept(version, origin, line, stored))
    return sorted(found, key=lambda each: (each.published_ms, each.version.sort))


def _newest(kept: list[_Kept]) -> Origin:
    return max((each.origin for each in kept), key=lambda each: each.fetched_ms)
