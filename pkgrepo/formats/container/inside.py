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
from pkgrepo.untrusted.go_json import Keys, values_of, with_keys
from pkgrepo.untrusted.strict_json import check_value_count, decode_json

LARGEST: Final = 4 * 1024 * 1024  # bytes of a configuration; usual ones have 10 KiB
MOST_VALUES: Final = 100_000  # in it
MOST_WORDS: Final = 50  # of the program that an image runs, and its arguments
LONGEST_WORD: Final = 500  # characters of one
_RUN: Final[Keys] = {"config": {"Entrypoint": None, "Cmd": None}}
CONTENTS: Final[frozenset[Word]] = frozenset({"root_user", "setuid"})


@frozen
class Configuration:
    """
    What a configuration says. Unless it ``is_image``, nothing runs it.

    ``words`` are those of the table above. ``labels`` are None if programs do not agree on them, or run no such image.
    ``runs`` is the program that it runs, with its arguments (``Entrypoint`` and ``Cmd``), as programs in Go read it.
    """

    is_image: bool
    words: frozenset[Word]
    labels: Mapping[str, str] | None
    runs: tuple[str, ...] = ()


def read_configuration(data: bytes) -> Configuration:
    """
    What the configuration of an image says.

    :raises Invalid: it cannot be read, or has one key twice in an object: what programs take of that differs
    """
    check_value_count(data, MOST_VALUES, "the configuration")
    found = decode_json(data)
    if not isinstance(found, Mapping):
        raise Invalid("the configuration is no object")
    settings = values_of([found], "config")
    exact = found.get("config")
    users = values_of(settings, "User")
    named = isinstance(exact, Mapping) and exact.get("User") is not None
    return Configuration(
        is_image=bool(values_of(values_of([found], "rootfs"), "diff_ids")),
        words=frozenset({"root_user"} if not named or any(map(_is_root, users)) else ()),
        labels=_joined(settings),
        runs=_runs(found),
    )


def find_configuration(data: bytes) -> Configuration | None:
    """
    What the configuration of an image says of it; None if it is that of another artifact.

    :raises Invalid: it cannot be read
    """
    found = read_configuration(data)
    return found if found.is_image else None


def _runs(found: Any) -> tuple[str, ...]:
    settings = with_keys(found, _RUN)["config"] if values_of([found], "config") else None
    lists = [settings.get(each) for each in _RUN["config"]] if isinstance(settings, Mapping) else []
    words = [word[:LONGEST_WORD] for each in lists if isinstance(each, list) for word in each if isinstance(word, str)]
    return tuple(words[:MOST_WORDS])


def _joined(settings: Sequence[Any]) -> Mapping[str, str] | None:
    """The labels in all that may be the settings of an image; None if they contradict each other, or are none."""
    found: dict[str, str] = {}
    if not all(each is None or isinstance(each, Mapping) for each in settings):
        return None
    for labels in values_of(settings, "Labels"):
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
