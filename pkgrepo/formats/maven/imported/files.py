"""Takes in the files of a directory of a Maven repository: those of a version together, then others and metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import evolve, frozen

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.configuration import PushRules
from pkgrepo.formats.maven.metadata.reading import LARGEST as METADATA_SIZE
from pkgrepo.formats.maven.metadata.reading import read_metadata
from pkgrepo.formats.maven.metadata.uploads import render_upload, store_metadata
from pkgrepo.formats.maven.paths import (
    ALGORITHMS,
    ArtifactFile,
    Metadata,
    media_type,
    parse_text,
)
from pkgrepo.formats.maven.push_rules import check_push_policy
from pkgrepo.formats.maven.upload.pom import read_pom_file
from pkgrepo.formats.maven.upload.release import make_release, new_file
from pkgrepo.gateway.imported.engine import Order, Taken, Tools
from pkgrepo.gateway.imported.files import FileTaker
from pkgrepo.gateway.imported.items import MARK, Item, SourcePackage, Taking
from pkgrepo.interfaces import Transaction
from pkgrepo.model import BlobInfo, NewFile
from pkgrepo.repositories.publish.index import Indexer
from pkgrepo.repositories.publish.plain_files import put_plain_file
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files
from pkgrepo.storage.catalog.packages.tree import check_place

ODD: Final = "odd"  # the attribute with what is wrong with a POM


@frozen(kw_only=True)
class MavenTaker:
    """Takes in what is missing of directories; see ``pkgrepo.gateway.imported.engine``."""

    tools: Tools
    order: Order
    indexer: Indexer

    async def __call__(self, source_package: SourcePackage, taken: Taken) -> None:
        """Take in the files of a version, then other files and metadata."""
        rules = PushRules.of(self.order.repository)
        artifacts: list[Item] = []
        others: list[Item] = []
        for item in source_package.items:
            try:
                check_push_policy(rules, item.about)
            except Exception as error:  # noqa: BLE001 - a refusal of this file alone
                taken.refuse(item.path, error)
            else:
                (artifacts if isinstance(item.about, ArtifactFile) else others).append(item)
        taking = Taking(take=self._release, algorithms=ALGORITHMS, join=_join, needed=_is_no_signature)
        broken = {version: path for path, _ in source_package.left_out if (version := _version_of(path))}
        take = FileTaker(tools=self.tools, order=self.order, taking=taking, indexer=self.indexer, broken=broken)
        await take(evolve(source_package, items=artifacts), taken)
        for item in others:
            try:
                await self._take_other(item, taken)
            except Exception as error:  # noqa: BLE001 - one bad file does not stop the others
                taken.refuse(item.path, error)

    async def _release(
        self, _source_package: SourcePackage, item: Item, staged: Staged, blob: BlobInfo, pools: Pools
    ) -> Release:
        """The release of a file of a version; a malformed POM describes nothing: builds may have lived with it."""
        target: ArtifactFile = item.about
        repository_id = self.order.repository.id
        meta, more = None, {}
        if target.extension == "pom" and not target.classifier:
            try:
                pom = await staged.inspect(pools.cpu, blob, read_pom_file, commit=False)
                meta = None if pom is None else pom.meta()
            except Invalid as error:
                more = {ODD: error.message}

        def guard(tx: Transaction) -> None:
            if files.find_file(tx, repository_id, target.path) is None:
                check_place(tx, repository_id, target.path)

        return make_release(target.coordinates, [new_file(target, blob, **more)], meta, guard=guard)

    async def _take_other(self, item: Item, taken: Taken) -> None:
        """Take in a file that is of no version, or what metadata say beside versions."""
        order, content = self.order, self.tools.content
        if isinstance(item.about, Metadata):
            await self._take_metadata(item, taken)
            return
        stored = await self.tools.catalog.look(files.find_file, order.repository.id, item.path)
        if stored is not None or order.dry_run:
            (taken.count_present if stored is not None else lambda count: taken.count(count, item.size or 0))(1)
            return
        async with content.stage(order.repository, user_id=order.actor.user_id) as staged:
            blob = await staged.receive(
                item.place.chunks(),
                limit=self.tools.max_upload,
                expect_size=item.size,
                algorithms=ALGORITHMS,
                expected=dict(item.digests) or None,
            )
            new = NewFile(path=item.path, blob=blob, media_type=media_type(item.path), attrs={MARK: self.order.place})
            await content.change_with_blobs(
                put_plain_file, order.repository, staged, [blob], new, False, order.actor, None
            )
        taken.count(1, blob.size)

    async def _take_metadata(self, item: Item, taken: Taken) -> None:
        """
        Take in what metadata say beside versions, which follow from the files: plugins, and elements of extensions.

        Their versions are not claimed: of those that are no more at the source, clients would find nothing.
        """
        content = b"".join([chunk async for chunk in item.place.chunks()])[: METADATA_SIZE + 1]
        read = await self.tools.pools.cpu(read_metadata, content)
        if self.order.dry_run or (not read.plugins and not read.others):
            taken.progress.step()
            return
        said = render_upload(evolve(read, versions=(), latest="", release=""), read.plugins)
        async with self.tools.content.stage(self.order.repository) as staged:
            blob = await staged.store(said, ALGORITHMS)
            new = await store_metadata(self.tools, self.order.repository, item.about, staged, blob, self.order.actor)
        taken.report.facts += new
        taken.progress.step()


def _is_no_signature(item: Item) -> bool:
    return item.about.role is None


def _version_of(path: str) -> str:
    """The version that lacks a file which the source could not give; empty if it has all that is needed without."""
    try:
        target = parse_text(path)
    except Invalid:
        return ""
    return target.coordinates.version if isinstance(target, ArtifactFile) and target.role is None else ""


def _join(releases: Sequence[Release]) -> Release:
    """One release of all files of a version."""
    first, described = releases[0], next((each for each in releases if each.describes), releases[0])
    guards = [each.guard for each in releases if each.guard is not None]

    def guard(tx: Transaction) -> None:
        for each in guards:
            each(tx)

    joined = tuple(file for each in releases for file in each.files)
    return evolve(first, files=joined, meta=described.meta, describes=described.describes, guard=guard)
