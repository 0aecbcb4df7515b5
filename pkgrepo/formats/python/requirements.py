"""Whether a requirement of a distribution accepts a version (PEP 508, PEP 440)."""

from __future__ import annotations

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version


def accepts(dependency: str, version: str) -> bool | None:
    """
    Whether a requirement accepts a version; prereleases that are within its bounds count.

    None if it names an address, or if one of them cannot be read.
    """
    try:
        requirement = Requirement(dependency)
        return None if requirement.url else requirement.specifier.contains(Version(version), prereleases=True)
    except (InvalidRequirement, InvalidVersion):
        return None
