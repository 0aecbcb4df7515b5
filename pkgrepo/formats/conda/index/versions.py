"""The versions of a package, of one or more repositories, for what is said about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pkgrepo.errors import existing
from pkgrepo.interfaces import Reader
from pkgrepo.model import Package
from pkgrepo.proxy.resolving.members import Latest, LatestReason, MemberParts, merge_versions
from pkgrepo.storage.catalog.packages import packages, versions

VERSIONS: Final = "versions"  # the only form: it is made of no fragments


def read_parts(reader: Reader, repository_id: int, name: str) -> tuple[MemberParts, Package]:
    """The live versions of a package of a hosted channel, and the package. :raises NotFound: no such package"""
    package = existing(packages.find_package(reader, repository_id, name), "package", name)
    return MemberParts({}, {}, versions.sorted_texts(reader, package.id)), package


def latest(members: Sequence[MemberParts]) -> Latest | None:
    """The highest version."""
    found = merge_versions(members)
    return Latest(found[-1], LatestReason.HIGHEST) if found else None
