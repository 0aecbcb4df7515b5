"""
Which project owns a package, by its name.

===========  ======================================================================================
format       bindings that match a package, the most specific first
===========  ======================================================================================
container    the image, its leading segments, its first segment; a project whose key is the first
             segment owns it without a binding
Java         the coordinates, the group id, and the group ids above it on dot boundaries
Node         the package, then its scope
Ruby         the gem
Python,      the package, then prefixes on hyphen boundaries, written ``acme-*``
conda
===========  ======================================================================================
"""

from __future__ import annotations

from attrs import frozen

from pkgrepo.model import Repository


@frozen
class Ownership:
    """
    How to find the owner of a package, and what its first pusher claims.

    ``patterns`` are bindings, the most specific first; ``project_key`` is the owner named by the package name, or None.
    A claim binds ``claim`` to a new project ``claim_key``, which cannot be part of an image name.
    """

    patterns: tuple[str, ...]
    project_key: str | None
    claim: str
    claim_key: str


def ownership(repository: Repository, package: str) -> Ownership:
    """The ownership rule for a package key in a repository."""
    project_key = None
    match repository.format:
        case "docker":
            patterns = _prefixes(package, "/")
            claim = project_key = patterns[-1]
        case "maven":
            group, colon, _ = package.partition(":")
            patterns = ((package,) if colon else ()) + _prefixes(group, ".")
            claim = group
        case "npm":
            scope, slash, _ = package.partition("/")
            patterns = (package, scope) if slash else (package,)
            claim = scope
        case "python" | "conda":
            patterns = (package, *(f"{prefix}-*" for prefix in _prefixes(package, "-")[1:]))
            claim = package
        case _:
            patterns = (package,)
            claim = package
    claim_key = project_key or f"{repository.storage_name}.{repository.name}:{claim}"
    return Ownership(patterns=patterns, project_key=project_key, claim=claim, claim_key=claim_key)


def _prefixes(name: str, separator: str) -> tuple[str, ...]:
    parts = name.split(separator)
    return tuple(separator.join(parts[:count]) for count in range(len(parts), 0, -1))
