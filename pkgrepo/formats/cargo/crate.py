"""
A ``.crate``: a gzip-compressed tar of one folder, ``<name>-<version>``, with the sources and a normalised Cargo.toml.

It is read without unpacking it to the disk. What the index and the page of a crate say is taken from its Cargo.toml,
which ``cargo`` has normalised; what a client sends beside the crate must not say anything else, since clients resolve
by the one and build by the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
from attrs import frozen

from pkgrepo.archives.one_folder import read_one_folder
from pkgrepo.archives.source import Source
from pkgrepo.errors import Invalid
from pkgrepo.formats.cargo.names import normal_requirement, package_key, parse_version
from pkgrepo.repositories.semver import Version
from pkgrepo.untrusted.strict_json import decode_as
from pkgrepo.untrusted.toml import read_toml

MANIFEST: Final = "Cargo.toml"
REVISION: Final = ".cargo_vcs_info.json"  # of the version control that the crate was packed from
MANIFEST_SIZE: Final = 1024 * 1024  # bytes
REVISION_SIZE: Final = 64 * 1024
MOST_DEPENDENCIES: Final = 2000
MOST_FEATURES: Final = 10_000  # with the values of all of them; the public registry allows 300

_UNDERSCORES: Final = re.compile(r"^(\s*\[?)(dev|build)_dependencies\b", re.MULTILINE)
_BLANKS: Final = re.compile(r"\s")

Line = dict[str, Any]  # of an index, without what the registry says of the version


class Dependency(msgspec.Struct, rename="kebab", kw_only=True):
    """A dependency as a table of Cargo.toml has it."""

    version: str = "*"
    package: str | None = None
    features: list[str] = []
    optional: bool = False
    default_features: bool = True
    registry_index: str | None = None

    def line(self, name: str, kind: str | None, target: str | None) -> Line:
        """What an index says of it. :raises Invalid: no crate has such a name"""
        package_key(self.package or name)
        line = {
            "name": name,
            "req": normal_requirement(self.version),
            "features": self.features,
            "optional": self.optional,
            "default_features": self.default_features,
            "target": target,
            "kind": kind or "normal",
            "registry": self.registry_index,
        }
        return line if self.package in (None, name) else {**line, "package": self.package}


class _Tables(msgspec.Struct, rename="kebab", kw_only=True):
    dependencies: dict[str, str | Dependency] = {}
    dev_dependencies: dict[str, str | Dependency] = {}
    build_dependencies: dict[str, str | Dependency] = {}

    def lines(self, target: str | None) -> Iterator[Line]:
        tables = {"normal": self.dependencies, "dev": self.dev_dependencies, "build": self.build_dependencies}
        for kind, table in tables.items():
            for name, value in table.items():
                needed = Dependency(version=value) if isinstance(value, str) else value
                yield needed.line(name, kind, target)


class _Package(msgspec.Struct, rename="kebab", kw_only=True, omit_defaults=True):
    name: str
    version: str = "0.0.0"
    description: str = ""
    license: str = ""
    homepage: str = ""
    documentation: str = ""
    repository: str = ""
    edition: str = ""
    rust_version: str | None = None
    links: str | None = None
    authors: list[str] = []
    keywords: list[str] = []
    categories: list[str] = []
    build: bool | str | list[str] = False


class _Library(msgspec.Struct, frozen=True):
    proc_macro: bool = msgspec.field(default=False, name="proc-macro")


class _Manifest(_Tables, rename="kebab", kw_only=True):
    package: _Package
    features: dict[str, list[str]] = {}
    lib: _Library = _Library()
    target: dict[str, _Tables] = {}


@frozen
class Crate:
    """What a crate says of itself: its name and version, its ``line`` in an index, and what is shown about it."""

    name: str
    version: Version
    line: Line
    meta: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The key of its package."""
        return self.name.lower()


def read_crate(content: int | bytes) -> Crate:
    """
    Inspect a crate, given as a file descriptor (which stays open) or as bytes. Blocks: call it in a thread.

    :raises Invalid: it is damaged, unsafe to unpack, or its Cargo.toml is none
    """
    source = Source(content, "the crate")
    folder, texts = read_one_folder(source, {MANIFEST: MANIFEST_SIZE, REVISION: REVISION_SIZE}.get)
    if MANIFEST not in texts:
        raise source.refuse(f"has no {MANIFEST} in its folder")
    try:
        crate = _read_manifest(texts[MANIFEST].decode(), texts.get(REVISION))
    except (Invalid, ValueError) as error:  # also of msgspec, and of what is not UTF-8
        raise source.refuse(f"has a {MANIFEST} that cannot be used: {error}") from None
    if folder != f"{crate.name}-{crate.version.text}":
        raise source.refuse(f"has the folder {folder!a}, and its {MANIFEST} is of {crate.name} {crate.version.text}")
    return crate


def _read_manifest(text: str, revision: bytes | None) -> Crate:
    manifest = msgspec.convert(read_toml(_UNDERSCORES.sub(r"\1\2-dependencies", text)), _Manifest)
    package = manifest.package
    package_key(package.name)
    version = parse_version(package.version)
    deps = [*manifest.lines(None), *(line for key, each in manifest.target.items() for line in each.lines(key))]
    line = index_line(package.name, package.version, deps, manifest.features, package.links, package.rust_version)
    meta: dict[str, Any] = msgspec.to_builtins(package)
    for key, optional in (("dependencies", False), ("optionalDependencies", True)):
        needed = [each for each in deps if each["kind"] != "dev" and each["optional"] is optional]
        meta[key] = {each.get("package", each["name"]): each["req"] for each in needed}
    meta["features"] = manifest.features
    # A build script and a procedural macro run when a crate is built that needs this one.
    meta["runs"] = bool(package.build) or manifest.lib.proc_macro
    if revision is not None:
        with suppress(Invalid):  # it is for people alone
            meta["vcs"] = decode_as(revision, dict[str, Any])
    return Crate(package.name, version, line, {key: value for key, value in meta.items() if value not in ({}, [])})


def index_line(
    name: str, version: str, deps: list[Line], features: dict[str, list[str]], links: str | None, rust: str | None
) -> Line:
    """
    The line of a version, without its checksum, its time and whether it is yanked.

    Features whose values old clients cannot read are apart, in ``features2`` of a line of the second version (RFC
    3143).

    :raises Invalid: there are too many dependencies or features
    """
    if len(deps) > MOST_DEPENDENCIES or sum(1 + len(each) for each in features.values()) > MOST_FEATURES:
        raise Invalid(f"there are more than {MOST_DEPENDENCIES} dependencies, or {MOST_FEATURES} features")
    newer = {key: values for key, values in features.items() if any(map(_is_newer, values))}
    line: Line = {"name": name, "vers": version, "deps": deps}
    line["features"] = {key: values for key, values in features.items() if key not in newer}
    optional = {"features2": newer or None, "links": links, "rust_version": rust, "v": 2 if newer else None}
    return line | {key: value for key, value in optional.items() if value is not None}


def _is_newer(value: str) -> bool:
    return value.startswith("dep:") or "?/" in value


def differing(sent: Line, packed: Line) -> list[str]:
    """The fields of a line that was sent that differ from the crate's, but for registries: these have several names."""
    left, right = _comparable(sent), _comparable(packed)
    return [key for key in left if left[key] != right[key]]


def _comparable(line: Line) -> Line:
    features = {**line["features"], **line.get("features2", {})}
    return {
        "dependencies": sorted(map(_dependency_text, line["deps"])),
        "features": {name: sorted(values) for name, values in features.items()},
        "links": line.get("links"),
        "rust-version": line.get("rust_version"),
    }


def _dependency_text(line: Line) -> str:
    """A dependency as a text without blanks, which are written otherwise in requirements and targets."""
    known = {**line, "package": line.get("package", line["name"]), "features": sorted(line["features"]), "registry": ""}
    return _BLANKS.sub("", repr(sorted(known.items()))).replace("'", '"')
