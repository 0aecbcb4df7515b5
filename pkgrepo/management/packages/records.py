"""Records of versions and files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from pkgrepo.model import File, Repository, Version

from .schema import FileRecord, OriginRecord, Requirement, VersionRecord

LONG = frozenset({"description", "readme"})  # served by the route to the readme

_LINKS = (
    ("home_page", "Homepage"),
    ("homepage", "Homepage"),
    ("repository", "Repository"),
    ("bugs", "Issues"),
    ("download_url", "Download"),
)

# Fields with dependencies by name, and what they are for.
_REQUIREMENT_KINDS = {"dependencies": "runtime", "peerDependencies": "peer", "optionalDependencies": "optional"}
_REQUIREMENT_NAME = re.compile(r"@?[\w./-]*\w(?::[\w.-]*\w)?")  # at the start; Maven has group:artifact:version
_PEOPLE = ("maintainers", "maintainer", "maintainer_email", "author", "authors", "author_email", "developers")
MOST_REQUIREMENTS = 500
MOST_PEOPLE = 20
LONGEST_NAME = 200

_SEPARATORS = re.compile(r"[,\s]+")


def version_record(
    name: str,
    version: Version,
    files: Sequence[File],
    totals: tuple[int, int],
    tags: Sequence[str],
    requirements: Sequence[Requirement],
    repository_url: str,
    *,
    shows_urls: bool,
) -> VersionRecord:
    """
    The record of a version; licence, keywords, links and dependencies are taken from its metadata.

    ``totals`` are the number and the size of all its files. With ``shows_urls`` it has the addresses that cached files
    came from.
    """
    meta = version.meta
    return VersionRecord.from_attributes(
        version,
        package=name,
        version=version.text,
        license=license_of(meta),
        keywords=_keywords(meta.get("keywords")),
        links=_links(meta),
        dependencies=_dependencies(meta),
        requirements=list(requirements),
        maintainers=_maintainers(meta),
        tags=list(tags),
        files=[file_record(file, repository_url, shows_url=shows_urls) for file in files],
        file_count=totals[0],
        size=totals[1],
        metadata={key: value for key, value in meta.items() if key not in LONG},
    )


def file_record(file: File, repository_url: str, *, shows_url: bool) -> FileRecord:
    """The record of a file."""
    return FileRecord.from_attributes(
        file,
        name=file.path.rsplit("/", 1)[-1],
        url=file_url(repository_url, file.path),
        digests=dict(file.digests),
        uploaded_at=file.created_at,
        upstream=OriginRecord.of(file.origin, shows_url=shows_url),
    )


def repository_url(base_url: str, repository: Repository) -> str:
    """The address of a repository, without a slash at the end."""
    return f"{base_url}/repositories/{quote(repository.path)}"


def file_url(repository_url: str, path: str) -> str:
    """The address of a file."""
    return f"{repository_url}/{quote(path)}"


def _dependencies(meta: Mapping[str, Any]) -> list[str]:
    """The dependencies as the format writes them: requirements, or ranges by name."""
    by_name = meta.get("dependencies")
    if isinstance(by_name, dict):
        return [f"{name} {wanted}" for name, wanted in by_name.items()]
    return [str(each) for each in meta.get("requires_dist", ())]


def license_of(meta: Mapping[str, Any]) -> str:
    """The licence that a version declares, or an empty text."""
    return str(meta.get("license_expression") or meta.get("license") or "")


def read_requirements(meta: Mapping[str, Any]) -> list[Requirement]:
    """The dependencies of a version by name, at most ``MOST_REQUIREMENTS``."""
    found: list[Requirement] = []
    for key, kind in _REQUIREMENT_KINDS.items():
        by_name = meta.get(key)
        if isinstance(by_name, dict):
            found += [
                Requirement(name=str(name), text=f"{name} {wanted}", kind=kind) for name, wanted in by_name.items()
            ]
    if not found:
        for text in _dependencies(meta):
            name = _REQUIREMENT_NAME.match(text)
            kind = "optional" if "extra ==" in text else "runtime"
            found.append(Requirement(name=name[0] if name else "", text=text, kind=kind))
    return found[:MOST_REQUIREMENTS]


def _maintainers(meta: Mapping[str, Any]) -> list[str]:
    """The names of people, or their addresses where they have no names; each once."""
    found: dict[str, None] = {}
    for key in _PEOPLE:
        value = meta.get(key)
        for each in value if isinstance(value, list) else [value]:
            name = each.get("name") or each.get("email") if isinstance(each, dict) else each
            if isinstance(name, str) and name.strip():
                found[name.strip()[:LONGEST_NAME]] = None
    return list(found)[:MOST_PEOPLE]


def _keywords(value: object) -> list[str]:
    if isinstance(value, str):
        return [word for word in _SEPARATORS.split(value) if word]
    return [str(each) for each in value] if isinstance(value, list) else []


def _links(meta: Mapping[str, Any]) -> dict[str, str]:
    links = {}
    for each in meta.get("project_urls", ()):
        label, comma, url = str(each).partition(",")
        if comma:
            links[label.strip()] = url.strip()
    for key, label in _LINKS:
        value = meta.get(key)
        address = value.get("url") if isinstance(value, dict) else value  # npm's repository and bugs
        if address:
            links.setdefault(label, str(address).removeprefix("git+").removesuffix(".git"))
    return links
