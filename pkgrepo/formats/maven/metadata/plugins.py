"""
Plugins: prefix and name from the descriptor in a jar, and their lists in the metadata of groups.

Plugins are added in the transaction that publishes them, and those of removed artifacts are dropped. The metadata are
those of an artifact if the group's directory is one, else a plain file, which is replaced.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Final
from xml.etree.ElementTree import ParseError

from attrs import frozen
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from pkgrepo.archives.source import Source
from pkgrepo.archives.zip_archive import ZipArchive
from pkgrepo.errors import Conflict, Invalid, Outdated
from pkgrepo.formats.maven.configuration import PLUGIN_SIZE
from pkgrepo.formats.maven.metadata.document import Uploaded
from pkgrepo.formats.maven.metadata.joining import CONTENT_TYPE
from pkgrepo.formats.maven.metadata.reading import LARGEST, Plugin, ReadMetadata, merge_plugins, read_metadata
from pkgrepo.formats.maven.metadata.uploads import (
    check_listed,
    find_package,
    folded_attrs,
    listed_plugins,
    plugins_of,
    put_group_plugins,
    render_upload,
    sha256_of,
)
from pkgrepo.formats.maven.paths import ALGORITHMS, METADATA_NAME, Metadata, parse_text
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Transaction
from pkgrepo.model import BlobInfo, File, NewFile, Repository
from pkgrepo.model.admission import Admitted
from pkgrepo.repositories.format import Joined
from pkgrepo.repositories.publish.plain_files import put_plain_file, remove_plain_file
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files
from pkgrepo.storage.catalog.server.stages import StageItem

ATTEMPTS: Final = 20  # to change metadata that other clients change at the same time
BUSY: Final = "other clients change the metadata of the plugins' groups at the same time"


@frozen
class PluginChange:
    """
    Plugins for the metadata of one group, from which those of artifacts that are ``gone`` are dropped.

    ``row`` is the plain file with them, None if an artifact has the metadata, or nothing is left in them. It takes the
    place of a file with the digest ``before``, None if there is none. ``listed`` are the plugins that the metadata list
    before the change.
    """

    target: Metadata
    plugins: tuple[Plugin, ...]
    gone: frozenset[str] = frozenset()
    row: NewFile | None = None
    before: str | None = None
    listed: tuple[Plugin, ...] = ()

    @property
    def blobs(self) -> list[BlobInfo]:
        """The bytes that are to be stored."""
        return [] if self.row is None else [self.row.blob]


@frozen
class PluginsPut:
    """The result of a change of plugins alone: locators of copies that were not needed."""

    surplus: tuple[str, ...]


async def change_plugins(
    services: Services,
    repository: Repository,
    group: str,
    actor: Admitted,
    *,
    added: Sequence[Plugin] = (),
    gone: frozenset[str] = frozenset(),
    check: Callable[[PluginChange], Awaitable[None]] | None = None,
) -> None:
    """
    Add plugins to the metadata of a group, and drop those of artifacts that are gone, in a transaction of their own.

    Each change is checked before it is tried: what the group lists may be another list each time.

    :raises Conflict: other clients changed the metadata too often meanwhile
    """
    target = group_metadata(group)
    for _ in range(ATTEMPTS):
        listed: tuple[Plugin, ...] = await services.catalog.look(listed_plugins, repository.id, target)
        if set(added) <= set(listed) and gone.isdisjoint(each.artifact for each in listed):
            return
        async with services.content.stage(repository) as staged:
            change = await prepare_plugins(services, repository, staged, group, added, gone)
            if check is not None:
                await check(change)
            try:
                await services.content.change_with_blobs(_put_alone, repository, staged, change.blobs, change, actor)
            except Outdated:
                continue
            return
    raise Conflict(BUSY)


def artifacts_of_changes(plugins: Iterable[Plugin], listed: Iterable[Plugin]) -> set[str]:
    """The artifacts of plugins that are listed beside, or instead of, those ``listed``, and of those."""
    present = {each.prefix: each for each in listed}
    changed = [each for each in plugins if present.get(each.prefix) != each]
    return {plugin.artifact for each in changed for plugin in (each, present.get(each.prefix, each))}


def group_metadata(group: str) -> Metadata:
    """The metadata of a group."""
    found = parse_text(f"{group.replace('.', '/')}/{METADATA_NAME}")
    assert isinstance(found, Metadata)
    return found


async def prepare_plugins(
    services: Services,
    repository: Repository,
    staged: Staged,
    group: str,
    plugins: Sequence[Plugin],
    gone: frozenset[str] = frozenset(),
) -> PluginChange:
    """
    The change that adds plugins to a group, and drops those of artifacts; ``staged`` gets the bytes that it needs.

    :raises Invalid: the present metadata of the group cannot be read
    """
    target, added = group_metadata(group), merge_plugins((plugins,))
    if await services.catalog.look(find_package, repository.id, target) is not None:
        listed = await services.catalog.look(listed_plugins, repository.id, target)
        return PluginChange(target, added, gone, listed=listed)
    before: File | None = await services.catalog.look(files.find_file, repository.id, target.path)
    read = ReadMetadata()
    if before is not None:
        content = await services.files.read(before.storage_id, before.locator, min(before.size, LARGEST + 1))
        read = await services.pools.cpu(read_metadata, content)
    merged = merge_plugins((added, [each for each in read.plugins if each.artifact not in gone]))
    if not (merged or read.versions or read.others):
        return PluginChange(target, added, gone, before=sha256_of(before), listed=read.plugins)
    listing = await _listing(staged, target, read, merged)
    return PluginChange(target, added, gone, listing.row, sha256_of(before), read.plugins)


async def new_list(staged: Staged, group: str, plugins: Sequence[Plugin]) -> PluginChange:
    """The change that gives a group without metadata a list of plugins; ``staged`` gets its bytes."""
    return await _listing(staged, group_metadata(group), ReadMetadata(), merge_plugins((plugins,)))


async def _listing(staged: Staged, target: Metadata, read: ReadMetadata, merged: tuple[Plugin, ...]) -> PluginChange:
    blob = await staged.store(render_upload(read, merged), ALGORITHMS)
    said = Uploaded(plugins=merged, others=read.others)
    row = NewFile(path=target.path, blob=blob, media_type=CONTENT_TYPE, attrs=folded_attrs(said))
    return PluginChange(target, merged, row=row)


async def join_staged(
    services: Services, target: Repository, stage: Repository, content: Sequence[StageItem], staged: Staged
) -> Joined:
    """
    Of an approval, the lists of plugins that are joined with those that the repository has.

    They get the plugins that are in the stage; what else a client wrote into such a list was read from the repository.

    :raises Invalid: the present metadata of a group cannot be read
    """
    keys, changes = {each.key for each in content}, list[PluginChange]()
    for item in content:
        metadata = parse_text(item.name) if item.kind == "file" else None
        if not isinstance(metadata, Metadata):
            continue
        group = item.name.rpartition("/")[0].replace("/", ".")
        listed = plugins_of(await services.catalog.look(files.find_file, stage.id, item.name))
        if listed and await _has_metadata(services, target, metadata):
            added = [each for each in listed if f"{group}:{each.artifact}" in keys]
            changes.append(await prepare_plugins(services, target, staged, group, added))
    return Joined(
        frozenset(each.target.path for each in changes),
        [blob for each in changes for blob in each.blobs],
        partial(_put_joined, changes),
    )


async def _has_metadata(services: Services, repository: Repository, target: Metadata) -> bool:
    package = await services.catalog.look(find_package, repository.id, target)
    return package is not None or await services.catalog.look(files.find_file, repository.id, target.path) is not None


def _put_joined(
    changes: Sequence[PluginChange], tx: Transaction, repository: Repository, actor: Admitted, now_ms: int
) -> list[str]:
    return [locator for each in changes for locator in put_plugins(tx, repository, each, actor, now_ms)]


def put_plugins(
    tx: Transaction, repository: Repository, change: PluginChange, actor: Admitted, now_ms: int
) -> Sequence[str]:
    """
    Change the plugins of a group. Returns the locators of copies that were not needed.

    :raises Outdated: the metadata were changed meanwhile; prepare the change again
    """
    row = change.row
    if find_package(tx, repository.id, change.target) is not None:
        check_listed(tx, repository, change.target, change.listed)
        put_group_plugins(tx, repository, change.target, change.plugins, change.gone, actor, now_ms)
        return () if row is None else (row.blob.locator,)
    path = change.target.path
    if (row is None and change.before is None) or sha256_of(files.find_file(tx, repository.id, path)) != change.before:
        raise Outdated(path)
    if row is None:
        remove_plain_file(tx, repository, path, actor, now_ms)
        return ()
    return put_plain_file(tx, repository, row, True, actor, None, now_ms).surplus


def _put_alone(
    tx: Transaction, repository: Repository, change: PluginChange, actor: Admitted, now_ms: int
) -> PluginsPut:
    return PluginsPut(tuple(put_plugins(tx, repository, change, actor, now_ms)))


DESCRIPTOR = "META-INF/maven/plugin.xml"
LONGEST = 200  # characters of a prefix or name
PACKAGING = "maven-plugin"  # of plugins, in their POMs


def find_plugin(content: int | bytes, artifact: str) -> dict[str, str] | None:
    """
    Prefix and name of a plugin, from its jar, given as a descriptor or bytes. Blocks: call it in a thread.

    None if the jar has no descriptor of a plugin, or cannot be read.
    """
    try:
        document = ZipArchive(Source(content, "the jar")).read(DESCRIPTOR, PLUGIN_SIZE)
        root = None if document is None else fromstring(document, forbid_dtd=True)
    except (Invalid, ParseError, DefusedXmlException, LookupError, ValueError):
        return None
    if root is None or root.tag != "plugin":
        return None
    usual = usual_plugin(artifact)
    prefix = (root.findtext("goalPrefix") or "").strip()
    name = " ".join((root.findtext("name") or "").split())
    return {"prefix": prefix[:LONGEST] or usual["prefix"], "name": name[:LONGEST] or usual["name"]}


def usual_plugin(artifact: str) -> dict[str, str]:
    """Prefix and name of a plugin that says nothing of itself."""
    return {"prefix": usual_prefix(artifact), "name": artifact}


def usual_prefix(artifact: str) -> str:
    """The prefix of a plugin with a conventional name: ``foo`` of foo-maven-plugin and of maven-foo-plugin."""
    if artifact == "maven-plugin-plugin":
        return "plugin"
    return artifact.replace("-maven-plugin", "").replace("maven-", "").replace("-plugin", "") or artifact
