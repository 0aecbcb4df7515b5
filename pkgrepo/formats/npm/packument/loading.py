"""Loads the parts of packuments from the catalog."""

from __future__ import annotations

from typing import Final

import msgspec

from pkgrepo.errors import existing
from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.names import DEFAULT_TAG
from pkgrepo.formats.npm.rendering import format_time
from pkgrepo.gateway.answers.spliced_documents import SplicedDocuments
from pkgrepo.interfaces import Reader
from pkgrepo.model import Package, Version
from pkgrepo.proxy.resolving.members import MemberParts
from pkgrepo.storage.catalog.documents import fragments
from pkgrepo.storage.catalog.packages import packages, tags, versions

from . import document as packument
from .document import Top
from .stored_versions import README_FIELDS
from .version_fragments import FULL, SHORT, TIME

CACHE_SIZE: Final = 256 * 1024 * 1024  # bytes of cached documents, plain and gzip together

CONTENT_TYPES: Final = {FULL: packument.FULL_TYPE, SHORT: packument.SHORT_TYPE}

_encode = msgspec.json.Encoder().encode


KINDS: Final = {form: (form, TIME) for form in (FULL, SHORT)}


def make_packuments() -> SplicedDocuments:
    """The spliced packuments of all repositories, with one cache."""
    return SplicedDocuments(CONTENT_TYPES, cache_size=CACHE_SIZE)


def read_parts(reader: Reader, repository_id: int, name: str, form: str) -> tuple[MemberParts, Package]:
    """
    What a hosted repository has of a package, for one form of its document, and the package, from one snapshot.

    :raises NotFound: no such package
    """
    package = existing(packages.find_package(reader, repository_id, name), "package", name)
    top = msgspec.to_builtins(read_top(reader, package, whole=form == FULL))
    return MemberParts(top, {kind: fragments.list_fragments(reader, package.id, kind) for kind in KINDS[form]}), package


def read_top(reader: Reader, package: Package, *, whole: bool) -> Top:
    """The top of a document, from the catalog; without ``whole`` only what the abbreviated form needs."""
    tagged = tags.tagged_versions(reader, package.id)
    version = semver.find_version(tagged.get(DEFAULT_TAG, ""))
    latest = None if version is None or not whole else versions.find_version(reader, package.id, version.key)
    return Top(
        name=package.name,
        tags=tagged,
        revision=packument.revision(package.name, package.serial),
        created=format_time(package.created_at),
        modified=format_time(package.updated_at),
        fields={} if latest is None else _fields(package, latest),
    )


def _fields(package: Package, latest: Version) -> dict[str, str]:
    """The further members of the full form: of the package, and of its latest version."""
    found = {"maintainers": package.meta.get("maintainers", [])}
    found |= {key: latest.meta[key] for key in packument.TOP_FIELDS if latest.meta.get(key) is not None}
    found |= {key: str(latest.meta.get(key, "")) for key in README_FIELDS}
    if users := package.meta.get("users"):
        found["users"] = dict.fromkeys(sorted(users), True)
    return {key: _encode(value).decode() for key, value in found.items()}
