"""JSON: a text is written anew with its own indentation, and keys in their order."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from pkgrepo.tool_files.values import Setting

_INDENT: Final = re.compile(r"\{\n([ \t]+)")


def read(text: str) -> dict[str, Any]:
    """The keys of a text. :raises ValueError: it is malformed, or no object"""
    found = json.loads(text) if text.strip() else {}
    if not isinstance(found, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - the text is wrong, not a type
    return found


def put_setting(text: str, setting: Setting) -> str:
    """The text with a key. :raises ValueError: a key on the way to it is no object"""
    found = read(text)
    *around, key = setting.path
    inner = found
    for name in around:
        inner = inner.setdefault(name, {})
        if not isinstance(inner, dict):
            raise ValueError(f"{name} is no object")  # noqa: TRY004
    if inner.get(key) == setting.value:
        return text
    inner[key] = setting.value
    indent = _INDENT.search(text)
    return json.dumps(found, indent=indent[1] if indent else "\t", ensure_ascii=False) + "\n"
