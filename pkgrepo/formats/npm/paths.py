"""
Paths of requests and of files, and the paths of files in the readable layout.

Clients send a scope with its slash plain or encoded, and with the ``@`` encoded or not. A request path is therefore
split before it is decoded; each part is decoded once and checked against its grammar. An encoded character so never
acts as a separator and never leads out of the repository.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pkgrepo.formats.npm import names, semver
from pkgrepo.untrusted.text import decode_parts

BUNDLE_ROLE = ".sigstore"  # the suffix of a provenance bundle behind its tarball's path
_FILES = "/-/"

API = "-"
REVISION = "-rev"
LITERAL = "package"


def tarball_path(name: str, version_text: str) -> str:
    """The path of a version's tarball, relative to its repository."""
    return f"{name}{_FILES}{names.tarball_name(name, version_text)}"


def bundle_path(name: str, version_text: str) -> str:
    """The path of a version's provenance bundle."""
    return tarball_path(name, version_text) + BUNDLE_ROLE


def readable_path(path: str) -> str:
    """``<name>/<version>/<name>-<version>.tgz`` for a file's public path; a scope becomes a parent directory."""
    name, _, filename = path.partition(_FILES)
    stem = filename.removesuffix(BUNDLE_ROLE).removesuffix(names.TARBALL)
    version = stem.removeprefix(f"{names.split_scope(name)[1]}-")
    suffix = names.BUNDLE if filename.endswith(BUNDLE_ROLE) else names.TARBALL
    return f"{name}/{version}/{stem}{suffix}"


@frozen
class PackagePath:
    """A whole package. ``revision`` is the one that a change is based on; empty when the path has none."""

    name: str
    revision: str = ""


@frozen
class VersionPath:
    """One version of a package, by its number or a tag."""

    name: str
    selector: str


@frozen
class TarballPath:
    """
    The tarball of a version.

    ``filename`` has no scope. ``selector`` is the version that the path names besides; empty when it has none.
    """

    name: str
    filename: str
    selector: str = ""
    revision: str = ""


@frozen
class ApiPath:
    """A path below ``/-/``, as decoded parts."""

    parts: tuple[str, ...]


@frozen
class RootPath:
    """The repository itself."""


Path = PackagePath | VersionPath | TarballPath | ApiPath | RootPath


def read_path(raw_path: bytes) -> Sequence[Path]:
    """
    The possible meanings of a path, the likeliest first; empty when it is no path of this format.

    ``raw_path`` is as on the wire, behind the slash that ends the repository's own path. Only paths below
    ``package/`` have two meanings: the specification spells addresses so, and a package may be called ``package``.
    The caller takes the first meaning that exists.
    """
    parts = _decode(raw_path)
    if parts is None:
        return ()
    if not parts:
        return (RootPath(),)
    if parts[0] == API:
        return (ApiPath(tuple(parts[1:])),)
    plain = _read_package(parts)
    if parts[0] == LITERAL and len(parts) > 1:
        literal = _read_literal(parts[1:])
        # "/package/-/x.tgz" is a tarball, and no package is called "-".
        return tuple(each for each in (literal, plain) if each is not None)
    return () if plain is None else (plain,)


def split_name(parts: Sequence[str]) -> tuple[str, Sequence[str]] | None:
    """The package name at the front of decoded parts, and the parts behind it; None when it is no package name."""
    if not parts:
        return None
    name, rest = parts[0], parts[1:]
    if name.startswith("@") and "/" not in name and rest:
        name, rest = f"{name}/{rest[0]}", rest[1:]
    return (name, rest) if names.is_readable(name) else None


def _decode(raw_path: bytes) -> list[str] | None:
    try:
        parts = [part.decode() for part in decode_parts(raw_path)]
    except UnicodeDecodeError:
        return None
    if parts[-1] == "":
        parts.pop()  # clients write the registry's address with and without a slash
    return parts if all(map(_is_part, parts)) else None


def _is_part(part: str) -> bool:
    """Whether a decoded part is safe. A slash is allowed only in a scoped name and behind the scope of a file."""
    return (
        part.strip(".") != ""
        and part.isprintable()
        and "\\" not in part
        and ("/" not in part or (part.startswith("@") and part.count("/") == 1))
    )


def _read_package(parts: Sequence[str]) -> Path | None:
    found = split_name(parts)
    if found is None:
        return None
    name, rest = found
    revision = ""
    if len(rest) >= 2 and rest[-2] == REVISION:
        rest, revision = rest[:-2], rest[-1]
    if not rest:
        return PackagePath(name, revision)
    if rest[0] == API and len(rest) > 1:
        return _read_file(name, rest[1:], revision)
    if len(rest) == 1 and not revision and "/" not in rest[0] and rest[0] not in (API, REVISION):
        return VersionPath(name, rest[0])
    return None


def _read_file(name: str, rest: Sequence[str], revision: str) -> TarballPath | None:
    """The tarball named by the parts behind ``/-/``: a file name, which may follow the scope or the version."""
    scope = name.partition("/")[0] if name.startswith("@") else None
    *before, filename = rest
    if scope is not None and not before and filename.startswith(f"{scope}/"):
        return TarballPath(name, filename[len(scope) + 1 :], revision=revision)
    if "/" in filename or len(before) > 1:
        return None
    if not before or before[0] == scope:
        return TarballPath(name, filename, revision=revision)
    if semver.find_version(before[0]) is None:
        return None
    return TarballPath(name, filename, selector=before[0], revision=revision)


def _read_literal(parts: Sequence[str]) -> Path | None:
    """A path in the specification's spelling: name, version, file."""
    found = split_name(parts)
    if found is None:
        return None
    name, rest = found
    if any("/" in part or part == API for part in rest):
        return None
    match rest:
        case []:
            return PackagePath(name)
        case [selector]:
            return VersionPath(name, selector)
        case [selector, filename]:
            return TarballPath(name, filename, selector=selector)
    return None
