"""Write commands that store what uploaded metadata say, beside what follows from the stored files."""

from __future__ import annotations

from collections.abc import Set
from enum import Enum, auto

import msgspec

from pkgrepo.errors import Invalid, TooLarge
from pkgrepo.formats.maven.paths import Metadata
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Actor, Package, Repository
from pkgrepo.repositories.publish.package_changes import append_package_event, bump_package_serial
from pkgrepo.storage.catalog.documents import fragments
from pkgrepo.storage.catalog.packages import packages, versions

from .reading import MOST_ENTRIES, OTHERS_SIZE
from .upload_fragment import UPLOADED, Uploaded, encode, find_uploaded
from .values import Plugin, merge_others, merge_plugins


class Stored(Enum):
    """What became of an upload: it is stored, it said nothing new, or no files of the directory are stored."""

    CHANGED = auto()
    SAME = auto()
    NO_FILES = auto()


def find_package(reader: Reader, repository_id: int, target: Metadata) -> Package | None:
    """The package whose files are stored in the directory of metadata, or None if there are none."""
    if target.package_key is None:
        return None
    package = packages.find_package(reader, repository_id, target.package_key)
    if package is None or target.version is None:
        return package
    return None if versions.find_version(reader, package.id, target.version) is None else package


def put_uploaded(
    tx: Transaction,
    repository: Repository,
    target: Metadata,
    said: Uploaded,
    actor: Actor,
    now_ms: int,
    *,
    gone: Set[str] = frozenset(),
) -> Stored:
    """
    Store an upload for a directory whose files are stored.

    Plugins and other elements are added to those of earlier uploads, so that two clients that upload at once lose none;
    but plugins of artifacts that are ``gone`` are dropped.

    :raises Invalid: there are too many plugins then; :raises TooLarge: the other elements are too large
    """
    package = find_package(tx, repository.id, target)
    if package is None:
        return Stored.NO_FILES
    key = target.version or ""
    before = find_uploaded(tx, package.id, key) or Uploaded()
    said = msgspec.structs.replace(
        said,
        plugins=merge_plugins((said.plugins, [each for each in before.plugins if each.artifact not in gone])),
        others=merge_others((said.others, before.others)),
    )
    if len(said.plugins) > MOST_ENTRIES:
        raise Invalid(f"the metadata would list more than {MOST_ENTRIES} plugins", "metadata")
    if sum(len(each.xml) for each in said.others) > OTHERS_SIZE:
        raise TooLarge(OTHERS_SIZE, "the part of the metadata that the model does not have")
    if not said.content:
        said = msgspec.structs.replace(said, meaning=before.meaning, content=before.content)
    if said == before:
        return Stored.SAME
    package = bump_package_serial(tx, repository, package, now_ms)
    fragments.put_fragment(tx, package.id, UPLOADED, b"", key, encode(said))
    version = None if not key else versions.find_version(tx, package.id, key)
    append_package_event(tx, package, "changed", {"path": target.path}, actor, now_ms, version=version)
    return Stored.CHANGED


def put_group_plugins(
    tx: Transaction,
    repository: Repository,
    target: Metadata,
    plugins: tuple[Plugin, ...],
    gone: Set[str],
    actor: Actor,
    now_ms: int,
) -> Stored:
    """Change the plugins that earlier uploads listed, in a directory with stored files. :raises Invalid: as above"""
    package = find_package(tx, repository.id, target)
    before = None if package is None else find_uploaded(tx, package.id)
    said = Uploaded(plugins=plugins) if before is None else msgspec.structs.replace(before, plugins=plugins)
    return put_uploaded(tx, repository, target, said, actor, now_ms, gone=gone)
