"""Differences between two JSON values (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from attrs import frozen

HIDDEN: Final = "***"  # what the API shows in place of a stored secret
ABSENT: Final = object()

_SECRETS: Final = frozenset({"password", "token"})


@frozen
class Difference:
    """A value that differs, by its JSON pointer; ``ABSENT`` where there is none."""

    pointer: str
    before: Any
    after: Any

    @property
    def is_secret(self) -> bool:
        """Whether the value is a secret, which is never shown."""
        return self.pointer.rpartition("/")[2] in _SECRETS

    def to_json(self) -> dict[str, Any]:
        """The difference for programs; a value that is absent is left out."""
        values = {"before": self.before, "after": self.after}
        return {
            name: HIDDEN if self.is_secret else without_secrets(value)
            for name, value in values.items()
            if value is not ABSENT
        }

    def lines(self) -> Iterator[str]:
        """The difference for people: ``- `` before the old value, ``+ `` before the new one."""
        if self.is_secret:
            yield f"  ~ {self.pointer}: a secret, which is set again"
            return
        if self.before is not ABSENT:
            yield f"  - {self.pointer}: {_written(self.before)}"
        if self.after is not ABSENT:
            yield f"  + {self.pointer}: {_written(self.after)}"


def differences(before: Any, after: Any, pointer: str = "") -> list[Difference]:
    """
    What changes from one value to another, in the order of the keys.

    Objects are compared by key, and lists of the same length by position. A stored secret, which nobody can read, is
    taken to be another one than any that is given.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [*before, *(key for key in after if key not in before)]
        return [
            each
            for key in keys
            for each in differences(before.get(key, ABSENT), after.get(key, ABSENT), f"{pointer}/{_escaped(key)}")
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [each for number, (old, new) in pairs for each in differences(old, new, f"{pointer}/{number}")]
    if before == after and type(before) is type(after):
        return []
    return [Difference(pointer, before, after)]


def without_secrets(value: Any) -> Any:
    """A value in which secrets are replaced, for printing."""
    if isinstance(value, dict):
        return {
            key: HIDDEN if key in _SECRETS and isinstance(each, str) else without_secrets(each)
            for key, each in value.items()
        }
    return [without_secrets(each) for each in value] if isinstance(value, list) else value


def _written(value: Any) -> str:
    return msgspec.json.encode(without_secrets(value)).decode()


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")  # RFC 6901
