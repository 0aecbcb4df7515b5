"""Images of a registry by its address: the registry API of OCI distribution, with bearer tokens if it wants them."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec
from attrs import frozen

from pkgrepo.errors import Invalid, NotFound, UpstreamFailed
from pkgrepo.formats.container.documents import MANIFEST_SIZE
from pkgrepo.formats.container.names import find_digest, is_tag
from pkgrepo.formats.container.proxied.lists import ACCEPT_LISTS
from pkgrepo.formats.container.proxied.manifests import ACCEPT
from pkgrepo.formats.container.proxied.registry_client import RegistryClient, UpstreamTokens, api_of, next_page
from pkgrepo.gateway.imported.described import count_of
from pkgrepo.gateway.imported.places import Site
from pkgrepo.model import ReadLimits
from pkgrepo.proxy.caching.search_order import Place
from pkgrepo.storage.catalog.imported_downloads import Downloads
from pkgrepo.untrusted.strict_json import ERRORS

PAGE: Final = 1000
HARBOR_PAGE: Final = 100  # the most that it allows
MOST_PAGES: Final = 10_000
CATALOG_SCOPE: Final = "registry:catalog:*"


class _Catalog(msgspec.Struct):
    repositories: list[str] | None = None


class _Tags(msgspec.Struct):
    tags: list[str] | None = None


class _Index(msgspec.Struct):
    manifests: list[dict[str, Any]] | None = None


class Registry:
    """The images of a registry; see L{pkgrepo.formats.container.imported.images.ImageStore}."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._tokens = UpstreamTokens(site.seconds)
        self._client = RegistryClient(site.upstreams, self._tokens)

    async def names(self) -> AsyncIterator[str]:
        """The names in the catalog of the registry. :raises Invalid: it has none that these credentials may read"""
        base, prefix = api_of(self._site.url)
        rest: str | None = f"_catalog?n={PAGE}"
        for _ in range(MOST_PAGES):
            if rest is None:
                return
            try:
                data, link = await self._read_catalog(f"{base}/{rest}")
            except NotFound:
                raise Invalid("the registry has no catalog for these credentials: give names of images") from None
            for name in self._decode(data, _Catalog).repositories or ():
                if name.startswith(prefix):
                    yield name.removeprefix(prefix)
            rest = next_page(rest, link)

    async def tags(self, name: str) -> Mapping[str, str]:
        """The digest of the manifest of each tag."""
        found: dict[str, str] = {}
        rest: str | None = f"tags/list?n={PAGE}"
        for _ in range(MOST_PAGES):
            if rest is None:
                break
            async with self._client.open(self._place(name), "GET", rest, ACCEPT_LISTS) as response:
                data, link = await response.read(), response.headers.get("Link")
            for tag in self._decode(data, _Tags).tags or ():
                if tag not in found:
                    found[tag] = await self._digest(name, tag) if is_tag(tag) else ""
            rest = next_page(rest, link)
        return found

    async def manifest(self, name: str, digest: str) -> tuple[bytes, str]:
        """The bytes of a manifest, and its media type."""
        async with self._client.open(self._place(name), "GET", f"manifests/{digest}", ACCEPT) as response:
            media_type = (response.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
            return await response.read(), media_type

    async def referrers(self, name: str, digest: str) -> Sequence[str]:
        """What the registry lists; one without the API lists it by a tag, which is taken as any other tag."""
        found: list[str] = []
        rest: str | None = f"referrers/{digest}"
        try:
            for _ in range(MOST_PAGES):
                if rest is None:
                    break
                async with self._client.open(self._place(name), "GET", rest, ACCEPT_LISTS) as response:
                    data, link = await response.read(), response.headers.get("Link")
                listed = [each.get("digest") for each in self._decode(data, _Index).manifests or ()]
                found += [each for each in listed if isinstance(each, str) and find_digest(each) is not None]
                rest = next_page(rest, link)
        except NotFound:
            pass
        return found

    def blob(self, name: str, digest: str) -> RegistryBlob:
        """The place of a blob."""
        return RegistryBlob(self._client, self._place(name), digest, self._site.largest)

    async def _digest(self, name: str, tag: str) -> str:
        """The digest of the manifest of a tag, by its head, or else by its bytes; empty if there is none."""
        try:
            async with self._client.open(self._place(name), "HEAD", f"manifests/{tag}", ACCEPT) as response:
                digest = response.headers.get("Docker-Content-Digest") or ""
            if find_digest(digest) is None:
                data, _ = await self.manifest(name, tag)
                digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        except NotFound:
            return ""
        return digest

    async def _read_catalog(self, url: str) -> tuple[bytes, str | None]:
        upstream, authorization = self._site.upstream, ""
        for _ in range(2):
            fields = {"Accept": "application/json", **({"Authorization": authorization} if authorization else {})}
            limits = ReadLimits(MANIFEST_SIZE, None)
            async with upstream.open("GET", url, fields, limits=limits, accept=(401, 403)) as response:
                if response.status == 200:
                    return await response.read(), response.headers.get("Link")
                if response.status != 401 or authorization:
                    break
                challenge = response.headers.get("WWW-Authenticate")
            authorization = await self._tokens.renew(upstream, self._place(""), CATALOG_SCOPE, challenge, None)
        raise NotFound("document", "_catalog")

    def _place(self, name: str) -> Place:
        return Place(self._site.repository_id, self._site.upstream.route, name)

    def _decode(self, data: bytes, kind: type[Any]) -> Any:
        try:
            return msgspec.json.decode(data, type=kind)
        except ERRORS:
            raise UpstreamFailed(self._site.name, "it sent a list that cannot be used") from None


@frozen
class RegistryBlob:
    """The bytes of a blob in a registry; see L{pkgrepo.gateway.imported.items.Place}."""

    client: RegistryClient
    image: Place
    digest: str
    largest: int
    modified_ms: int | None = None

    async def chunks(self) -> AsyncIterator[bytes]:
        """The bytes as they arrive."""
        limits = ReadLimits(self.largest)
        async with self.client.open(self.image, "GET", f"blobs/{self.digest}", limits=limits) as response:
            async for chunk in response:  # type: ignore[attr-defined]
                yield chunk


class Harbor(Registry):
    """
    The images of Harbor, whose API lists them: only its admins may read the catalog.

    Written from the documentation of its API (``/api/v2.0/repositories``). With ``projects`` only theirs are listed.
    """

    def __init__(self, site: Site, projects: Sequence[str]) -> None:
        super().__init__(site)
        self._projects = projects
        self._pulls: dict[str, int] = {}

    async def names(self) -> AsyncIterator[str]:
        """The names of the images, which begin with those of their projects."""
        root = self._site.url.removesuffix("/v2")
        places = [f"projects/{quote(each, safe='')}/repositories" for each in self._projects] or ["repositories"]
        for place in places:
            for page in range(1, MOST_PAGES):
                listed = await self._site.json(f"{root}/api/v2.0/{place}?page={page}&page_size={HARBOR_PAGE}")
                some = listed if isinstance(listed, list) else []
                for each in some:
                    name = each.get("name") if isinstance(each, dict) else None
                    if isinstance(name, str):
                        self._pulls[name] = count_of(each.get("pull_count"))
                        yield name
                if len(some) < HARBOR_PAGE:
                    break

    async def pulls(self, name: str) -> Downloads | None:
        """The pulls of an image that was listed; the API has none of its tags."""
        count = self._pulls.pop(name, 0)
        return Downloads(count) if count else None
