"""
What an image has inside that gives rights to its program, by its configuration and its layers.

==============  ====================================================================================================
word            what it says of an image
==============  ====================================================================================================
``root_user``   the configuration names no user, or root: the program runs as root unless it is told otherwise
``setuid``      a program in it runs with the rights of its owner, see L{pkgrepo.archives.layers}
==============  ====================================================================================================

What no program runs as an image has nothing of that inside: a configuration without the layers' digests
(``rootfs.diff_ids``) is that of another artifact, such as a chart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from pkgrepo.archives.inside import Word
from pkgrepo.errors import Invalid
from pkgrepo.untrusted.strict_json import check_value_count, decode_json

LARGEST: Final = 4 * 1024 * 1024  # bytes of a configuration; usual ones have 10 KiB
MOST_VALUES: Final = 100_000  # in it
CONTENTS: Final[frozenset[Word]] = frozenset({"root_user", "setuid"})


def words_of_configuration(data: bytes) -> frozenset[Word] | None:
    """
    What the configuration of an image says of it; None if it is that of another artifact.

    :raises Invalid: it cannot be read
    """
    check_value_count(data, MOST_VALUES, "the configuration")
    found = decode_json(data)
    if not isinstance(found, Mapping):
        raise Invalid("the configuration is no object")
    if not any(isinstance(each, Mapping) and [*_values(each, "diff_ids")] for each in _values(found, "rootfs")):
        return None
    users = [user for each in _values(found, "config") if isinstance(each, Mapping) for user in _values(each, "user")]
    return frozenset({"root_user"} if not users or any(map(_is_root, users)) else ())


def _values(found: Mapping[str, Any], key: str) -> Iterator[Any]:
    """All values of a key: programs in Go ignore the case of keys, and which of several they use is not asked."""
    return (value for name, value in found.items() if name.casefold() == key)


def _is_root(user: object) -> bool:
    """Whether a user, with a group or without, is root; ``00`` is, too."""
    name = user.partition(":")[0].strip() if isinstance(user, str) else ""
    with suppress(ValueError):
        return int(name) == 0
    return name in ("", "root")
