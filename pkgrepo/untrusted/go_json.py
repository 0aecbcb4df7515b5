"""
Objects of JSON as programs written in Go read them (``encoding/json``), such as docker, containerd and podman.

They ignore the case of keys. Of several that are the same key to them the last one counts, and objects are joined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Keys = Mapping[str, Any]  # the keys that a program knows; below one that has objects, also in a list, those of these


def values_of(objects: Sequence[Any], key: str) -> Sequence[Any]:
    """All values of a key, in whatever case, of those of some values that are objects."""
    wanted = folded(key)
    return [
        value for each in objects if isinstance(each, Mapping) for name, value in each.items() if folded(name) == wanted
    ]


def folded(name: str) -> str:
    """A key as Go compares it with another one: by single characters, of which two that are not ASCII are k and s."""
    return name.lower().replace("\u017f", "s")


def with_keys(value: Any, keys: Keys) -> Any:
    """
    A value whose objects have the ``keys`` alone, spelt as they are there. What is no object stays as it is.

    Objects in a list are read; those in lists of lists, which may be nested deeply, are what no program knows.
    """
    if isinstance(value, list):
        return [with_keys(each, keys) if isinstance(each, Mapping) else each for each in value]
    if not isinstance(value, Mapping):
        return value
    known, found = {folded(key): key for key in keys}, dict[str, Any]()
    for name, each in value.items():
        key = known.get(folded(name))
        if key is None:
            continue
        before, after = found.get(key), with_keys(each, keys[key]) if keys[key] else each
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            after = {**before, **after}
        if after is not None or not isinstance(before, str):  # null leaves a text as it is
            found[key] = after
    return found
