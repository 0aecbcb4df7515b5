"""
Stores uploaded metadata: as what they say beside the stored files, or as a plain file where no files are stored.

Clients read metadata, add their version and write it back, so that two of them overwrite each other's version. Here the
versions are those of the stored files, whatever the upload says: one without files would be the release that clients
choose and do not find.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable, Collection, Set
from contextlib import suppress
from enum import Enum, auto
from functools import partial
from typing import Final, Protocol

import msgspec
from attrs import frozen

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Conflict, Invalid, Outdated, TooLarge
from pkgrepo.formats.maven.metadata.document import (
    UPLOADED,
    Uploaded,
    artifact_document,
    encode,
    find_uploaded,
    meaning_of_artifact,
    meaning_of_snapshot,
)
from pkgrepo.formats.maven.metadata.joining import CONTENT_TYPE, FOLDED, document_key, said_beside
from pkgrepo.formats.maven.metadata.reading import (
    LARGEST,
    MOST_ENTRIES,
    OTHERS_SIZE,
    Plugin,
    ReadMetadata,
    merge_others,
    merge_plugins,
    read_metadata,
    version_fragment,
)
from pkgrepo.formats.maven.paths import ALGORITHMS, Metadata
from pkgrepo.formats.maven.version_order import sort_key
from pkgrepo.interfaces import ICatalog, Reader, Transaction
from pkgrepo.model import BlobInfo, File, NewFile, Package, Repository
from pkgrepo.model.admission import Admitted, path_name
from pkgrepo.repositories.publish.content import ContentWriter
from pkgrepo.repositories.publish.package_changes import append_package_event, bump_package_serial
from pkgrepo.repositories.publish.plain_files import put_plain_file
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import files, packages, versions

ATTEMPTS: Final = 100  # to replace a plain file that other clients replace at the same time
FOLDED_SIZE: Final = 64 * 1024  # bytes of what a plain file's row keeps of it
Listed = Collection[Plugin] | None  # that a change was judged by; None for one by somebody who may change all
Judge = Callable[[ReadMetadata, Collection[Plugin]], Awaitable[None]]
PLUGINS_SIZE: Final = 512 * 1024  # bytes of the plugins of a group, which it always keeps; 5,000 plugins


@frozen
class Upload:
    """Uploaded bytes, and what they say; ``meaning`` is None if they are not what would be generated."""

    content: bytes
    read: ReadMetadata
    meaning: bytes | None


class UploadServices(Protocol):
    """What storing metadata needs of the services."""

    @property
    def catalog(self) -> ICatalog:
        """The catalog."""

    @property
    def content(self) -> ContentWriter:
        """What runs the write commands."""

    @property
    def pools(self) -> Pools:
        """Threads for reading what was uploaded."""


async def store_metadata(
    services: UploadServices,
    repository: Repository,
    target: Metadata,
    staged: Staged,
    blob: BlobInfo,
    actor: Admitted,
    judge: Judge | None = None,
) -> bool:
    """
    Store metadata, whose bytes are ``blob``. Returns whether nothing was stored in their place before.

    ``judge`` is awaited with what they say, and the plugins that are listed now, before it is stored, and raises an
    error if the pusher may not say that.

    :raises Invalid: they are malformed; :raises TooLarge: a part of them is larger than allowed
    :raises Conflict: other clients replaced them too often meanwhile, or a file is where a folder is needed
    """
    upload = await staged.inspect(services.pools.cpu, blob, partial(read_upload, target), commit=False)
    for attempt in range(ATTEMPTS):
        listed: tuple[Plugin, ...] | None = None
        if judge is not None:
            listed = await services.catalog.look(listed_plugins, repository.id, target)
            await judge(upload.read, listed)
        package = await services.catalog.look(find_package, repository.id, target)
        with suppress(Outdated):
            stored = package and await _put_beside_files(services, repository, target, upload, listed, actor)
            if stored not in (None, Stored.NO_FILES):
                return False
            given = blob if attempt == 0 else None
            return not await _put_plain(services, repository, target, upload, listed, actor, staged, given)
    raise Conflict("other clients replace these metadata at the same time")


async def _put_beside_files(
    services: UploadServices, repository: Repository, target: Metadata, upload: Upload, listed: Listed, actor: Admitted
) -> Stored:
    said = await services.catalog.scan(find_said, repository.id, target, upload)
    return await services.content.change(_put_beside, repository, target, said, listed, actor)


def _put_beside(
    tx: Transaction,
    repository: Repository,
    target: Metadata,
    said: Uploaded,
    listed: Listed,
    actor: Admitted,
    now_ms: int,
) -> Stored:
    check_listed(tx, repository, target, listed)
    return put_uploaded(tx, repository, target, said, actor, now_ms)


async def _put_plain(
    services: UploadServices,
    repository: Repository,
    target: Metadata,
    upload: Upload,
    listed: Listed,
    actor: Admitted,
    staged: Staged,
    blob: BlobInfo | None,
) -> bool:
    """Whether a file was replaced. :raises Outdated: something else was stored meanwhile"""
    before: File | None = await services.catalog.look(files.find_file, repository.id, target.path)
    read = upload.read
    plugins = merge_plugins((read.plugins, plugins_of(before)))
    if plugins != merge_plugins((read.plugins,)):
        blob = await staged.store(render_upload(read, plugins), ALGORITHMS)
    elif blob is None:
        blob = await staged.store(upload.content, ALGORITHMS)

    def guard(tx: Transaction) -> None:
        now = files.find_file(tx, repository.id, target.path)
        if find_package(tx, repository.id, target) is not None or sha256_of(now) != sha256_of(before):
            raise Outdated(target.path)
        check_listed(tx, repository, target, listed)

    folded = Uploaded(plugins=plugins, others=read.others)
    row = NewFile(path=target.path, blob=blob, media_type=CONTENT_TYPE, attrs=folded_attrs(folded))
    put = await services.content.change_with_blobs(put_plain_file, repository, staged, [blob], row, True, actor, guard)
    return put.replaced or not put.changed


def read_upload(target: Metadata, source: int | bytes) -> Upload:
    """
    The bytes, or what a descriptor has, as an upload for a path.

    :raises Invalid, TooLarge: see L{read_metadata}
    """
    if isinstance(source, bytes):
        content = source
    else:
        with open(source, "rb", closefd=False) as file:
            content = file.read(LARGEST + 1)
    read = read_metadata(content)
    return Upload(content, read, meaning_of_artifact(read) if target.version is None else meaning_of_snapshot(read))


def find_said(reader: Reader, repository_id: int, target: Metadata, upload: Upload) -> Uploaded:
    """What an upload says beside the files that are stored in the directory."""
    assert target.package_key is not None
    key, form = document_key(target, target.package_key)
    read = upload.read
    said = Uploaded(plugins=read.plugins, others=read.others)
    said, now = said_beside(reader, repository_id, key, form, said)
    if upload.meaning is None or upload.meaning != now:
        return said
    return msgspec.structs.replace(said, meaning=now, content=zlib.compress(upload.content, 1))


def listed_plugins(r: Reader, repository_id: int, target: Metadata) -> tuple[Plugin, ...]:
    """The plugins that the metadata of a group list."""
    package = find_package(r, repository_id, target)
    if package is not None:
        uploaded = find_uploaded(r, package.id)
        return () if uploaded is None else uploaded.plugins
    return plugins_of(files.find_file(r, repository_id, target.path))


def check_listed(r: Reader, repository: Repository, target: Metadata, listed: Listed) -> None:
    """Check that a change was judged by the plugins that metadata list. :raises Outdated: others were added since"""
    if listed is not None and not {*listed_plugins(r, repository.id, target)} <= {*listed}:
        raise Outdated(target.path)


def plugins_of(file: File | None) -> tuple[Plugin, ...]:
    """The plugins that a plain file of metadata lists."""
    folded = None if file is None else file.attrs.get(FOLDED)
    return () if folded is None else msgspec.convert(folded, Uploaded).plugins


def folded_attrs(said: Uploaded) -> dict[str, object]:
    """
    The attribute that keeps what a plain file says: all of it if that is small, else its plugins.

    :raises TooLarge: these are too many
    """
    value = msgspec.to_builtins(said)
    if len(msgspec.json.encode(value)) > FOLDED_SIZE:
        value = msgspec.to_builtins(Uploaded(plugins=said.plugins))
        if len(msgspec.json.encode(value)) > PLUGINS_SIZE:
            raise TooLarge(PLUGINS_SIZE, "the list of plugins")
    return {FOLDED: value}


def render_upload(read: ReadMetadata, plugins: tuple[Plugin, ...]) -> bytes:
    """Metadata that say the same as uploaded ones, with these plugins."""
    versions = sorted(read.versions, key=lambda version: (sort_key(version), version))
    return artifact_document(
        group=read.group,
        artifact=read.artifact,
        versions=versions,
        fragments=[version_fragment(each) for each in versions],
        last_updated=read.last_updated,
        plugins=plugins,
        others=read.others,
    ).joined()


def sha256_of(file: File | None) -> str | None:
    """The digest of a file, None if there is none."""
    return None if file is None else file.sha256


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
    actor: Admitted,
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
    actor.check(repository, path_name(target.path))
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
    index_documents.put_fragment(tx, package.id, UPLOADED, b"", key, encode(said))
    version = None if not key else versions.find_version(tx, package.id, key)
    append_package_event(tx, package, "changed", {"path": target.path}, actor, now_ms, version=version)
    return Stored.CHANGED


def put_group_plugins(
    tx: Transaction,
    repository: Repository,
    target: Metadata,
    plugins: tuple[Plugin, ...],
    gone: Set[str],
    actor: Admitted,
    now_ms: int,
) -> Stored:
    """Change the plugins that earlier uploads listed, in a directory with stored files. :raises Invalid: as above"""
    package = find_package(tx, repository.id, target)
    before = None if package is None else find_uploaded(tx, package.id)
    said = Uploaded(plugins=plugins) if before is None else msgspec.structs.replace(before, plugins=plugins)
    return put_uploaded(tx, repository, target, said, actor, now_ms, gone=gone)
