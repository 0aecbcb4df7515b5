"""Downloads of the export of advisories from the address of a mirror, and the parts that load it."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, Final
from urllib.request import getproxies_environment

import msgspec

from pkgrepo.concurrency.pools import Pools
from pkgrepo.config import Config
from pkgrepo.errors import UpstreamFailed
from pkgrepo.model import ReadLimits
from pkgrepo.outbound.urls import parse_url
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.proxy.upstream.response import UpstreamResponse
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.repositories.advisories.refresh import AdvisoryRefresh, Downloaded

from .core import Core
from .upstreams import upstream_settings

MOST_BYTES: Final = 4 * 1024**3  # of a zip; that of all ecosystems has 1 GiB
LONGEST_S: Final = 3600.0  # seconds that a download may take
FILE: Final = "advisories.download"  # in the data folder; a crash leaves it until the next download
NAME: Final = "advisories.source"  # what errors name


class Mirror:
    """
    Downloads a zip from its address, with the settings, the guard and the proxies of upstreams.

    The validator of a download is its ETag and its Last-Modified, whichever the server sends.
    """

    def __init__(self, core: Core, config: Config, reactor: Any) -> None:
        self._pools: Pools = core.pools
        self._clock = core.clock
        self._path = config.data.dir / FILE
        settings = upstream_settings(config.proxy, getproxies_environment())
        self._upstreams = Upstreams(settings, reactor, authorize=lambda _route: None)

    async def download(self, url: str, validator: str) -> Downloaded | None:
        """The zip, or None if it is still the one with the validator. :raises UpstreamFailed: it cannot be had"""
        route = Route(name=NAME, target=parse_url(url))
        known: dict[str, str] = msgspec.json.decode(validator) if validator else {}
        fields = {
            name: known[field]
            for field, name in (("etag", "If-None-Match"), ("date", "If-Modified-Since"))
            if field in known
        }
        limits = ReadLimits(MOST_BYTES, LONGEST_S)
        async with self._upstreams.of(0, route).open("GET", url, fields, limits=limits) as response:
            if response.status == 304 and fields:
                return None
            if response.status != 200:
                raise UpstreamFailed(NAME, f"it answers {response.status}")
            await self._receive(response)
            found = {"etag": response.headers.get("ETag"), "date": response.headers.get("Last-Modified")}
        given = {field: text for field, text in found.items() if text}
        now_ms = self._clock.now_ms()
        return Downloaded(
            path=self._path,
            exported_ms=min(now_ms, _read_date(given.get("date"), now_ms)),
            validator=msgspec.json.encode(given).decode() if given else "",
        )

    async def close(self) -> None:
        """Abort the requests."""
        await self._upstreams.close()

    async def _receive(self, response: UpstreamResponse) -> None:
        disk = self._pools.disk
        file: IO[bytes] = await disk(_open, self._path)
        try:
            async for chunk in response.chunks():
                await disk(file.write, chunk)
        except BaseException:  # also if it is cancelled: half an export may have gigabytes
            await disk(partial(self._path.unlink, missing_ok=True))
            raise
        finally:
            await disk(file.close)


def make_refresh(core: Core, config: Config, mirror: Mirror) -> AdvisoryRefresh:
    """The work of the job that loads the export."""
    return AdvisoryRefresh(core.context, config.advisories.source, mirror.download, core.downloads.flush)


def _open(path: Path) -> IO[bytes]:
    return path.open("wb")


def _read_date(text: str | None, otherwise_ms: int) -> int:
    try:
        return otherwise_ms if text is None else int(parsedate_to_datetime(text).timestamp() * 1000)
    except ValueError:
        return otherwise_ms
