"""Requests to upstream registries, by the registry API below the URL of a route."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

from pkgrepo.errors import NotFound, UpstreamFailed
from pkgrepo.formats.container.limits import MANIFEST_SIZE
from pkgrepo.interfaces import IUpstreamResponse
from pkgrepo.model import ReadLimits
from pkgrepo.outbound.urls import parse_url
from pkgrepo.proxy.upstream.instances import Upstreams

from .places import Place
from .tokens import UpstreamTokens

API: Final = "/v2"
ABSENT: Final = frozenset({404, 410})

# RFC 8288, as registries write it. A URL has no "<": so each is the beginning of one attempt only.
_NEXT = re.compile(r'<([^<>]*)>\s*;\s*rel="?next')


class RegistryClient:
    """Asks registries, and gets the tokens that they want for it."""

    def __init__(self, upstreams: Upstreams, tokens: UpstreamTokens) -> None:
        self._upstreams = upstreams
        self._tokens = tokens

    @asynccontextmanager
    async def open(
        self,
        place: Place,
        method: str,
        rest: str,
        headers: Mapping[str, str] | None = None,
        *,
        limits: ReadLimits | None = None,
    ) -> AsyncIterator[IUpstreamResponse]:
        """
        The answer to a GET or HEAD of what follows the image's name in a path; its status is 2xx.

        ``limits`` defaults to those of manifests.

        :raises NotFound: the image does not have it, or the registry does not let us pull the image
        :raises UpstreamFailed: see L{Upstream.open}, or any other status
        """
        limits = limits or ReadLimits(MANIFEST_SIZE, self._upstreams.document_timeout_s)
        upstream = self._upstreams.of(place.repository_id, place.route)
        base, prefix = api_of(place.route.url)
        scope = f"repository:{prefix}{place.name}:pull"
        url = f"{base}/{prefix}{place.name}/{rest}"
        authorization = await self._tokens.find(upstream, place, scope)
        for is_last in (False, True):
            fields = {**(headers or {}), **({"Authorization": authorization} if authorization else {})}
            async with upstream.open(method, url, fields, limits=limits, accept=(401,), subject=place.name) as response:
                if response.status != 401:
                    _check_status(place, response.status)
                    yield response
                    return
                challenge = response.headers.get("WWW-Authenticate")
                is_own = parse_url(response.url).origin == place.route.target.origin
            if is_last:
                raise NotFound("image", place.name)
            if not is_own:
                raise upstream.misconfigured("the host to which it redirects wants credentials")
            authorization = await self._tokens.renew(upstream, place, scope, challenge, authorization)


def next_page(rest: str, link: str | None) -> str | None:
    """
    The rest of the path of the next page of a list, by the Link field of this one; None if this is the last.

    Only the query of the link counts: behind other names and paths registries do not know their own address.
    """
    found = _NEXT.search(link or "")
    query = "" if found is None else found[1].partition("?")[2]
    return f"{rest.partition('?')[0]}?{query}" if query else None


def api_of(url: str) -> tuple[str, str]:
    """
    The URL of the registry API of a route with this URL, and what stands before names of images there.

    The latter is empty or ends with a slash. The URL of a route may end with the address of the API, and that at the
    root may have the beginning of names after it.
    """
    path = urlsplit(url).path
    if path.startswith(f"{API}/"):
        return f"{url.removesuffix(path)}{API}", f"{path.removeprefix(f'{API}/')}/"
    return (url if path.endswith(API) else f"{url}{API}"), ""


def _check_status(place: Place, status: int) -> None:
    if status in ABSENT:
        raise NotFound("image", place.name)
    if status >= 300:
        raise UpstreamFailed(place.route.name, f"it answered with status {status}")
