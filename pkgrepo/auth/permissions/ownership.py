"""
Which project a package belongs to, by its name.

===========  ======================================================================================
format       bindings that cover a package, the most specific first
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
    How the owner of a package is found, and what a first pusher claims.

    ``patterns`` are bindings, the most specific first; ``project_key`` is the owner that the name itself states, or
    None. A claim binds ``claim`` to a new project ``claim_key``, which no container image can name by accident.
    """

    patterns: tuple[str, ...]
    project_key: str | None
    claim: str
    claim_key: str


def ownership(repository: Repository, package: str) -> Ownership:
    """The owner's rule for a package key of a repository."""
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
