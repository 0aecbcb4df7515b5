"""Records of gems and versions, as the JSON API of the public registry has them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from attrs import frozen

from pkgrepo.formats.rubygems.gemspec import DEVELOPMENT, RUNTIME, GemSpec, render_requirement, spec_of
from pkgrepo.formats.rubygems.layout import gem_path
from pkgrepo.model import Version, VersionState

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
    return None if time is None else time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03}Z"
