"""YAML whose keys at the top are scalars or lists, as the files of tools are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pkgrepo.tool_files.values import Item, Scalar, Setting

# A key that needs no quotes; RubyGems and Bundler know none around keys, which may be addresses.
_PLAIN: Final = re.compile(r"[A-Za-z_](?:[A-Za-z0-9_./%+~@-]|:(?=\S))*")
_INDENT: Final = re.compile(r"\s*")


def read(text: str) -> dict[str, Any]:
    """The keys of a text. :raises ValueError: it is malformed, or has no keys"""
    found = _load(text)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ValueError("it is no mapping")  # noqa: TRY004 - the text is wrong, not a type
    return found


def put_setting(text: str, setting: Setting) -> str:
    """The text with a key at the top or below one: in the lines of the key that is there, or in new ones."""
    lines = text.splitlines(keepends=True)
    *around, key = setting.path
    start, end, indent = 0, len(lines), ""
    for depth, each in enumerate(around):
        found = _find(lines, each, start, end, indent)
        if found is None:
            new = [f"{indent}{'  ' * more}{name}:\n" for more, name in enumerate(around[depth:])]
            inner = indent + "  " * (len(around) - depth)
            lines[end:end] = [*new, f"{inner}{_key(key)}: {_scalar(setting.value)}\n"]
            return "".join(lines)
        start, end = found[0] + 1, found[1]
        indent = _indent_of(lines[start]) if start < end else f"{indent}  "
    found = _find(lines, key, start, end, indent)
    at, last = found or (end, end)
    lines[at:last] = [f"{indent}{_key(key)}: {_scalar(setting.value)}\n"]
    return "".join(lines)


def put_item(text: str, item: Item) -> str:
    """The text with an item of a list at the top; an item that is known by the same value is replaced."""
    lines = text.splitlines(keepends=True)
    [key] = item.path
    found = _find(lines, key, 0, len(lines), "")
    if found is None:
        indent = "" if key.startswith(":") else "  "
        return "".join([*lines, f"{key}:\n", *_item(item.value, indent)])
    start, end = found
    items = _items(lines, start + 1, end)
    if not items:
        # an empty list, or one in brackets on the line of the key
        listed = _load("".join(lines[start:end]))[key] or []
        rest = [each for each in listed if not _is_same(each, item)]
        values = [item.value, *rest] if item.first else [*rest, item.value]
        lines[start:end] = [f"{key}:\n", *(line for each in values for line in _item(each, "  "))]
        return "".join(lines)
    indent = _indent_of(lines[items[0][0]])
    for at, last in items:
        [value] = _load("".join(lines[at:last]))
        if _is_same(value, item):
            if value != item.value:
                lines[at:last] = _item(item.value, indent)
            return "".join(lines)
    place = items[0][0] if item.first else items[-1][1]
    lines[place:place] = _item(item.value, indent)
    return "".join(lines)


def _load(text: str) -> Any:
    """The value of a text. :raises ValueError: it is malformed"""
    import yaml  # noqa: PLC0415 - a server starts without it

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def _is_same(value: Any, item: Item) -> bool:
    if isinstance(item.value, Mapping):
        return isinstance(value, dict) and value.get(item.known_by) == item.value[item.known_by]
    return bool(value == item.value)


def _find(lines: Sequence[str], key: str, start: int, end: int, indent: str) -> tuple[int, int] | None:
    """The line of a key, and the line after what belongs to it."""
    name = re.escape(key)
    wanted = re.compile(rf"{indent}(?:{name}|\"{name}\"|'{name}')\s*:(?:\s|$)")
    for number in range(start, end):
        if wanted.match(lines[number]):
            last = number + 1
            for after in range(number + 1, end):
                line = lines[after]
                # a list may begin at the column of its key
                if not line.strip() or line.lstrip().startswith("#"):
                    continue
                if len(_indent_of(line)) <= len(indent) and not line[len(indent) :].startswith(("- ", "-\n")):
                    break
                last = after + 1
            return number, last
    return None


def _items(lines: Sequence[str], start: int, end: int) -> list[tuple[int, int]]:
    """The first line of each item of a list, and the line after its last one."""
    marks = [number for number in range(start, end) if lines[number].lstrip().startswith(("- ", "-\n"))]
    if not marks:
        return []
    indent = min(len(_indent_of(lines[number])) for number in marks)
    marks = [number for number in marks if len(_indent_of(lines[number])) == indent]
    return list(zip(marks, [*marks[1:], end], strict=True))


def _item(value: object, indent: str) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{indent}- {_scalar(value)}\n"]  # type: ignore[arg-type]
    signs = ["- ", *["  "] * (len(value) - 1)]
    pairs = zip(signs, value.items(), strict=True)
    return [f"{indent}{sign}{_key(str(key))}: {_scalar(each)}\n" for sign, (key, each) in pairs]


def _indent_of(line: str) -> str:
    found = _INDENT.match(line)
    return found[0].rstrip("\n") if found else ""


def _key(key: str) -> str:
    return key if _PLAIN.fullmatch(key) or key.startswith(":") else json.dumps(key, ensure_ascii=False)


def _scalar(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) and value.startswith(":") else json.dumps(value, ensure_ascii=False)
