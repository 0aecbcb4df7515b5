"""
Patterns of names: the limits of tokens, and grants.

They are those of ``fnmatch``: ``*`` also matches slashes, as in ``@acme/*`` and ``main/*``, ``?`` is one character, and
``[ab]`` one of some. Patterns of repositories are compared with ``storage/name`` and ignore case, as these names do.

What is said of two patterns is said of every name, also of those that nobody uses yet. It errs on the safe side:
L{covers} is true only if that is certain, and L{may_meet} is false only if that is certain.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

from pkgrepo.errors import Invalid

LONGEST: Final = 200  # characters of a pattern of repositories; no path is longer
_WILD: Final = re.compile(r"[*?\[]")
_PIECE: Final = re.compile(r"\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)
_SET: Final = r"\[!?[A-Za-z0-9._-]+\]"
_PART: Final = rf"(?:[A-Za-z0-9*?]|{_SET})(?:[A-Za-z0-9._*?-]|{_SET})*"  # see L{pkgrepo.model.repositories.NAME}
_REPOSITORIES: Final = re.compile(rf"{_PART}(?:/{_PART})?")


def is_pattern(text: str) -> bool:
    """Whether a text has wildcards; one without them is the name of one repository or package."""
    return _WILD.search(text) is not None


def check_repositories(text: str, pointer: str) -> str:
    """
    Return a pattern of repositories as it is compared and stored, in lower case.

    :raises Invalid: it is empty or too long, or no ``storage/name`` can match it; ``pointer`` is its place
    """
    if not text:
        raise Invalid("an empty pattern matches no repository", pointer)
    if len(text) > LONGEST:
        raise Invalid(f"a pattern of repositories has at most {LONGEST} characters", pointer)
    if _REPOSITORIES.fullmatch(text) is None:
        raise Invalid(
            f"{text!r} matches no repository: a pattern is storage/name, with * for any characters, ? for one, and [ab]"
            " for one of some",
            pointer,
        )
    return text.lower()


@lru_cache(maxsize=4096)
def matcher(pattern: str) -> Callable[[str], object]:
    """The function that tells whether a pattern matches a name, whole."""
    return re.compile(fnmatch.translate(pattern)).match


def matching(patterns: Iterable[str], name: str) -> list[str]:
    """Those of the patterns that match a name, which may be very many: few are compiled."""
    return [each for each in patterns if _has_ends_of(each, name) and matcher(each)(name)]


def _has_ends_of(pattern: str, name: str) -> bool:
    """Whether a name begins and ends as a pattern does, before its first wildcard and after its last one."""
    first = _WILD.search(pattern)
    begin = pattern if first is None else pattern[: first.start()]
    return name.startswith(begin) and name.endswith(pattern[max(map(pattern.rfind, "*?]")) + 1 :])


@lru_cache(maxsize=4096)
def exactness(pattern: str) -> int:
    """How exact a pattern is: the number of its characters that stand for themselves."""
    return sum(map(_is_plain, _PIECE.findall(pattern)))


def most_exact(patterns: Iterable[str], name: str) -> list[str]:
    """The most exact of the patterns that match a name, sorted; none if none does."""
    found = sorted(matching(patterns, name))
    best = max(map(exactness, found), default=0)
    return [each for each in found if exactness(each) == best]


@lru_cache(maxsize=4096)
def covers(wide: str, narrow: str) -> bool:
    """Whether every name that ``narrow`` matches is certainly matched by ``wide``."""
    if wide == narrow:
        return True
    if not is_pattern(narrow):
        return matcher(wide)(narrow) is not None
    if any(not _is_plain(each) and each != "*" for each in _PIECE.findall(wide)):
        return False
    # its wildcards as characters that are in no pattern, so that only a * takes them
    text = "".join(each if _is_plain(each) else "\0" for each in _PIECE.findall(narrow))
    return matcher(wide)(text) is not None


@lru_cache(maxsize=4096)
def may_meet(one: str, other: str) -> bool:
    """Whether there may be a name that both match."""
    for plain, pattern in ((one, other), (other, one)):
        if not is_pattern(plain):
            return matcher(pattern)(plain) is not None
    first, second = _PIECE.findall(one), _PIECE.findall(other)
    return _begin_alike(first, second) and _begin_alike(first[::-1], second[::-1])


def _begin_alike(one: list[str], other: list[str]) -> bool:
    """Whether no plain character before the first wildcard of either differs."""
    for first, second in zip(one, other, strict=False):
        if not (_is_plain(first) and _is_plain(second)):
            return True
        if first != second:
            return False
    return True


def _is_plain(piece: str) -> bool:
    return len(piece) == 1 and piece not in "*?"
