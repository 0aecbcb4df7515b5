"""Loads the parts of packuments from the catalog."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from pkgrepo.errors import existing
from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.names import DEFAULT_TAG
from pkgrepo.gateway.spliced_documents import SplicedDocuments
from pkgrepo.interfaces import Reader
from pkgrepo.model import Package
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.storage.catalog.packages import fragments, packages, tags, versions

from . import document as packument
from .document import FULL, SHORT, Top

CACHE_SIZE: Final = 256 * 1024 * 1024  # bytes of cached documents, plain and gzip together

CONTENT_TYPES: Final = {FULL: packument.FULL_TYPE, SHORT: packument.SHORT_TYPE}


def make_packuments() -> SplicedDocuments:
    """The spliced packuments of all repositories, with one cache."""
    return SplicedDocuments(read_spliced, CONTENT_TYPES, cache_size=CACHE_SIZE)


def read_spliced(reader: Reader, repository_id: int, name: str, form: str) -> tuple[Spliced, Package]:
    """The parts of a document, and the package, from one snapshot. :raises NotFound: no such package"""
    package = existing(packages.find_package(reader, repository_id, name), "package", name)
    top = read_top(reader, package, whole=form == FULL)
    times = fragments.read_fragments(reader, package.id, packument.TIME)
    bodies = fragments.read_fragments(reader, package.id, form)
    splice = packument.splice_full if form == FULL else packument.splice_short
    return splice(top, times, bodies), package


def read_top(reader: Reader, package: Package, *, whole: bool) -> Top:
    """The top of a document; without ``whole`` only what the abbreviated form needs."""
    tagged = tags.tagged_versions(reader, package.id)
    top = Top(package.name, package.serial, package.created_at, package.updated_at, tagged)
    version = semver.find_version(tagged.get(DEFAULT_TAG, ""))
    latest = None if version is None or not whole else versions.find_version(reader, package.id, version.key)
    if latest is None:
        return top
    return evolve(
        top,
        latest=packument.manifest_of(latest),
        readme=str(latest.meta.get("readme", "")),
        readme_filename=str(latest.meta.get("readmeFilename", "")),
        maintainers=package.meta.get("maintainers", ()),
        users=sorted(package.meta.get("users", ())),
    )
