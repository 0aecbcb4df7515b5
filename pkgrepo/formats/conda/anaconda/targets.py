"""The grammar of the paths that anaconda-client asks for: what a request is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.names import FileName, check_name, check_subdir, check_version, parse_file_name, version_key
from pkgrepo.formats.conda.paths import package_path

# The first words of the paths. Folders of a channel have other names, and so have its documents.
WORDS: Final = frozenset(
    {"user", "package", "release", "dist", "download", "stage", "commit", "authentications", "authentication-type"}
)


@frozen
class PackageTarget:
    """A package; ``owner`` is what the client calls the channel."""

    owner: str
    name: str


@frozen
class ReleaseTarget:
    """A version of a package; ``version`` is as the client writes it."""

    owner: str
    name: str
    version: str

    @property
    def version_key(self) -> str:
        """The key of the version."""
        return version_key(self.version)


@frozen
class FileTarget:
    """A file of a version, in a folder of the channel."""

    owner: str
    subdir: str
    file: FileName

    @property
    def name(self) -> str:
        """The package."""
        return self.file.name

    @property
    def version_key(self) -> str:
        """The key of the version."""
        return version_key(self.file.version)

    @property
    def path(self) -> str:
        """The path of the file in the channel."""
        return package_path(self.subdir, self.file)


def package_target(parts: Sequence[str]) -> PackageTarget:
    """The target of ``<owner>/<name>``. :raises Invalid: it is malformed"""
    if len(parts) != 2:
        raise Invalid("a package is written as OWNER/NAME", "name")
    owner, name = parts
    return PackageTarget(owner, check_name(name))


def release_target(parts: Sequence[str]) -> ReleaseTarget:
    """The target of ``<owner>/<name>/<version>``. :raises Invalid: it is malformed"""
    if len(parts) != 3:
        raise Invalid("a version is written as OWNER/NAME/VERSION", "version")
    owner, name, version = parts
    return ReleaseTarget(owner, check_name(name), check_version(version))


def file_target(parts: Sequence[str]) -> FileTarget:
    """
    The target of ``<owner>/<name>/<version>/<subdir>/<file>``.

    :raises Invalid: it is malformed, or the file is of another version or package
    """
    if len(parts) != 5:
        raise Invalid("a file is written as OWNER/NAME/VERSION/SUBDIR/FILE", "basename")
    owner, name, version, subdir, text = parts
    file = parse_file_name(text)
    if (file.name, file.version) != (name, version):
        raise Invalid(f"{file} is no file of {name} {version}"[:400], "basename")
    return FileTarget(owner, check_subdir(subdir), file)
