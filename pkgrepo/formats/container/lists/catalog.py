"""
The list of the images of the server (``_catalog``).

A virtual repository has the images that its members would serve under their names; of upstreams only what is kept.
Images of a hidden repository are listed for callers who may change its settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from pkgrepo.auth.tokens.bearer import CATALOG_GRANT
from pkgrepo.formats.container.access.authorization import CATALOG_SCOPE, Authorization
from pkgrepo.formats.container.access.ping import PingRequests, check_read
from pkgrepo.formats.container.refusals import VERSION
from pkgrepo.formats.container.trust.visibility import Visibility
from pkgrepo.gateway.image_addresses import ImageAddresses
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer, Fields, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Identity, Repository, RepositoryType
from pkgrepo.proxy.private_names import find_private
from pkgrepo.proxy.resolving.leaves import Leaf
from pkgrepo.storage.catalog.images.manifests import list_images

from .paging import next_page, parse_page


class CatalogRequests:
    """Lists images, in bytewise order."""

    def __init__(
        self,
        services: Services,
        addresses: ImageAddresses,
        authorization: Authorization,
        visibility: Visibility,
        ping: PingRequests,
    ) -> None:
        self._services = services
        self._addresses = addresses
        self._authorization = authorization
        self._visibility = visibility
        self._ping = ping

    async def get(self, request: Request) -> Answer:
        """
        A page of the images that the caller may read. Each has the name under which it was pushed last.

        :raises Refusal: credentials are required, or the page size is not a number
        """
        check_read(request, "this list is only read")
        identity = await self._authorization.authenticate(request, CATALOG_SCOPE)
        self._ping.require_credentials(request, CATALOG_SCOPE)
        if identity.scoped is False:
            sentence = "the token was not issued for this"
            raise self._authorization.challenge(request, CATALOG_SCOPE, sentence, "insufficient_scope")
        await self._services.registry.refresh()
        size, last = parse_page(request)
        limits = identity.limits
        viewer = identity
        if identity.via == "bearer" and limits is not None and CATALOG_GRANT in limits.scopes:
            # the scope of a catalog token contains no repositories: list the images that its owner may read
            viewer = await self._authorization.token_owner(identity)
        names: list[str] = []
        default = self._addresses.default(request.authority)
        for prefix, repository in self._addresses.listed(request.authority):
            if len(names) > size:
                break
            if prefix < last and not last.startswith(prefix):
                continue
            after = last[len(prefix) :] if last.startswith(prefix) else ""
            alone = False if default is not None and repository.id == default.id else None
            names += await self._images(viewer, repository, prefix, after, size + 1 - len(names), alone)
        if default is not None:
            names += await self._images(viewer, default, "", last, size + 1, alone=True)
            names.sort()
        headers: Fields = (*VERSION, (b"Cache-Control", b"private, no-cache"))
        if len(names) > size:
            names = names[:size]
            if names:
                headers += (next_page(b"/v2/_catalog", last=names[-1], n=str(size)),)
        return json_answer({"repositories": names}, headers=headers)

    async def _images(
        self, viewer: Identity, repository: Repository, prefix: str, after: str, count: int, alone: bool | None
    ) -> list[str]:
        """Up to ``count`` names of images that the viewer may read in a repository; ``alone``: see L{list_images}."""
        names: list[str] = []
        if not repository.active or not await self._services.access.may_list(viewer, repository):
            return names
        scan = self._services.catalog.scan
        leaves = [each for each in self._services.proxy.resolver.ways(repository) if each.repository.active]
        while len(names) < count:
            found = [
                await scan(list_images, each.repository.id, after=after, limit=count, alone=alone) for each in leaves
            ]
            page = sorted({*chain(*found)})[:count]
            readable = {*await self._services.access.allowed(viewer, Action.READ, repository, page)}
            served: set[str] = set()
            for leaf, images in zip(leaves, found, strict=True):
                served |= await self._served(viewer, repository, leaf, [each for each in images if each in readable])
            names += [prefix + image for image in sorted(served)]
            if len(page) < count:
                break
            after = page[-1]
        return names[:count]

    async def _served(self, viewer: Identity, repository: Repository, leaf: Leaf, images: Sequence[str]) -> set[str]:
        """Those of the images of a hosted or proxy repository that a repository serves under their names."""
        if leaf.repository.type is RepositoryType.HOSTED:
            return {*await self._visibility.filter_images(viewer, leaf.repository, images)}
        if repository.type is not RepositoryType.VIRTUAL:
            return {*images}
        leaves = self._services.proxy.resolver.leaves(repository)
        return {*images} - await find_private(self._services.catalog, leaves, leaf, images)
