"""What people write about a repository: on the command line, or in a file (pure, but for reading the file)."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from pkgrepo.errors import Invalid

LARGEST = 4 * 1024 * 1024  # bytes of a file


class Definition(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A repository as a file describes it; what is absent is not changed, and has the server's default when created."""

    name: Annotated[str, Meta(min_length=1)]
    format: str
    storage: str = "main"
    visibility: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    config: dict[str, Any] | UnsetType = UNSET

    @property
    def path(self) -> str:
        """The storage and the name."""
        return f"{self.storage}/{self.name}"

    @property
    def type(self) -> str:
        """The type in the configuration; a repository without configuration is hosted."""
        return "Hosted" if self.config is UNSET else str(self.config.get("type", "Hosted"))


class _File(msgspec.Struct, forbid_unknown_fields=True):
    repositories: list[Definition]


def read_definitions(path: Path) -> list[Definition]:
    """
    The repositories in a TOML or JSON file (``-``: JSON from standard input), those without members first.

    :raises Invalid: it is no such file, or describes a repository twice; :raises OSError: it cannot be read
    """
    value = read_value(path)
    try:
        found = msgspec.convert(value, _File).repositories
    except msgspec.ValidationError as error:
        raise Invalid(f"{path}: {error}") from None
    paths = [each.path.casefold() for each in found]
    for number, each in enumerate(paths):
        if each in paths[:number]:
            raise Invalid(f"{path}: {found[number].path} is there twice")
    return sorted(found, key=lambda each: each.type == "Virtual")  # members must exist


def read_value(path: Path) -> Any:
    """
    The value in a JSON file, or in a TOML file by its ending.

    :raises Invalid: the file is no such definition; :raises OSError: it cannot be read
    """
    if str(path) == "-":
        data = sys.stdin.buffer.read(LARGEST + 1)
    else:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise Invalid(f"{path} is longer than {LARGEST} bytes")
    try:
        if path.suffix.lower() == ".toml":
            return tomllib.loads(data.decode())
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} cannot be read: {error}") from None


def with_assignments(config: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """
    A configuration with values set by ``a.b=VALUE``, where VALUE is JSON, or a text.

    :raises Invalid: an assignment has no name, or leads into a value that is no object
    """
    changed: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(config))
    for each in assignments:
        name, equals, text = each.partition("=")
        keys = name.split(".")
        if not equals or not all(keys):
            raise Invalid(f"--set takes KEY=VALUE, such as push_rules.allow_overwrite=true, not {each!r}")
        place = changed
        for key in keys[:-1]:
            inner = place.setdefault(key, {})
            if inner is None:
                inner = place[key] = {}
            if not isinstance(inner, dict):
                raise Invalid(f"{key} in {name} is no object")
            place = inner
        try:
            place[keys[-1]] = msgspec.json.decode(text)
        except msgspec.DecodeError:
            place[keys[-1]] = text
    return changed
