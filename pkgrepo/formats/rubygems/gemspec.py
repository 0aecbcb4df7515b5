"""What a gem says of itself: the fields of ``Gem::Specification`` that indexes, installers and people need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final

from attrs import Factory, frozen

from .names import full_name, full_version, is_prerelease

Requirement = tuple[tuple[str, str], ...]  # pairs of operator and version; all of them must hold

ANY: Final[Requirement] = ((">=", "0"),)
RUNTIME: Final = "runtime"
DEVELOPMENT: Final = "development"
EXTENSIONS: Final = "extensions"  # in the metadata of a version: whether it has some

_URI: Final = "_uri"  # the end of the keys of links in the metadata


@frozen
class Dependency:
    """A gem that another one needs; ``kind`` is ``runtime`` or ``development``."""

    name: str
    kind: str
    requirement: Requirement = ANY

    @property
    def is_runtime(self) -> bool:
        """Whether the gem is needed for running, not only for development."""
        return self.kind == RUNTIME


@frozen
class GemSpec:
    """
    The specification of one gem, as its author wrote it.

    ``platform`` is the normal form that names files and index lines; ``original_platform`` is what the author wrote.
    ``email`` is one address, several, or None. Texts that the author left out are None, lists are empty. With
    ``extensions`` programs of the gem run when it is installed; None if that is not known.
    """

    name: str
    number: str
    platform: str
    original_platform: str
    rubygems_version: str
    date: date
    summary: str
    description: str | None = None
    email: str | tuple[str, ...] | None = None
    authors: tuple[str, ...] = ()
    homepage: str | None = None
    licenses: tuple[str, ...] = ()
    metadata: Mapping[str, str] = Factory(dict)
    required_ruby: Requirement = ANY
    required_rubygems: Requirement = ANY
    dependencies: tuple[Dependency, ...] = ()
    extensions: bool | None = None

    @property
    def prerelease(self) -> bool:
        """Whether the version is a prerelease."""
        return is_prerelease(self.number)

    @property
    def full_version(self) -> str:
        """``number``, or ``number-platform``."""
        return full_version(self.number, self.platform)

    @property
    def full_name(self) -> str:
        """The name of the gem's file without its ending."""
        return full_name(self.name, self.full_version)

    @property
    def runtime_dependencies(self) -> tuple[Dependency, ...]:
        """The dependencies that are needed for running, in the author's order."""
        return tuple(each for each in self.dependencies if each.is_runtime)


def render_requirement(requirement: Requirement, separator: str) -> str:
    """A requirement as text, sorted as text, as the index documents have it: ``< 3, >= 1.0``."""
    return separator.join(sorted(f"{operator} {version}" for operator, version in requirement))


def meta_of(spec: GemSpec) -> dict[str, Any]:
    """
    A specification as the catalog stores it with its version; empty fields are left out.

    Keys that other formats have too are named and written like theirs, for the management API.
    """
    meta: dict[str, Any] = {
        "name": spec.name,
        "number": spec.number,
        "platform": spec.platform,
        "original_platform": spec.original_platform,
        "rubygems_version": spec.rubygems_version,
        "date": spec.date.isoformat(),
        "summary": spec.summary,
        "description": spec.description,
        "email": list(spec.email) if isinstance(spec.email, tuple) else spec.email,
        "authors": list(spec.authors),
        "home_page": spec.homepage,
        "license": ", ".join(spec.licenses),
        "licenses": list(spec.licenses),
        "metadata": dict(spec.metadata),
        "required_ruby": _dump(spec.required_ruby),
        "required_rubygems": _dump(spec.required_rubygems),
        "dependencies": [
            {"name": each.name, "kind": each.kind, "requirement": [list(pair) for pair in each.requirement]}
            for each in spec.dependencies
        ],
        "requires_dist": [
            f"{each.name} ({render_requirement(each.requirement, ', ')})" for each in spec.runtime_dependencies
        ],
        "project_urls": [f"{_label(key)}, {url}" for key, url in spec.metadata.items() if key.endswith(_URI)],
    }
    found = {key: value for key, value in meta.items() if value or key == "summary"}
    return found if spec.extensions is None else {**found, EXTENSIONS: spec.extensions}


def spec_of(meta: Mapping[str, Any]) -> GemSpec:
    """The specification that L{meta_of} stored."""
    email = meta.get("email")
    return GemSpec(
        name=meta["name"],
        number=meta["number"],
        platform=meta["platform"],
        original_platform=meta["original_platform"],
        rubygems_version=meta.get("rubygems_version", ""),
        date=date.fromisoformat(meta["date"]),
        summary=meta.get("summary", ""),
        description=meta.get("description"),
        email=tuple(email) if isinstance(email, list) else email,
        authors=tuple(meta.get("authors", ())),
        homepage=meta.get("home_page"),
        licenses=tuple(meta.get("licenses", ())),
        metadata=meta.get("metadata", {}),
        required_ruby=_load(meta.get("required_ruby")),
        required_rubygems=_load(meta.get("required_rubygems")),
        dependencies=tuple(
            Dependency(each["name"], each["kind"], _load(each["requirement"])) for each in meta.get("dependencies", ())
        ),
        extensions=meta.get(EXTENSIONS),
    )


def _label(key: str) -> str:
    """A key of the metadata, such as ``source_code_uri``, as people read it."""
    return key.removesuffix(_URI).replace("_", " ").capitalize()


def _dump(requirement: Requirement) -> list[list[str]]:
    return [] if requirement == ANY else [list(pair) for pair in requirement]


def _load(pairs: Sequence[Sequence[str]] | None) -> Requirement:
    return tuple((operator, version) for operator, version in pairs) if pairs else ANY
