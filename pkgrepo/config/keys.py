"""Declaration and introspection of setting keys: fields of section classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from attrs import Factory, field, fields, frozen

from .kinds import Kind

REQUIRED = object()


@frozen
class Key:
    """One key. ``default`` is a TOML value; None means unset, ``REQUIRED`` that there is no default."""

    attribute: str
    name: str
    kind: Kind
    default: object
    explanation: str


def section(kind: type) -> Any:
    """A field that holds a section of its own."""
    return field(factory=kind, metadata={"section": kind})


def setting(kind: Kind, default: object, explanation: str) -> Any:
    """A field that holds a value; see ``Key`` for ``default``."""
    metadata = {"kind": kind, "default": default, "explanation": explanation}
    if default is REQUIRED:
        return field(metadata=metadata)
    if default is None:
        return field(default=None, metadata=metadata)
    return field(default=Factory(lambda: kind.read(default, Path.cwd())), metadata=metadata)


def keys_of(owner: type) -> dict[str, Key]:
    """The keys of one section or table, without those of its sections, by name."""
    found = {}
    for attribute in fields(owner):
        data = attribute.metadata
        if "kind" in data:
            name = attribute.name.removesuffix("_s")
            found[name] = Key(attribute.name, name, data["kind"], data["default"], data["explanation"])
    return found


def sections_of(owner: type) -> dict[str, type]:
    """The sections of a section, by name."""
    return {each.name: each.metadata["section"] for each in fields(owner) if "section" in each.metadata}


def iter_keys(owner: type, prefix: str = "") -> Iterator[tuple[str, Key]]:
    """Every key below a section with its dotted name, in the order of the classes."""
    for name, key in keys_of(owner).items():
        yield prefix + name, key
    for name, inner in sections_of(owner).items():
        yield from iter_keys(inner, f"{prefix}{name}.")


def unknown(name: str, known: Mapping[str, object]) -> str:
    """The error text for an unknown name, with the nearest known one."""
    near = get_close_matches(name, known, 1, 0.5)
    return f"is not a setting; did you mean {near[0]}?" if near else "is not a setting"
