"""Groups, artifacts and versions: their grammar, and what a snapshot is (Maven repository layout)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.text import quoted

SNAPSHOT = "SNAPSHOT"
LONGEST = 1024  # bytes of a path, and so of a name

# What a name cannot have: separators of paths and of keys, and characters that XML 1.0 has no form for (section 2.2).
UNWANTED = re.compile("[\x00-\x1f\x7f-\x9f/\\\\\ud800-\udfff\ufffe\uffff]")
_TIMESTAMPED = re.compile(r".*-[0-9]{8}\.[0-9]{6}-[0-9]+", re.DOTALL)


@frozen
class Coordinates:
    """
    Group, artifact and version of what a directory holds.

    ``version`` is the base version: ``1.1-SNAPSHOT`` also of the file ``app-1.1-20240102.030405-6.jar``.
    """

    group: str
    artifact: str
    version: str

    @property
    def package_key(self) -> str:
        """The key of the package, which is its name too: ``group:artifact``."""
        return f"{self.group}:{self.artifact}"

    @property
    def directory(self) -> str:
        """The path of the version's directory, without a slash at the end."""
        return f"{package_directory(self.package_key)}/{self.version}"


_PRERELEASE = re.compile(r"(?:^|[^a-z])(?:alpha|beta|milestone|preview|rc|cr|[abm](?=[.-]?[0-9]))(?:[^a-z]|$)", re.I)


def is_prerelease(version: str) -> bool:
    """Whether a version is a snapshot, or has a qualifier that Maven sorts before the release, such as ``rc``."""
    return is_literal_snapshot(version) or _PRERELEASE.search(version) is not None


def build_of(attrs: Mapping[str, Any]) -> str | None:
    """The timestamp and number of the build of a snapshot that a file with these attributes belongs to, if any."""
    timestamp, build = attrs.get("timestamp"), attrs.get("build")
    return None if timestamp is None or build is None else f"{timestamp}-{build}"


def is_literal_snapshot(version: str) -> bool:
    """
    Whether a version is a snapshot in the form that its directory has: it ends with ``-SNAPSHOT``, in any case.

    A version that is the bare word counts too, as it does for clients.
    """
    upper = version.upper()
    return upper == SNAPSHOT or upper.endswith("-" + SNAPSHOT)


def is_snapshot(version: str) -> bool:
    """Whether a version is a snapshot: a literal one, or one of its builds, such as ``1.1-20240102.030405-6``."""
    return is_literal_snapshot(version) or _TIMESTAMPED.fullmatch(version) is not None


def is_part(text: str) -> bool:
    """Whether a text can be one segment of a path and a part of a key, which has colons between its parts."""
    return text.strip(".") != "" and UNWANTED.search(text) is None and ":" not in text and text == text.strip()


def is_group(text: str) -> bool:
    """Whether a text is a group: parts with dots between them."""
    return all(is_part(part) for part in text.split("."))


def parse_package_key(name: str) -> str:
    """The key of the package with this name. :raises Invalid: it is not ``group:artifact``"""
    group, _, artifact = name.partition(":")
    if len(name) > LONGEST or not is_group(group) or not is_part(artifact):
        raise Invalid(f"{quoted(name)} is no name of an artifact: group:artifact, for example com.example:app", "name")
    return name


def parse_version(text: str) -> str:
    """The version itself. :raises Invalid: it cannot be the name of a directory"""
    if len(text) > LONGEST or not is_part(text):
        raise Invalid(f"{quoted(text)} is no version of an artifact", "version")
    return text


def package_directory(package_key: str) -> str:
    """The directory of a package: ``com/example/app`` for ``com.example:app``."""
    group, _, artifact = package_key.partition(":")
    return f"{group.replace('.', '/')}/{artifact}"
