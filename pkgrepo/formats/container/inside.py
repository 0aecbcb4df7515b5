"""
What the configuration of an image says of it, for rules, and what of that gives rights to its program.

==============  ====================================================================================================
word            what it says of an image
==============  ====================================================================================================
``root_user``   the configuration names no user, or root: the program runs as root unless it is told otherwise
``setuid``      a program in it runs with the rights of its owner, see L{pkgrepo.archives.layers}
==============  ====================================================================================================

Docker, containerd and podman are written in Go, which ignores the case of keys and joins what keys of one name have;
other programs want the keys as they are specified. What any of them could read counts. A configuration without the
layers' digests (``rootfs.diff_ids``) is that of another artifact, such as a chart, which no program runs as an image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from attrs import frozen

from pkgrepo.archives.inside import Word
from pkgrepo.errors import Invalid
from pkgrepo.untrusted.strict_json import check_value_count, decode_json

LARGEST: Final = 4 * 1024 * 1024  # bytes of a configuration; usual ones have 10 KiB
MOST_VALUES: Final = 100_000  # in it
CONTENTS: Final[frozenset[Word]] = frozenset({"root_user", "setuid"})


@frozen
class Configuration:
    """
    What a configuration says. Unless it ``is_image``, nothing runs it.

    ``words`` are those of the table above. ``labels`` are None if programs do not agree on them, or run no such image.
    """

    is_image: bool
    words: frozenset[Word]
    labels: Mapping[str, str] | None


def read_configuration(data: bytes) -> Configuration:
    """
    What the configuration of an image says.

    :raises Invalid: it cannot be read, or has one key twice in an object: what programs take of that differs
    """
    check_value_count(data, MOST_VALUES, "the configuration")
    found = decode_json(data)
    if not isinstance(found, Mapping):
        raise Invalid("the configuration is no object")
    settings = _values([found], "config")
    exact = found.get("config")
    users = _values(settings, "User")
    named = isinstance(exact, Mapping) and exact.get("User") is not None
    return Configuration(
        is_image=bool(_values(_values([found], "rootfs"), "diff_ids")),
        words=frozenset({"root_user"} if not named or any(map(_is_root, users)) else ()),
        labels=_joined(settings),
    )


def words_of_configuration(data: bytes) -> frozenset[Word] | None:
    """
    What the configuration of an image says of it; None if it is that of another artifact.

    :raises Invalid: it cannot be read
    """
    found = read_configuration(data)
    return found.words if found.is_image else None


def _values(objects: Sequence[Any], key: str) -> Sequence[Any]:
    """All values of a key, in whatever case, of those of some values that are objects."""
    folded = key.lower()
    return [
        value
        for each in objects
        if isinstance(each, Mapping)
        for name, value in each.items()
        if _folded(name) == folded
    ]


def _folded(name: str) -> str:
    """A key as Go compares it with another one: by single characters, of which two that are not ASCII are k and s."""
    return name.lower().replace("\u017f", "s")


def _joined(settings: Sequence[Any]) -> Mapping[str, str] | None:
    """The labels in all that may be the settings of an image; None if they contradict each other, or are none."""
    found: dict[str, str] = {}
    if not all(each is None or isinstance(each, Mapping) for each in settings):
        return None
    for labels in _values(settings, "Labels"):
        if labels is not None and not isinstance(labels, Mapping):
            return None
        for name, value in _texts(labels or {}):
            if value is None or found.setdefault(name, value) != value:
                return None
    return found


def _texts(labels: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """The labels in an object, with None for one that is no text; what is null is an empty one to Go."""
    for name, value in labels.items():
        yield name, "" if value is None else value if isinstance(value, str) else None


def _is_root(user: object) -> bool:
    """Whether a user, with a group or without, is root; ``00`` is, too."""
    name = user.partition(":")[0].strip() if isinstance(user, str) else ""
    with suppress(ValueError):
        return int(name) == 0
    return name in ("", "root")
