"""The files of tools and what stands in them, as values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from attrs import field, frozen

Scalar = str | bool


class Syntax(StrEnum):
    """How a file is written."""

    LINES = "lines"  # KEY=VALUE, such as .npmrc
    INI = "ini"
    TOML = "toml"
    YAML = "yaml"
    JSON = "json"
    XML = "xml"
    NETRC = "netrc"
    WHOLE = "whole"  # the file has nothing else in it


@frozen
class Setting:
    """A key and its value; ``path`` are the sections, tables or mappings around it, and the key."""

    path: tuple[str, ...]
    value: Scalar


@frozen
class Item:
    """
    An item of the list at ``path``: a text, or a mapping.

    ``known_by`` is the key of a mapping by which an item that is there already is replaced. ``first`` is whether a new
    item comes before the others.
    """

    path: tuple[str, ...]
    value: str | Mapping[str, Scalar] = field(hash=False)
    known_by: str = ""
    first: bool = False


@frozen
class Element:
    """
    An element of XML in the container that the root has at ``container``; ``text`` is indented by two spaces.

    One whose child ``id`` has the same text, or one that is the same and has no such child, is replaced.
    """

    container: str
    text: str = field(repr=False)


@frozen
class Whole:
    """The text of a file."""

    text: str = field(repr=False)


Entry = Setting | Item | Element | Whole


@frozen
class ToolFile:
    """
    A configuration file at a place that ``places`` knows, and what a tool needs in it.

    ``private`` is whether a secret stands in it, so that only its owner may read it.
    """

    place: str
    syntax: Syntax
    entries: tuple[Entry, ...]
    private: bool = False
