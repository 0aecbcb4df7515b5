"""
What rights ask about a format: who owns a name, how bindings are written, which bearer tokens its clients have.

Transactions, and queries of all repositories, ask it with nothing of the server but a row of a repository. So formats
are made known here once, when the server makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from attrs import frozen

from pkgrepo.model import Repository


@frozen(kw_only=True, eq=False)
class FormatRights:
    """
    How projects own packages of a format, by their names.

    ``patterns`` are the bindings that match a package (a key), the most specific first; ``claim`` is the one that its
    first pusher makes. ``project_key`` is the key of the project that owns a package without a binding, by its name.

    ``stem`` is what is compared of a binding, and a name that it matches where that is not its stem, or an empty text.
    ``forms`` is how people write bindings, as a part of a sentence.

    Packages may be ``images``: these are addressed below ``/v2/`` for all repositories together, and clients ask for
    bearer tokens by scope (https://distribution.github.io/distribution/spec/auth/token/): one without opens nothing.
    """

    patterns: Callable[[str], tuple[str, ...]] = lambda package: (package,)
    claim: Callable[[str], str] = lambda package: package
    project_key: Callable[[str], str] | None = None
    stem: Callable[[str], tuple[str, str]] = lambda pattern: (pattern, "")
    forms: str = "the whole name of a package"
    images: bool = False


_KNOWN: Final[dict[str, FormatRights]] = {}


def make_known(rights: Mapping[str, FormatRights]) -> None:
    """Say what is asked about formats, by their names."""
    _KNOWN.update(rights)


def rights_of(format_name: str) -> FormatRights:
    """What is asked about a format. :raises LookupError: nothing was said of it, so that nobody may do anything"""
    if format_name not in _KNOWN:
        raise LookupError(f"there is no format {format_name!r}")
    return _KNOWN[format_name]


def has_images(repository: Repository) -> bool:
    """Whether the packages of a repository are images; one that is not made yet may have no format."""
    return repository.format != "" and rights_of(repository.format).images


def prefixes(name: str, separator: str) -> tuple[str, ...]:
    """A name and what is before each separator in it, the longest first."""
    parts = name.split(separator)
    return tuple(separator.join(parts[:count]) for count in range(len(parts), 0, -1))


# Of names whose parts have hyphens between them: a package, and those that begin alike.
HYPHENATED: Final = FormatRights(
    patterns=lambda package: (package, *(f"{each}-*" for each in prefixes(package, "-")[1:])),
    stem=lambda pattern: (pattern.removesuffix("-*"), ""),
    forms="acme (one package) or acme-* (those that begin so)",
)
