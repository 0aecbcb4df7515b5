"""The file .netrc: words, of which ``machine HOST`` begins an entry."""

from __future__ import annotations

import re
from typing import Final

from pkgrepo.tool_files.values import Setting

_WORD: Final = re.compile(r"\S+")
_KEYS: Final = ("login", "password", "account")


def read(text: str) -> dict[str, dict[str, str]]:
    """The keys of each machine, the first of each name; "default" has an empty one. Macros are passed over."""
    found: dict[str, dict[str, str]] = {}
    for host, entry in _entries(text):
        found.setdefault(host, {key: text[start:end] for key, (start, end) in entry.items() if key in _KEYS})
    return found


def put_setting(text: str, setting: Setting) -> str:
    """The text with a key of a machine; a new machine comes before the default, which ends what clients read."""
    host, key = setting.path
    value = str(setting.value)
    for name, entry in _entries(text):
        if name == host:
            if key in entry:
                start, end = entry[key]
                return text[:start] + value + text[end:]
            at = max(last for _, last in entry.values())
            return f"{text[:at]} {key} {value}{text[at:]}"
    line = f"machine {host} {key} {value}\n"
    default = re.search(r"(?m)^[ \t]*default\b", text)
    at = default.start() if default else len(text)
    return text[:at] + line + text[at:]


def _entries(text: str) -> list[tuple[str, dict[str, tuple[int, int]]]]:
    """Each machine, with the places of the values of its keys."""
    blanked = re.sub(r"(?m)^[ \t]*#.*$", lambda found: " " * len(found[0]), text)
    # a macro ends at an empty line
    blanked = re.sub(r"(?ms)^[ \t]*macdef\b.*?(?:\n\n|\Z)", lambda found: re.sub(r"\S", " ", found[0]), blanked)
    words = [(found.start(), found.end()) for found in _WORD.finditer(blanked)]
    entries: list[tuple[str, dict[str, tuple[int, int]]]] = []
    number = 0
    while number < len(words):
        word = text[slice(*words[number])]
        if word == "default":
            entries.append(("", {}))
        elif number + 1 < len(words):
            place = words[number + 1]
            if word == "machine":
                entries.append((text[slice(*place)], {"machine": place}))
                number += 1
            elif word in _KEYS and entries:
                entries[-1][1].setdefault(word, place)
                number += 1
        number += 1
    return entries
