"""Images that are kept of a repository that is followed; see L{pkgrepo.replication.copies.Copies}."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from attrs import frozen

from pkgrepo.errors import NotFound, UpstreamFailed
from pkgrepo.formats.container.names import find_digest
from pkgrepo.formats.container.proxied.holders import tag_key
from pkgrepo.formats.container.proxied.lists import UpstreamImages
from pkgrepo.formats.container.target import Target
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader
from pkgrepo.model import SYSTEM, Repository
from pkgrepo.proxy.configuration import proxy_config_of, rules_of
from pkgrepo.replication.source import RemoteVersion
from pkgrepo.repositories.images.cached import drop_tag, evict_manifest
from pkgrepo.repositories.policy.refusals import RuleRefused
from pkgrepo.storage.catalog.images.contents import content_digests
from pkgrepo.storage.catalog.images.manifests import has_manifest, is_listed
from pkgrepo.storage.catalog.packages.packages import find_package
from pkgrepo.storage.catalog.packages.pins import pinned_units
from pkgrepo.storage.catalog.packages.tags import every_tag_name, find_tag

MANIFESTS, BLOBS = "/manifests/", "/blobs/"  # in the paths of the files of an image


@frozen
class _Kept:
    """What is kept of a tag or digest: whether there is such a one, an index lists it, or it is pinned."""

    there: bool = False
    listed: bool = False
    pinned: bool = False


class ImageCopies:
    """The images of all proxies; ``images`` are those of upstreams."""

    def __init__(self, services: Services, images: UpstreamImages) -> None:
        self._catalog = services.catalog
        self._content = services.content
        self._images = images

    async def kept(self, repository: Repository, package: str) -> Sequence[str]:
        """The tags and the digests of manifests that are kept."""
        found: Sequence[str] = await self._catalog.scan(_read_names, repository.id, package)
        return found

    async def keep(self, repository: Repository, package: str, version: RemoteVersion) -> None:
        """Bring a tag or manifest to the state of the upstream."""
        name, is_digest = version.version, ":" in version.version
        follows = proxy_config_of(repository).follows
        wanted = follows is not None and follows.wants(f"{package}{'@' if is_digest else ':'}{name}")
        target = Target(repository, package, package, f"/repositories/{repository.path}/v2", "")
        if not is_digest:
            kept: _Kept = await self._catalog.look(_read_kept, repository.id, package, name)
            if kept.there or wanted:
                found = await self._images.manifests.ensure(target, name, revalidate=True)
                if found.stale:
                    route = proxy_config_of(repository).routes[0]
                    raise UpstreamFailed(route.name, f"it does not confirm the tag {name} of {package}")
        if not wanted:
            return
        for each in version.files:
            digest = find_digest(each.path.rpartition("/")[2])
            if digest is None:
                continue
            with suppress(RuleRefused):  # of this one alone
                if MANIFESTS in each.path:
                    await self._images.manifests.ensure(target, str(digest))
                elif BLOBS in each.path:
                    await self._images.blobs.keep(repository, package, digest)

    async def drop(self, repository: Repository, package: str, version: str) -> None:
        """Evict a tag or manifest that the upstream has removed. A manifest that an index lists stays with it."""
        kept: _Kept = await self._catalog.look(_read_kept, repository.id, package, version)
        if not kept.there or kept.pinned or rules_of(repository).keep_removed:
            return
        with suppress(NotFound):  # it went meanwhile
            if ":" not in version:
                key = tag_key(package, version)
                await self._content.change(drop_tag, repository, package, version, key, None)
            elif not kept.listed:
                await self._content.change(evict_manifest, repository, package, version, SYSTEM)

    async def renew(self, repository: Repository, package: str) -> None:
        """Nothing: tags and referrers are asked for again when a client wants them, since they were marked as old."""


def _read_names(r: Reader, repository_id: int, image: str) -> list[str]:
    package = find_package(r, repository_id, image)
    return [] if package is None else [*every_tag_name(r, package.id), *content_digests(r, package.id)[0]]


def _read_kept(r: Reader, repository_id: int, image: str, name: str) -> _Kept:
    package = find_package(r, repository_id, image)
    if package is None:
        return _Kept()
    pinned = (image, name) in pinned_units(r, repository_id)
    if ":" in name:
        return _Kept(there=has_manifest(r, package.id, name), listed=is_listed(r, package.id, name), pinned=pinned)
    tag = find_tag(r, package.id, name)
    if tag is None:
        return _Kept()
    return _Kept(there=True, pinned=pinned or (image, tag.digest or "") in pinned_units(r, repository_id))
