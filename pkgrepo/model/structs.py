"""Makes structs that show a value in another form."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


def from_attributes(kind: type[S], value: object, /, **others: Any) -> S:
    """A struct with the attributes of ``value`` that are named like its fields, and with ``others``."""
    for name in kind.__struct_fields__:
        if name not in others and hasattr(value, name):
            others[name] = getattr(value, name)
    return kind(**others)
