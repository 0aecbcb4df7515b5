"""Structs: what their fields mean, and structs that show a value in another form."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec
from msgspec import Meta

S = TypeVar("S", bound=msgspec.Struct)
_ABSENT: Final = object()


def from_attributes(kind: type[S], value: object, /, **others: Any) -> S:
    """A struct with the attributes of ``value`` that are named like its fields, and with ``others``."""
    for name in kind.__struct_fields__:
        if name not in others and (found := getattr(value, name, _ABSENT)) is not _ABSENT:
            others[name] = found
    return kind(**others)


def meaning(description: str, **limits: Any) -> Meta:
    """What a field means to people; ``limits`` are its bounds, its pattern, examples, or the kind of its values."""
    return Meta(description=description, **limits)
