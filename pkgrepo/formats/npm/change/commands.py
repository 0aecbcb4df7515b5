"""
Write commands that change published packages.

npm changes a package by writing its document back, whole or in part, with or without the revision that it read. Entries
of versions that do not exist are ignored beside others; such a document never publishes anything.

Removing versions, with the change of their tags, is one transaction. Deprecating many versions takes several, between
which other writers may commit: the message of each version is independent of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from attrs import evolve

from pkgrepo.errors import Conflict, NotFound, existing
from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.indexing import index_package, index_removed, index_states
from pkgrepo.formats.npm.packument.document import PARTIAL, revision
from pkgrepo.formats.npm.packument.splicing import deprecation
from pkgrepo.formats.npm.refusals import version_not_found
from pkgrepo.http.responses import Refusal
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Actor, Package, Repository, VersionState
from pkgrepo.model.admission import Admitted
from pkgrepo.repositories.publish import package_changes
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.repositories.publish.package_changes import append_package_event, bump_package_serial
from pkgrepo.storage.catalog.packages import packages, tags, versions

from .document_change import DocumentChange


def check_versions(r: Reader, repository: Repository, name: str, change: DocumentChange) -> None:
    """
    Check that a document is not only about versions that do not exist: its author wanted to publish one.

    Others may be named beside those that exist, as in what was read from a virtual repository.

    :raises NotFound: no such package; :raises Conflict: it is not at the document's revision; :raises Refusal: it is
    """
    package = existing(packages.find_package(r, repository.id, name), "package", name)
    _check_revision(package, change.revision)
    known = frozenset(versions.version_keys(r, package.id))
    unknown = change.named - known
    if not unknown or (change.deprecated and not known.isdisjoint(change.named)):
        return
    if change.kept is not None and (known - change.kept or _changes_tags(r, package, change.tags, known)):
        return
    raise Refusal(
        400, f"the document has no tarball attached, and {name} has no version {min(unknown)} that could be changed"
    )


def _changes_tags(r: Reader, package: Package, wanted: Mapping[str, str] | None, known: Set[str]) -> bool:
    present = tags.tagged_versions(r, package.id)
    if wanted is None:
        return False
    parsed = {tag: semver.find_version(text) for tag, text in wanted.items() if present.get(tag) != text}
    return bool(present.keys() - wanted.keys()) or any(each and each.key in known for each in parsed.values())


def deprecate(
    tx: Transaction, repository: Repository, name: str, messages: Mapping[str, str], actor: Admitted, now_ms: int
) -> str:
    """
    Deprecate versions with these messages by key; an empty one ends a deprecation. Returns the new revision.

    :raises NotFound: no such package
    """
    package = _get_package(tx, repository, name)
    changed = []
    for row in versions.version_rows(tx, package.id, messages):
        message = messages[row.key]
        if deprecation(row) != message:
            state = VersionState.DEPRECATED if message else VersionState.LIVE
            changed.append(evolve(row, state=state, reason=message))
    package_changes.set_version_states(tx, repository, package, changed, actor, index_states, now_ms)
    return _revision_now(tx, repository, name)


def apply_document(
    tx: Transaction, repository: Repository, name: str, change: DocumentChange, actor: Admitted, burn: bool, now_ms: int
) -> str:
    """
    Apply a document that deprecates nothing. Returns the new revision, empty when the package was removed.

    :raises NotFound: no such package; :raises Conflict: the package is not at the document's revision
    """
    package = _get_package(tx, repository, name)
    _check_revision(package, change.revision)
    meta = _changed_meta(package, change, actor)
    if meta:
        package_changes.set_package_meta(tx, repository, name, meta, actor, index_package, now_ms)
    if change.kept is not None:
        doomed = [key for key in versions.version_keys(tx, package.id) if key not in change.kept]
        _remove_versions(tx, repository, name, doomed, actor, burn, now_ms)
        if change.tags is not None and packages.find_package(tx, repository.id, name) is not None:
            _set_tags(tx, repository, package, change.tags, actor, now_ms)
    return _revision_now(tx, repository, name)


def remove_version(
    tx: Transaction,
    repository: Repository,
    name: str,
    key: str,
    base: str,
    actor: Actor,
    burn: bool,
    now_ms: int,
) -> None:
    """
    Remove one version, if it exists: npm sends this also after it has written the document without the version.

    :raises Conflict: the package is not at the revision ``base``
    """
    package = packages.find_package(tx, repository.id, name)
    if package is None or versions.find_version(tx, package.id, key) is None:
        return
    _check_revision(package, base.removesuffix(PARTIAL))  # it names what it removes
    _remove_versions(tx, repository, name, [key], actor, burn, now_ms)


def remove_package(
    tx: Transaction, repository: Repository, name: str, base: str, actor: Actor, burn: bool, now_ms: int
) -> None:
    """
    Remove a package with all its versions.

    :raises NotFound: no such package; :raises Conflict: it is not at the revision ``base``
    """
    package = _get_package(tx, repository, name)
    _check_revision(package, base)
    _remove_versions(tx, repository, name, versions.version_keys(tx, package.id), actor, burn, now_ms)


def set_tag(
    tx: Transaction, repository: Repository, name: str, tag: str, version_text: str, actor: Admitted, now_ms: int
) -> dict[str, str]:
    """
    Set a tag on a version. Returns all tags after it.

    :raises NotFound: no such package; :raises Refusal: no such version
    """
    package = _get_package(tx, repository, name)
    if not _assign_tag(tx, repository, package, tag, version_text, actor, now_ms):
        raise version_not_found(version_text)
    _record_change(tx, repository, package, "tagged", {"tag": tag, "target": version_text}, actor, now_ms)
    return tags.tagged_versions(tx, package.id)


def unset_tag(
    tx: Transaction, repository: Repository, name: str, tag: str, actor: Actor, now_ms: int
) -> dict[str, str]:
    """Remove a tag. Returns all tags after it. :raises NotFound: no such package, or no such tag"""
    package = _get_package(tx, repository, name)
    if not tags.remove_tag(tx, package.id, tag):
        raise NotFound("tag", tag)
    _record_change(tx, repository, package, "untagged", {"tag": tag}, actor, now_ms)
    return tags.tagged_versions(tx, package.id)


def _get_package(tx: Transaction, repository: Repository, name: str) -> Package:
    """The package. :raises NotFound: there is none"""
    return existing(packages.find_package(tx, repository.id, name), "package", name)


def _check_revision(package: Package, given: str) -> None:
    """
    Check that a given revision, if any, is the package's.

    :raises Conflict: the package was changed since, or the document showed only a part of it
    """
    current = revision(package.name, package.serial)
    if given.endswith(PARTIAL):
        raise Conflict(
            f"the document of {package.name} was read without the versions that rules hide, or as it was at another "
            "time, and what it leaves out stays: read it with ?write=true, as a user who may publish the package"
        )
    if given and given != current:
        raise Conflict(f"{package.name} was changed meanwhile: it is at revision {current}, not {given}")


def _changed_meta(package: Package, change: DocumentChange, actor: Actor) -> dict[str, Any]:
    """The keys of the package's own metadata that the change gives another value."""
    meta: dict[str, Any] = {}
    if change.maintainers is not None:
        meta["maintainers"] = [dict(each) for each in change.maintainers]
    if change.star is not None:
        users = {name: True for name in package.meta.get("users", ()) if name != actor.name}
        meta["users"] = users | {actor.name: True} if change.star else users
    return {key: value for key, value in meta.items() if package.meta.get(key) != value}


def _remove_versions(
    tx: Transaction, repository: Repository, name: str, keys: Sequence[str], actor: Actor, burn: bool, now_ms: int
) -> None:
    package_changes.remove_versions(tx, repository, name, keys, actor, index_removed, burn, now_ms)


def _set_tags(
    tx: Transaction, repository: Repository, package: Package, wanted: Mapping[str, str], actor: Admitted, now_ms: int
) -> None:
    present = tags.tagged_versions(tx, package.id)
    if dict(wanted) == present:
        return
    for tag in present.keys() - wanted.keys():
        tags.remove_tag(tx, package.id, tag)
    for tag, text in wanted.items():
        if present.get(tag) != text:
            _assign_tag(tx, repository, package, tag, text, actor, now_ms)
    _record_change(tx, repository, package, "tagged", {"tags": dict(wanted)}, actor, now_ms)


def _assign_tag(
    tx: Transaction, repository: Repository, package: Package, tag: str, text: str, actor: Admitted, now_ms: int
) -> bool:
    """Set a tag on a version. False when there is no such version."""
    actor.check(repository, package.key)
    parsed = semver.find_version(text)
    version = None if parsed is None else versions.find_version(tx, package.id, parsed.key)
    if version is None:
        return False
    tags.set_tag(tx, package.id, tag, version_id=version.id, actor=actor, now_ms=now_ms)
    return True


def _record_change(
    tx: Transaction,
    repository: Repository,
    package: Package,
    kind: str,
    data: Mapping[str, Any],
    actor: Actor,
    now_ms: int,
) -> None:
    """Index a change of the package under a new serial, and append its event."""
    package = bump_package_serial(tx, repository, package, now_ms)
    index_package(PackageIndex(tx, package, now_ms), Change())
    append_package_event(tx, package, kind, data, actor, now_ms)


def _revision_now(tx: Transaction, repository: Repository, name: str) -> str:
    serial = packages.package_serial(tx, repository.id, name)
    return "" if serial is None else revision(name, serial)
