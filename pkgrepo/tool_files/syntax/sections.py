"""Files of lines ``KEY = VALUE``, with or without sections: .npmrc, INI and TOML."""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from pkgrepo.tool_files.values import Item, Scalar, Setting, Syntax

_HEADER: Final = re.compile(r"\s*(\[\[?)([^\]]*)\]")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_MOST_LINES: Final = 1000  # of one value


@frozen
class Section:
    """A section: ``header`` is its first line, -1 before the first header; ``end`` the line after its last one."""

    name: tuple[str, ...]
    header: int
    end: int
    is_item: bool = False


def read(syntax: Syntax, text: str) -> dict[str, Any]:
    """The keys of a text. :raises ValueError: it is malformed"""
    if syntax is Syntax.TOML:
        return tomllib.loads(text)
    if syntax is Syntax.LINES:
        pairs = (line.partition("=") for line in text.splitlines() if _is_content(line))
        return {key.strip(): value.strip() for key, _, value in pairs}
    parser = configparser.RawConfigParser(strict=True, default_section="")
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise ValueError(str(error)) from None
    return {name: dict(parser.items(name)) for name in parser.sections()}


def put_setting(syntax: Syntax, text: str, setting: Setting) -> str:
    """The text with a setting: in the line of the key that is there, or in a new one."""
    lines = text.splitlines(keepends=True)
    *around, key = setting.path
    line = f"{_key(syntax, key)}{_equals(syntax)}{_value(syntax, setting.value)}\n"
    section = _find(syntax, lines, tuple(around))
    if section is None:
        return _joined(lines, [f"[{_name(syntax, around)}]\n", line])
    found = _find_key(syntax, lines, section, key)
    if found is not None:
        lines[found[0] : found[1]] = [line]
        return "".join(lines)
    at = _last_content(lines, section)
    new = [line] if at or not lines else [line, "\n"]  # before the first header of TOML
    lines[at:at] = new
    return "".join(lines)


def put_item(syntax: Syntax, text: str, item: Item) -> str:
    """The text with an item: of a list of words in INI, of an array of tables in TOML."""
    lines = text.splitlines(keepends=True)
    if syntax is Syntax.INI:
        *around, key = item.path
        section = _find(syntax, lines, tuple(around))
        found = None if section is None else _find_key(syntax, lines, section, key)
        if found is None:
            return put_setting(syntax, text, Setting(item.path, str(item.value)))
        words = "".join(lines[found[0] : found[1]]).partition("=")[2].split()
        if item.value not in words:
            lines.insert(found[1], f"    {item.value}\n")
        return "".join(lines)
    assert isinstance(item.value, Mapping), "TOML has arrays of tables here"
    new = [f"[[{_name(syntax, item.path)}]]\n"]
    new += [f"{_key(syntax, key)} = {_value(syntax, value)}\n" for key, value in item.value.items()]
    there = [each for each in _sections(syntax, lines) if each.is_item and each.name == item.path]
    for each in there:
        if _is_same(lines, each, item):
            end = _last_content(lines, each)
            lines[each.header : end] = new
            return "".join(lines)
    if there and item.first:
        at = there[0].header
        lines[at:at] = [*new, "\n"]
        return "".join(lines)
    return _joined(lines, new)


def _joined(lines: list[str], new: Sequence[str]) -> str:
    gap = ["\n"] if lines and lines[-1].strip() else []
    return "".join([*lines, *gap, *new])


def _is_same(lines: Sequence[str], section: Section, item: Item) -> bool:
    """Whether the table is the item; one that cannot be read alone is not."""
    assert isinstance(item.value, Mapping)
    try:
        found = tomllib.loads("".join(lines[section.header + 1 : section.end]))
    except tomllib.TOMLDecodeError:
        return False
    return bool(found.get(item.known_by) == item.value[item.known_by])


def _sections(syntax: Syntax, lines: Sequence[str]) -> list[Section]:
    heads: list[tuple[int, tuple[str, ...], bool]] = [(-1, (), False)]
    for number, line in enumerate(lines):
        found = None if syntax is Syntax.LINES else _HEADER.match(line)
        if found is not None:
            name = _names(found[2]) if syntax is Syntax.TOML else (found[2],)
            heads.append((number, name, found[1] == "[["))
    ends = [number for number, _, _ in heads[1:]] + [len(lines)]
    return [Section(name, number, end, is_item) for (number, name, is_item), end in zip(heads, ends, strict=True)]


def _names(header: str) -> tuple[str, ...]:
    """The parts of the name of a table of TOML; none of one that is malformed."""
    try:
        found = tomllib.loads(f"[{header}]")
    except tomllib.TOMLDecodeError:
        return ("",)
    names = []
    while found:
        [(name, found)] = found.items()
        names.append(name)
    return tuple(names)


def _find(syntax: Syntax, lines: Sequence[str], name: tuple[str, ...]) -> Section | None:
    return next((each for each in _sections(syntax, lines) if each.name == name and not each.is_item), None)


def _find_key(syntax: Syntax, lines: Sequence[str], section: Section, key: str) -> tuple[int, int] | None:
    """The first line of a key, the last one if it stands there more than once, and the line after its value."""
    sign = "=:" if syntax is Syntax.INI else "="
    names = rf"(?:{re.escape(key)}|\"{re.escape(key)}\"|'{re.escape(key)}')"
    wanted = re.compile(rf"\s*{names}\s*[{sign}]", re.IGNORECASE if syntax is Syntax.INI else 0)
    found = None
    for number in range(section.header + 1, section.end):
        if wanted.match(lines[number]) and not (syntax is Syntax.INI and lines[number][0].isspace()):
            found = number, _end_of_value(syntax, lines, number, section.end)
    return found


def _end_of_value(syntax: Syntax, lines: Sequence[str], number: int, end: int) -> int:
    after = number + 1
    if syntax is Syntax.INI:
        while after < end and lines[after].strip() and lines[after][0].isspace():
            after += 1
    elif syntax is Syntax.TOML:
        for last in range(number + 1, min(len(lines), number + _MOST_LINES) + 1):
            try:
                tomllib.loads("".join(lines[number:last]))
            except tomllib.TOMLDecodeError:
                continue
            return last
    return after


def _last_content(lines: Sequence[str], section: Section) -> int:
    """The line after the last one of a section that is not blank; comments at its end may be about the next one."""
    for number in range(section.end - 1, section.header, -1):
        if _is_content(lines[number]) or (lines[number].strip() and section.end == len(lines)):
            return number + 1
    return section.header + 1


def _is_content(line: str) -> bool:
    return bool(line.strip()) and line.lstrip()[0] not in "#;"


def _equals(syntax: Syntax) -> str:
    return "=" if syntax is Syntax.LINES else " = "


def _key(syntax: Syntax, key: str) -> str:
    return key if syntax is not Syntax.TOML or _BARE.fullmatch(key) else json.dumps(key)


def _name(syntax: Syntax, names: Sequence[str]) -> str:
    return ".".join(_key(syntax, each) for each in names)


def _value(syntax: Syntax, value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if syntax is Syntax.TOML else value
