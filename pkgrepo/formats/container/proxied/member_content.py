"""
What a push through a virtual repository takes from its members.

A client uploads only what the server does not have. The virtual repository says that it has what any member has, so the
member to which it publishes gets that from the others when a manifest refers to it. Nothing is taken that the caller
could not read under the same name through the virtual repository.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import TypeVar

from attrs import frozen

from pkgrepo.errors import NotFound, UpstreamDenied, UpstreamFailed
from pkgrepo.formats.container.names import parse_digest
from pkgrepo.formats.container.proxied.lists import UpstreamImages
from pkgrepo.formats.container.target import Target
from pkgrepo.formats.container.trust.visibility import Visibility
from pkgrepo.gateway.publishing.virtual import check_new_name
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader
from pkgrepo.model import Identity, Repository
from pkgrepo.model.admission import Admitted
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.images.blobs import link_blob, mount_blob
from pkgrepo.repositories.images.push import Reference
from pkgrepo.repositories.policy.refusals import RuleRefused
from pkgrepo.storage.catalog.images.linked_blobs import LinkedBlob, find_linked
from pkgrepo.storage.catalog.images.manifests import Manifest, find_manifest

from .holders import Holder

T = TypeVar("T")


@frozen
class MemberManifest:
    """A manifest of a member: its bytes and its media type."""

    data: bytes
    media_type: str


class MemberContent:
    """Finds and links blobs and manifests of members."""

    def __init__(self, services: Services, images: UpstreamImages, visibility: Visibility) -> None:
        self._services = services
        self._images = images
        self._visibility = visibility

    async def mount(self, source: Target, target: Target, digest: str, client: str, actor: Admitted) -> bool:
        """
        Add a blob of the image ``source`` of a proxy or virtual repository to the image ``target``.

        False if no repository on the same storage has it; upstreams are not asked.
        """
        for holder in await self._images.holders.lenders(source):
            if await self._images.rules.refuses_blob(holder.target, digest):
                continue
            if await self._mount(holder, target, digest, client, actor):
                return True
        return False

    async def link_blobs(self, target: Target, references: tuple[Reference, ...], client: str, actor: Admitted) -> None:
        """
        Add those blobs to an image that it lacks and a member has; what no member has stays missing.

        :raises UpstreamFailed: a member's upstream failed, and no other one has a blob
        :raises StorageFull, StorageFailed: a blob cannot be stored
        """
        wanted = dict.fromkeys(each.digest for each in references if each.kind != "manifest")
        look = self._services.catalog.look
        for digest in [
            each for each in wanted if await look(_find_blob, target.repository, target.image, each) is None
        ]:
            await self._link(target, digest, client, actor)

    async def find_manifest(self, target: Target, identity: Identity, digest: str) -> MemberManifest | None:
        """
        The manifest with a digest that a member has and the caller may see; None if no member has it.

        :raises UpstreamFailed: an upstream failed, and no other member has it
        """
        async for holder, found in self._ask_members(target, partial(self._read, identity, digest)):
            if found is not None and found.locator:
                files, storage_id = self._services.files, holder.target.repository.storage_id
                return MemberManifest(await files.read(storage_id, found.locator, found.size), found.media_type)
        return None

    async def check_new_name(self, request: Request, target: Target) -> None:
        """Check that a push may give the image its name. :raises Forbidden, UpstreamFailed: see L{check_new_name}"""
        if target.virtual is None:
            return

        async def ask() -> bool:
            for holder in await self._lenders(target):
                try:
                    if not holder.is_hosted:
                        await self._images.lists.tags(holder.target.repository, target.image)
                        return True
                except NotFound:
                    continue
            return False

        await check_new_name(self._services, request, target.virtual, target.image, ask)

    async def _lenders(self, target: Target) -> list[Holder]:
        """The other repositories behind the virtual one that was addressed."""
        if target.virtual is None:
            return []
        source = Target(target.virtual, target.image, target.name, target.base, target.scope)
        found = await self._images.holders.lenders(source)
        return [each for each in found if each.target.repository.id != target.repository.id]

    async def _read(self, identity: Identity, digest: str, holder: Holder) -> Manifest | None:
        repository, image = holder.target.repository, holder.target.image
        if not holder.is_hosted:
            await self._images.manifests.ensure(holder.target, digest)
        await self._images.rules.choose(holder.target, digest, Trace())
        view = await self._visibility.view(identity, repository, image)
        where = (repository.storage_id, repository.id, image, digest, view.keys)
        return await self._services.catalog.look(find_manifest, *where)

    async def _link(self, target: Target, digest: str, client: str, actor: Admitted) -> None:
        async def keep(holder: Holder) -> None:
            await self._images.rules.check_blob(holder.target, digest)
            if not holder.is_hosted:
                await self._images.blobs.keep(holder.target.repository, target.image, parse_digest(digest))

        async for holder, _ in self._ask_members(target, keep):
            if await self._mount(holder, target, digest, client, actor) or await self._copy(
                holder, target, digest, client, actor
            ):
                return

    async def _ask_members(
        self, target: Target, ask: Callable[[Holder], Awaitable[T]]
    ) -> AsyncIterator[tuple[Holder, T]]:
        """
        Iterate over the members that have something, with what ``ask`` returns for each.

        :raises UpstreamFailed: an upstream failed, and what the other members have was not enough
        """
        failure: UpstreamFailed | None = None
        for holder in await self._lenders(target):
            try:
                found = await ask(holder)
            except (NotFound, RuleRefused):
                continue
            except UpstreamDenied:
                raise  # a decision, see L{Holders.first}
            except UpstreamFailed as error:
                failure = failure or error
                continue
            yield holder, found
        if failure is not None:
            raise failure

    async def _mount(self, holder: Holder, target: Target, digest: str, client: str, actor: Admitted) -> bool:
        mounted: bool = await self._services.catalog.write(
            mount_blob,
            target.repository,
            target.image,
            holder.target.repository,
            holder.target.image,
            digest,
            client,
            actor,
            self._services.clock.now_ms(),
        )
        return mounted

    async def _copy(self, holder: Holder, target: Target, digest: str, client: str, actor: Admitted) -> bool:
        """Store a blob of another storage again. False if the member does not have it."""
        source, services = holder.target.repository, self._services
        found = await services.catalog.look(_find_blob, source, holder.target.image, digest)
        if found is None:
            return False
        async with services.content.stage(target.repository) as staged:
            chunks = services.files.chunks(source.storage_id, found.locator, found.size)
            blob = await staged.receive(chunks, expect_size=found.size, expected={"sha256": found.sha256})
            await services.content.change_with_blobs(
                link_blob, target.repository, staged, [blob], target.image, blob, digest, None, client, actor
            )
        return True


def _find_blob(r: Reader, repository: Repository, image: str, digest: str) -> LinkedBlob | None:
    found = find_linked(r, repository.storage_id, repository.id, image, digest)
    return found if found is not None and found.locator else None
