"""Records of versions and files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from pkgrepo.archives.inside import NO_SHAPE
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Repository, Version
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.policy.conditions import CONTENTS
from pkgrepo.repositories.policy.facts import known_contents
from pkgrepo.repositories.upkeep.promotion import ATTRIBUTE
from pkgrepo.storage.catalog.file_facts import FileFacts
from pkgrepo.storage.catalog.packages.text_index import license_of, people_of

from .schema import FileRecord, OriginRecord, PromotedFrom, Requirement, VersionRecord

FACTS = "facts"  # the attribute of files, such as jars
LONG = frozenset({"description", "readme"})  # served by the route to the readme

_LINKS = (
    ("home_page", "Homepage"),
    ("homepage", "Homepage"),
    ("repository", "Repository"),
    ("bugs", "Issues"),
    ("download_url", "Download"),
)

Contents = Mapping[str, FileFacts]  # what files have inside, by digests such as sha256:<hex>
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
    contents: Contents,
) -> VersionRecord:
    """
    The record of a version; licence, keywords, links and dependencies are taken from its metadata.

    ``totals`` are the number and the size of all its files, ``contents`` what is known to be inside. With
    ``shows_urls`` it has the addresses that cached files came from.
    """
    meta = {**facts_of(files), **{key: value for key, value in version.meta.items() if value}}
    return VersionRecord.from_attributes(
        version,
        package=name,
        version=version.text,
        license=license_of(meta),
        keywords=_keywords(meta.get("keywords")),
        links=_links(meta),
        dependencies=_dependencies(meta),
        requirements=list(requirements),
        maintainers=people_of(meta),
        tags=list(tags),
        files=[file_record(file, repository_url, shows_url=shows_urls, contents=contents) for file in files],
        file_count=totals[0],
        promoted=PromotedFrom.of(next((each.attrs[ATTRIBUTE] for each in files if ATTRIBUTE in each.attrs), None)),
        size=totals[1],
        metadata={key: value for key, value in meta.items() if key not in LONG},
    )


def facts_of(files: Sequence[File]) -> Mapping[str, Any]:
    """What files say of their version themselves, for what its metadata do not say."""
    return next((each.attrs[FACTS] for each in files if FACTS in each.attrs), {})


def contents_of(r: Reader, format_: StoredFormat, package: str) -> Contents:
    """What is known to be inside the files of a package (a key), by their digests."""
    known = known_contents(r, format_, package, CONTENTS)
    return {name: each for name, each in known.items() if each.contents is not None}


def file_record(file: File, repository_url: str, *, shows_url: bool, contents: Contents) -> FileRecord:
    """The record of a file."""
    inside = contents.get(f"sha256:{file.sha256}", FileFacts())
    shape = inside.shape or NO_SHAPE
    return FileRecord.from_attributes(
        file,
        name=file.path.rsplit("/", 1)[-1],
        url=file_url(repository_url, file.path),
        digests=dict(file.digests),
        uploaded_at=file.created_at,
        contents=None if inside.contents is None else list(inside.contents),
        licences=None if shape.licences is None else list(shape.licences),
        unpacked_size=shape.unpacked,
        unpacked_files=shape.files,
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
