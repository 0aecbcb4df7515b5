"""
The documents of an upstream gem server as far as its gems are kept: with what is in the kept gems.

The lists have these gems only: ``/versions`` names the MD5 of each ``/info`` as it is restored, so that both fit
together, and the legacy lists follow from it.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from pkgrepo.formats.rubygems.gemspec import spec_of
from pkgrepo.formats.rubygems.index.gem_lists import LATEST, PRERELEASES, SPECS
from pkgrepo.formats.rubygems.index.info import HEAD, info_line, info_md5, render_time
from pkgrepo.formats.rubygems.index.list_files import ListWriter
from pkgrepo.formats.rubygems.layout import gem_path
from pkgrepo.formats.rubygems.names import full_name
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Origin, Package, Version
from pkgrepo.proxy.documents.held import DocumentRequest
from pkgrepo.proxy.parts.values import Context, Entry, FileSource, Normalised
from pkgrepo.repositories.clock import from_ms
from pkgrepo.storage.catalog.packages import files, packages, versions

from .derived_lists import write_specs
from .normaliser import INFO, keep_gzip, keep_versions
from .questions import specs_question, versions_question

_PAGE = 200  # packages that are read at once


@frozen
class _Kept:
    """A version whose gem is kept: its line in ``/info``, and its files with their origins."""

    version: Version
    origin: Origin
    line: bytes
    sources: tuple[tuple[File, Origin], ...]

    @property
    def published_ms(self) -> int:
        """When it was published, or else fetched."""
        return self.origin.fetched_ms if self.origin.published_ms is None else self.origin.published_ms


def restore_info(reader: Reader, package: Package) -> tuple[Origin, Normalised] | None:
    """The parts of ``/info/<gem>``, and the origin of the gem that was fetched last; None if none can be described."""
    kept = _kept(reader, package)
    if not kept:
        return None
    return _newest(kept), Normalised({}, (_entry(number, each) for number, each in enumerate(kept)))


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
        sources = tuple((each, each.origin) for each in stored if each.origin is not None)
        path = gem_path(full_name(package.key, version.text))
        gem, origin = next((each for each in sources if each[0].path == path), (None, None))
        if gem is None or origin is None or not version.meta:
            continue
        said_ms = origin.published_ms
        line = info_line(spec_of(version.meta), gem.sha256, None if said_ms is None else from_ms(said_ms))
        found.append(_Kept(version, origin, line, sources))
    return sorted(found, key=lambda each: (each.published_ms, each.version.sort))


def _newest(kept: list[_Kept]) -> Origin:
    return max((each.origin for each in kept), key=lambda each: each.fetched_ms)


def _entry(number: int, kept: _Kept) -> Entry:
    return Entry(
        sort=number.to_bytes(8, "big"),
        key=kept.version.text,
        version=kept.version.text,
        published_ms=kept.published_ms,
        first_seen=kept.origin.published_ms is None,
        fragments={INFO: kept.line},
        files=[
            FileSource(file.path, origin.url, file.size, dict(file.digests), file.media_type, {})
            for file, origin in kept.sources
        ],
    )
