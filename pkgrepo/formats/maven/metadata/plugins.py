"""
Adds plugins to the metadata of a group, in the transaction that publishes them.

The metadata are those of an artifact if the group's directory is one, else a plain file, which is replaced.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pkgrepo.formats.maven.paths import ALGORITHMS, METADATA_NAME, Metadata, parse_text
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Actor, File, NewFile, Repository
from pkgrepo.repositories.publish.plain_files import put_plain_file
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files

from .commands import find_package, put_group_plugins
from .joining import CONTENT_TYPE
from .reading import LARGEST, read_metadata
from .uploaded import Uploaded
from .uploads import Outdated, folded_attrs, render_upload, sha256_of
from .values import Plugin, ReadMetadata, merge_plugins


@frozen
class PluginChange:
    """
    Plugins for the metadata of one group. ``row`` is the plain file with them, None if an artifact has the metadata.

    It takes the place of a file with the digest ``before``, None if there is none.
    """

    target: Metadata
    plugins: tuple[Plugin, ...]
    row: NewFile | None = None
    before: str | None = None


def group_metadata(group: str) -> Metadata:
    """The metadata of a group."""
    found = parse_text(f"{group.replace('.', '/')}/{METADATA_NAME}")
    assert isinstance(found, Metadata)
    return found


async def prepare_plugins(
    services: Services, repository: Repository, staged: Staged, group: str, plugins: Sequence[Plugin]
) -> PluginChange:
    """
    The change that adds plugins to a group; ``staged`` gets the bytes that it needs.

    :raises Invalid: the present metadata of the group cannot be read
    """
    target, added = group_metadata(group), merge_plugins((plugins,))
    if await services.catalog.look(find_package, repository.id, target) is not None:
        return PluginChange(target, added)
    before: File | None = await services.catalog.look(files.find_file, repository.id, target.path)
    read = ReadMetadata()
    if before is not None:
        content = await services.files.read(before.storage_id, before.locator, min(before.size, LARGEST + 1))
        read = await services.pools.cpu(read_metadata, content)
    merged = merge_plugins((added, read.plugins))
    blob = await staged.store(render_upload(read, merged), ALGORITHMS)
    said = Uploaded(claimed=read.versions, plugins=merged, others=read.others)
    row = NewFile(path=target.path, blob=blob, media_type=CONTENT_TYPE, attrs=folded_attrs(said))
    return PluginChange(target, added, row, sha256_of(before))


def put_plugins(
    tx: Transaction, repository: Repository, change: PluginChange, actor: Actor, now_ms: int
) -> Sequence[str]:
    """
    Add plugins to a group. Returns the locators of copies that were not needed.

    :raises Outdated: the metadata were changed meanwhile; prepare the change again
    """
    row = change.row
    if find_package(tx, repository.id, change.target) is not None:
        put_group_plugins(tx, repository, change.target, change.plugins, actor, now_ms)
        return () if row is None else (row.blob.locator,)
    if row is None or sha256_of(files.find_file(tx, repository.id, row.path)) != change.before:
        raise Outdated(change.target.path)
    return put_plain_file(tx, repository, row, True, actor, None, now_ms).surplus
