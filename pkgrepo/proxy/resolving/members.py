"""The contents of a package in one repository, in a form in which those of several can be merged into one document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from attrs import Factory, frozen

from pkgrepo.model import Fragment


class LatestReason(StrEnum):
    """Why a version is the latest one. The values are in the API."""

    TAG = "tag"  # a repository says so
    REPLACED = "replaced"  # it stands in for the one that a repository says, which a rule hides
    HIGHEST = "highest"  # the order of versions


@frozen
class Latest:
    """
    The latest version of a package as clients see it.

    ``member`` is the index of the repository that says it, or said ``hidden``; None if it follows from the order.
    """

    version: str
    reason: LatestReason
    member: int | None = None
    hidden: str = ""


@frozen
class MemberParts:
    """
    What one repository has of a package.

    ``top`` is what the format needs above the fragments. ``fragments`` are by kind and in order. ``versions`` are pairs
    (sort, text) of the versions that are shown, in order; ``hidden`` are the texts of those that a rule hides, which
    ``top`` may still name.
    """

    top: Mapping[str, Any]
    fragments: Mapping[str, Sequence[Fragment]]
    versions: Sequence[tuple[bytes, str]] = ()
    hidden: frozenset[str] = Factory(frozenset)


def merge_fragments(members: Sequence[MemberParts], kind: str) -> list[bytes]:
    """The fragments of one kind of all members, in order; of several with one key that of the first member."""
    if len(members) == 1:
        return [fragment.body for fragment in members[0].fragments[kind]]
    chosen: dict[str, Fragment] = {}
    for fragment in _each(members, kind):
        chosen.setdefault(fragment.key, fragment)
    return [fragment.body for fragment in sorted(chosen.values())]


def merge_versions(members: Sequence[MemberParts]) -> list[str]:
    """The versions that any member shows, in order."""
    if len(members) == 1:
        return [text for _, text in members[0].versions]
    chosen: dict[str, bytes] = {}
    for member in members:
        for sort, text in member.versions:
            chosen.setdefault(text, sort)
    return [text for _, text in sorted((sort, text) for text, sort in chosen.items())]


def _each(members: Iterable[MemberParts], kind: str) -> Iterable[Fragment]:
    for member in members:
        yield from member.fragments[kind]
