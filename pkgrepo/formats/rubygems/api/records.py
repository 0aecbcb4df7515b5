"""The gems of a hosted repository as the JSON API of the public registry shows them, and as searches read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from attrs import frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.formats.rubygems.gemspec import DEVELOPMENT, RUNTIME, GemSpec, render_requirement, spec_of
from pkgrepo.formats.rubygems.names import is_prerelease
from pkgrepo.formats.rubygems.paths import gem_path
from pkgrepo.interfaces import Reader
from pkgrepo.model import Package, Version, VersionState
from pkgrepo.repositories.clock import format_time
from pkgrepo.repositories.publish.index import PackageIndex
from pkgrepo.repositories.search_index import Entry, facet, join_text
from pkgrepo.storage.catalog.packages import files, packages, versions

# Links that have a field of their own, by their key in the metadata of a gem.
_LINKS: Final = (
    "homepage_uri",
    "wiki_uri",
    "documentation_uri",
    "mailing_list_uri",
    "source_code_uri",
    "bug_tracker_uri",
    "changelog_uri",
    "funding_uri",
)

_LOOKED_AT = 50  # live versions, the newest ones, among which the latest one is looked for
ROW: Final = "ruby.row"
OWNER: Final = "owner"  # the kind of the facets with the names of a gem's owners
LONGEST_TEXT: Final = 500  # characters
_encode = msgspec.json.Encoder().encode


@frozen
class Release:
    """
    A version with what its metadata says; ``sha256`` is that of the gem, in hex.

    An upstream may not say when it was published.
    """

    spec: GemSpec
    published_at: datetime | None
    yanked: bool
    sha256: str

    @classmethod
    def of(cls, version: Version, sha256: str) -> Release:
        """The release of a stored version."""
        return cls(spec_of(version.meta), version.published_at, version.state is VersionState.YANKED, sha256)


def gem_record(release: Release, url: str) -> Mapping[str, Any]:
    """A gem in one of its versions, the latest one or one that was asked for; ``url`` is that of the repository."""
    spec = release.spec
    links = {key: spec.metadata.get(key) for key in _LINKS}
    return {
        "name": spec.name,
        "version": spec.number,
        "version_created_at": _time(release.published_at),
        "platform": spec.platform,
        "authors": ", ".join(spec.authors),
        "info": spec.description or spec.summary,
        "licenses": list(spec.licenses),
        "metadata": dict(spec.metadata),
        "yanked": release.yanked,
        "sha": release.sha256,
        "project_uri": f"{url}/api/v1/gems/{spec.name}.json",
        "gem_uri": f"{url}/{gem_path(spec.full_name)}",
        **links,
        "homepage_uri": spec.homepage or links["homepage_uri"],
        "dependencies": {kind: _dependencies(spec, kind) for kind in (DEVELOPMENT, RUNTIME)},
    }


def version_record(release: Release) -> Mapping[str, Any]:
    """One version in the list of a gem's versions."""
    spec = release.spec
    return {
        "number": spec.number,
        "platform": spec.platform,
        "prerelease": spec.prerelease,
        "created_at": _time(release.published_at),
        "built_at": f"{spec.date.isoformat()}T00:00:00.000Z",
        "authors": ", ".join(spec.authors),
        "summary": spec.summary,
        "description": spec.description,
        "sha": release.sha256,
        "ruby_version": render_requirement(spec.required_ruby, ", "),
        "rubygems_version": render_requirement(spec.required_rubygems, ", "),
        "licenses": list(spec.licenses),
        "metadata": dict(spec.metadata),
    }


def _dependencies(spec: GemSpec, kind: str) -> list[Mapping[str, str]]:
    return [
        {"name": each.name, "requirements": render_requirement(each.requirement, ", ")}
        for each in sorted(spec.dependencies, key=lambda each: each.name)
        if each.kind == kind
    ]


def _time(time: datetime | None) -> str | None:
    return None if time is None else format_time(time)


def find_latest(r: Reader, repository_id: int, name: str) -> Release | None:
    """The latest live version of a gem; None if there is no such gem, or all its versions are yanked."""
    package = packages.find_package(r, repository_id, name)
    version = None if package is None else latest_version(r, package.id)
    return None if version is None else _release(r, version)


def latest_version(r: Reader, package_id: int) -> Version | None:
    """The highest live version that is no prerelease, else the highest live one, for Ruby rather than a platform."""
    keys = versions.newest_keys(r, package_id, VersionState.LIVE, _LOOKED_AT)
    best = next((key for key in keys if not is_prerelease(_number(key))), keys[0] if keys else None)
    if best is None:
        return None
    plain = _number(best)
    return versions.find_version(r, package_id, plain if plain in keys else best)


def find_version(r: Reader, repository_id: int, name: str, key: str) -> Release | None:
    """One live version of a gem by its key, or None."""
    version = versions.find_by_keys(r, repository_id, name, key)
    return None if version is None or version.state is not VersionState.LIVE else _release(r, version)


def list_releases(r: Reader, repository_id: int, name: str) -> list[Release] | None:
    """All live versions of a gem, the highest first; None if there is no such gem. Use a thread."""
    package = packages.find_package(r, repository_id, name)
    return None if package is None else list(_releases(r, package))


def _releases(r: Reader, package: Package) -> Iterator[Release]:
    sums = {each.version_id: each.sha256 for each in files.files_of_package(r, package.id) if each.role is None}
    gil = GilReleaser()
    for version in reversed(versions.list_versions(r, package.id)):
        if version.state is VersionState.LIVE and version.id in sums:
            yield Release.of(version, sums[version.id])
        gil.release_if_due()


def _release(r: Reader, version: Version) -> Release | None:
    gem = next((each for each in files.files_of_version(r, version.id) if each.role is None), None)
    return None if gem is None else Release.of(version, gem.sha256)


def _number(key: str) -> str:
    """The number in the key of a version, whose platform, if it has one, is behind the first dash."""
    return key.partition("-")[0]


@frozen
class Row:
    """A gem as searches see it, from its latest live version."""

    name: str
    summary: str
    owners: Sequence[str] = ()


_read = msgspec.json.Decoder(Row).decode


def put_row(index: PackageIndex, latest: Version | None, owners: Sequence[str]) -> None:
    """Write the row of a gem from its latest version, or remove it if the gem has no live version."""
    if latest is None:
        index.remove_fragment(ROW, b"", "")
        return
    text = latest.meta.get("summary") or latest.meta.get("description") or ""
    index.put_fragment(ROW, b"", "", _encode(Row(index.package.name, text[:LONGEST_TEXT], owners)))


def read_entry(key: str, body: bytes, downloads: int) -> Entry:
    """The entry of the search index."""
    row = _read(body)
    facets = "".join(facet(OWNER, each) for each in row.owners)
    return Entry(key, join_text(row.name, (), row.summary), facets, deprecated=False, downloads=downloads)
