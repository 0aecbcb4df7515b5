"""
Declaration and introspection of settings: a section is a struct, a key a field with a ``meaning``.

The kind of a key is derived from its annotation: the type, the bounds, the pattern and the title (the kind in words) in
its ``Meta``, and a maker such as ``duration`` for values with a spelling of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec
from attrs import frozen
from msgspec import NODEFAULT, Meta

from .kinds import (
    BOOLEAN,
    PATH,
    TABLE,
    Kind,
    Secret,
    SettingError,
    choice,
    duration,
    integer,
    secret,
    several,
    size,
    text,
    toml,
)

AUTO: Final = "auto"  # in the annotation of a value that may be None: "auto" is its spelling
REQUIRED: Final = object()  # the default of a key that has none
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
PLAIN_KINDS: Final[Mapping[Any, Kind]] = {bool: BOOLEAN, Path: PATH, Mapping[str, Any]: TABLE}


class Section(msgspec.Struct, frozen=True, kw_only=True, rename=lambda name: name.removesuffix("_s")):
    """A section or a table of settings. A key has the name of its field without the suffix ``_s`` (seconds)."""


@frozen
class Key:
    """One key; ``default`` is its value unless it is set, or ``REQUIRED``."""

    attribute: str
    name: str
    kind: Kind
    default: object
    explanation: str

    def show(self, value: object) -> str:
        """A value as TOML: ``***`` for a secret, empty if it is unset."""
        if value is REQUIRED or (value is None and not self.kind.automatic):
            return ""
        return "***" if self.kind.secret else self.kind.show(value)


@cache
def keys_of(owner: type[Section]) -> dict[str, Key]:
    """The keys of one section or table, without those of its sections, by name."""
    found = {}
    for each in msgspec.structs.fields(owner):
        explanation = "".join(mark.description or "" for mark in _unpacked(each.type)[1] if isinstance(mark, Meta))
        if explanation:
            default = each.default if each.default_factory is NODEFAULT else each.default_factory()
            default = REQUIRED if default is NODEFAULT else default
            key = Key(each.name, each.encode_name, kind_of(each.type), default, explanation)
            found[key.name] = key
    return found


@cache
def sections_of(owner: type[Section]) -> dict[str, type[Section]]:
    """The sections of a section, by name."""
    fields = msgspec.structs.fields(owner)
    return {each.name: each.type for each in fields if isinstance(each.type, type) and issubclass(each.type, Section)}


def iter_keys(owner: type[Section], prefix: str = "") -> Iterator[tuple[str, Key]]:
    """Every key below a section with its dotted name, in the order of the classes."""
    for name, key in keys_of(owner).items():
        yield prefix + name, key
    for name, inner in sections_of(owner).items():
        yield from iter_keys(inner, f"{prefix}{name}.")


def unknown(name: str, known: Mapping[str, object]) -> str:
    """The error text for an unknown name, with the nearest known one."""
    near = get_close_matches(name, known, 1, 0.5)
    return f"is not a setting; did you mean {near[0]}?" if near else "is not a setting"


def kind_of(hint: Any) -> Kind:  # noqa: PLR0911 - one return for each form
    """The kind that the annotation of a key declares."""
    type_, marks = _unpacked(hint)
    ready = next((mark for mark in marks if isinstance(mark, Kind)), None) or PLAIN_KINDS.get(type_)
    if ready is not None:
        return ready
    given, inner = _given(marks), get_args(type_)
    if type_ in (int, float):
        return next((mark for mark in marks if mark in (duration, size)), integer)(**given)
    if type_ in (str, Secret):
        return (text if type_ is str else secret)(**given)
    if get_origin(type_) is Literal:
        return choice(*inner)
    if get_origin(type_) is Mapping:
        return named_tables(inner[1]) if isinstance(inner[1], type) else table_of(kind_of(inner[1]))
    if isinstance(inner[0], type) and issubclass(inner[0], Section):
        return tables(inner[0])
    return several(kind_of(inner[0]), **given)


def _given(marks: Sequence[Any]) -> dict[str, Any]:
    """The arguments for the maker of a kind."""
    names = {"low": "ge", "high": "le", "pattern": "pattern", "what": "title"}
    metas = [mark for mark in marks if isinstance(mark, Meta)]
    found = {name: value for name, key in names.items() for each in metas if (value := getattr(each, key)) is not None}
    return found | ({"automatic": True} if AUTO in marks else {})


def _unpacked(hint: Any) -> tuple[Any, list[Any]]:
    """The type in an annotation, without None, and what it is annotated with, the innermost first."""
    if get_origin(hint) is Annotated:
        inner, *marks = get_args(hint)
        type_, before = _unpacked(inner)
        return type_, before + marks
    if get_origin(hint) in (Union, UnionType):
        return _unpacked(next(each for each in get_args(hint) if each is not NoneType))
    return hint, []


def tables(item: type[Section]) -> Kind:
    """A list of tables with the keys of ``item``, as a tuple of its values."""

    def read(value: object, folder: Path) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or not all(isinstance(each, Mapping) for each in value):
            raise SettingError("must be a list of tables")
        problems: list[tuple[str, str]] = []
        found = [_read_table(item, each, folder, f"[{index}]", problems) for index, each in enumerate(value)]
        if problems:
            raise SettingError(inner=tuple(problems))
        return tuple(found)

    return Kind("a list of tables", read, bare=False, show=_show_tables, item=item)


def named_tables(item: type[Section]) -> Kind:
    """Tables with the keys of ``item`` by the names that the operator gives them, as a mapping of its values."""

    def read(value: object, folder: Path) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise SettingError("must be tables with a name each")
        problems: list[tuple[str, str]] = []
        found = {}
        for name, each in value.items():
            if not _NAME.fullmatch(name):
                problems.append((f".{name}", "must have a name of 1 to 32 lower-case letters, digits or dashes"))
            elif not isinstance(each, Mapping):
                problems.append((f".{name}", "must be a table"))
            else:
                found[name] = _read_table(item, each, folder, f".{name}", problems)
        if problems:
            raise SettingError(inner=tuple(problems))
        return found

    def show(values: Mapping[str, Any]) -> str:
        return f"{{{', '.join(f'{name} = {_show_table(each)}' for name, each in values.items())}}}"

    return Kind("tables with a name each", read, bare=False, show=show, item=item, named=True)


def table_of(kind: Kind) -> Kind:
    """A table with any keys, whose values are all of one kind."""

    def read(value: object, folder: Path) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise SettingError("must be a table")
        problems, found = [], {}
        for name, each in value.items():
            try:
                found[name] = kind.read(each, folder)
            except SettingError as problem:
                problems.append((f".{name}", problem.sentence))
        if problems:
            raise SettingError(inner=tuple(problems))
        return found

    return Kind("a table", read, bare=False, show=toml)


def _show_tables(values: Sequence[Any]) -> str:
    """The tables' keys as they stand in a TOML array; what is unset is left out."""
    return f"[{', '.join(_show_table(each) for each in values)}]"


def _show_table(value: Section) -> str:
    pairs = [
        f"{name} = {shown}"
        for name, key in keys_of(type(value)).items()
        if (shown := key.show(getattr(value, key.attribute)))
    ]
    return f"{{{', '.join(pairs)}}}"


def _read_table(
    item: type[Section], values: Mapping[str, object], folder: Path, place: str, problems: list[tuple[str, str]]
) -> object:
    keys = keys_of(item)
    found = {}
    before = len(problems)
    problems += [(f"{place}.{name}", unknown(name, keys)) for name in values if name not in keys]
    for name, key in keys.items():
        if name in values:
            try:
                found[key.attribute] = key.kind.read(values[name], folder)
            except SettingError as problem:
                problems.extend(
                    (f"{place}.{name}{rest}", sentence) for rest, sentence in problem.inner or [("", problem.sentence)]
                )
        elif key.default is REQUIRED:
            problems.append((f"{place}.{name}", f"is missing: {key.explanation}"))
    return item(**found) if len(problems) == before else None
