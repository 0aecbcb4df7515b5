"""XML as in Maven's settings: the root has containers, and these have elements, which are known by their ``id``."""

from __future__ import annotations

import re
from typing import Any, Final
from xml.etree.ElementTree import Element as Node

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError, fromstring

from pkgrepo.tool_files.values import Element

_COMMENT: Final = re.compile(r"<!--.*?-->|<!\[CDATA\[.*?\]\]>", re.DOTALL)
_NEW: Final = "<settings>\n</settings>\n"
Tree = tuple[str, str, tuple[Any, ...]]


def read(text: str) -> Tree:
    """The elements of a text with their names, texts and children. :raises ValueError: it is malformed"""
    if not text.strip():
        text = _NEW
    try:
        return _tree(fromstring(text))
    except (ParseError, DefusedXmlException) as error:
        raise ValueError(str(error)) from None


def expected(before: Tree, entry: Element) -> Tree:
    """What is to be read after an element was put into a text."""
    name, value, containers = before
    new = read(entry.text)
    found = next((each for each in containers if each[0] == entry.container), None)
    if found is None:
        return name, value, (*containers, (entry.container, "", (new,)))
    if any(_is_same(each, new) for each in found[2]):
        inner = tuple(new if _is_same(each, new) else each for each in found[2])
    else:
        inner = (*found[2], new)
    return name, value, tuple((found[0], found[1], inner) if each is found else each for each in containers)


def put_element(text: str, entry: Element) -> str:
    """The text with an element in its container: in place of one with the same id, or as the last one."""
    text = text if text.strip() else _NEW
    hidden = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    empty = re.search(rf"<{entry.container}\s*/>", hidden)
    if empty:
        inner = f"<{entry.container}>\n{_indented(entry.text, 4)}  </{entry.container}>"
        return text[: empty.start()] + inner + text[empty.end() :]
    opened = re.search(rf"<{entry.container}\s*>", hidden)
    if opened is None:
        at = _line_start(hidden, hidden.rindex("</"))
        return text[:at] + f"  <{entry.container}>\n{_indented(entry.text, 4)}  </{entry.container}>\n" + text[at:]
    new, end = read(entry.text), hidden.index(f"</{entry.container}>", opened.end())
    for start, last in _elements(hidden, new[0], opened.end(), end):
        try:
            found = read(text[start:last])
        except ValueError:
            continue
        if found == new:
            return text
        if _is_same(found, new):
            column = start - _line_start(hidden, start)
            return text[:start] + _indented(entry.text, column).strip() + text[last:]
    at = _line_start(hidden, end)
    lead = "" if at < end or hidden[at - 1 : at] == "\n" else "\n"
    indent = end - at + 2 if hidden[at:end].strip() == "" else 4
    return text[:at] + lead + _indented(entry.text, indent) + text[at:]


def _elements(hidden: str, name: str, start: int, end: int) -> list[tuple[int, int]]:
    """Where the elements of a name begin and end that are in no other one of that name."""
    found, depth, began = [], 0, 0
    for tag in re.finditer(rf"<(/?){name}\b[^>]*?(/?)>", hidden[:end]):
        if tag.start() < start or tag[2]:
            continue
        if tag[1]:
            depth -= 1
            if depth == 0:
                found.append((began, tag.end()))
        else:
            began = tag.start() if depth == 0 else began
            depth += 1
    return found


def _is_same(found: Tree, new: Tree) -> bool:
    ids = [next((each[1] for each in tree[2] if each[0] == "id"), None) for tree in (found, new)]
    return found == new if ids[1] is None else found[0] == new[0] and ids[0] == ids[1]


def _line_start(text: str, at: int) -> int:
    """Where the line begins, if only blanks are before ``at``; else ``at`` itself."""
    start = text.rfind("\n", 0, at) + 1
    return start if not text[start:at].strip() else at


def _indented(text: str, columns: int) -> str:
    return "".join(f"{' ' * columns}{line}\n" for line in text.splitlines())


def _tree(node: Node) -> Tree:
    return node.tag.rpartition("}")[2], (node.text or "").strip(), tuple(map(_tree, node))
