"""
Puts what a tool needs into the text of its file.

The rest of the text stays byte for byte. The result is read again, and must differ from the text in nothing but the
entries: a file that is written in a way which this does not know is refused, and not damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import SequenceMatcher
from typing import Any, Final

from pkgrepo.errors import Conflict
from pkgrepo.tool_files.syntax import json_text, netrc, sections, xml_text, yaml_lines
from pkgrepo.tool_files.values import Element, Entry, Item, Setting, Syntax, ToolFile, Whole

_COMMENTS: Final[Mapping[Syntax, str]] = {
    Syntax.LINES: "# {}\n",
    Syntax.INI: "# {}\n",
    Syntax.TOML: "# {}\n",
    Syntax.YAML: "# {}\n",
}

_READERS: Final[Mapping[Syntax, Callable[[str], Any]]] = {
    Syntax.YAML: yaml_lines.read,
    Syntax.JSON: json_text.read,
    Syntax.NETRC: netrc.read,
    Syntax.XML: xml_text.read,
    Syntax.WHOLE: str,
}
_SETTERS: Final[Mapping[Syntax, Callable[[str, Setting], str]]] = {
    Syntax.YAML: yaml_lines.put_setting,
    Syntax.JSON: json_text.put_setting,
    Syntax.NETRC: netrc.put_setting,
}


def render(file: ToolFile) -> str:
    """The text of a file that has nothing else in it."""
    return edit(file, "")


def edit(file: ToolFile, text: str, mark: str = "") -> str:
    """
    The text with the entries of the file; the ``mark`` stands as a comment before lines that are new.

    :raises Conflict: the text cannot be read, or is written in a way that cannot be changed safely
    """
    newline = "\r\n" if "\r\n" in text and text.count("\n") == text.count("\r\n") else "\n"
    plain = text.replace("\r\n", "\n") if newline == "\r\n" else text
    if plain and not plain.endswith("\n"):
        plain += "\n"
    try:
        before = _read(file.syntax, plain)
    except ValueError as error:
        raise Conflict(f"it cannot be read: {str(error).splitlines()[0]}") from None
    if file.syntax is Syntax.WHOLE:
        [entry] = file.entries
        assert isinstance(entry, Whole)
        if plain and plain != entry.text:
            raise Conflict("it is not as it was written, and has nothing else in it that could stay")
        return text if plain == entry.text else entry.text
    changed = _changed(file, before, plain, mark)
    return text if changed == plain else changed.replace("\n", newline)


def _changed(file: ToolFile, before: Any, plain: str, mark: str) -> str:
    """The text with the entries, after it was read again. :raises Conflict: it is not what it should be"""
    changed = plain
    try:
        for entry in file.entries:
            changed = _put(file.syntax, changed, entry)
        if mark:
            changed = _marked(file.syntax, plain, changed, mark)
        for entry in file.entries:
            before = _expected(file.syntax, before, entry)
        safe = _read(file.syntax, changed) == before
    except (ValueError, TypeError, KeyError):
        safe = False
    if not safe:
        raise Conflict("it is written in a way that cannot be changed safely")
    return changed


def _read(syntax: Syntax, text: str) -> Any:
    if syntax in _READERS:
        return _READERS[syntax](text)
    return sections.read(syntax, text)


def _put(syntax: Syntax, text: str, entry: Entry) -> str:
    if isinstance(entry, Setting):
        if syntax in _SETTERS:
            return _SETTERS[syntax](text, entry)
        return sections.put_setting(syntax, text, entry)
    if isinstance(entry, Element):
        return xml_text.put_element(text, entry)
    assert isinstance(entry, Item)
    return yaml_lines.put_item(text, entry) if syntax is Syntax.YAML else sections.put_item(syntax, text, entry)


def _expected(syntax: Syntax, before: Any, entry: Entry) -> Any:
    """What is to be read after the change, as the change itself does not make it."""
    if isinstance(entry, Element):
        return xml_text.expected(before, entry)
    assert isinstance(entry, Setting | Item)
    *around, key = entry.path
    if isinstance(entry, Setting):
        return _with(before, around, {key: _told(syntax, entry.value)})
    found = before
    for name in entry.path:
        found = found.get(name) or {} if isinstance(found, dict) else {}
    if syntax is Syntax.INI:
        words = str(found or "").split()
        kept = str(found or "")
        new = kept if entry.value in words else f"{kept}\n{entry.value}" if kept else entry.value
        return _with(before, around, {key: new})
    listed = list(found) if isinstance(found, list) else []
    value = dict(entry.value) if isinstance(entry.value, Mapping) else entry.value
    for number, each in enumerate(listed):
        same = each.get(entry.known_by) == value[entry.known_by] if isinstance(value, dict) else each == value
        if same:
            listed[number] = value
            return _with(before, around, {key: listed})
    return _with(before, around, {key: [value, *listed] if entry.first else [*listed, value]})


def _with(values: Any, around: list[str], new: Mapping[str, Any]) -> Any:
    values = dict(values or {})
    if not around:
        return {**values, **new}
    return {**values, around[0]: _with(values.get(around[0]), around[1:], new)}


def _told(syntax: Syntax, value: object) -> object:
    if isinstance(value, bool) and syntax in (Syntax.LINES, Syntax.INI):
        return "true" if value else "false"
    return value


def _marked(syntax: Syntax, before: str, after: str, mark: str) -> str:
    """The text with a comment before each run of new lines."""
    comment = _COMMENTS.get(syntax)
    if comment is None:
        return after
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    found: list[str] = []
    for kind, _, _, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        run = new[start:end]
        if kind == "insert":
            blank = next((number for number, line in enumerate(run) if line.strip()), 0)
            inner = run[blank][: len(run[blank]) - len(run[blank].lstrip())]
            # the value of a key of INI goes on in lines that are indented: a comment of its own would end none
            run[blank:blank] = [inner + comment.format(mark)]
        found += run
    return "".join(found)
