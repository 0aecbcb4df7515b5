"""Proxy and virtual npm repositories over a real catalog and storage, without HTTP to clients and with a clock."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pkgrepo.composition.core import Core
from pkgrepo.composition.upstreams import ProxyParts
from pkgrepo.errors import PkgrepoError
from pkgrepo.formats.npm.packument.document import FULL
from pkgrepo.model import Repository
from pkgrepo.proxy.caching.questions import Held
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.trace import Step, Trace
from pkgrepo.repositories.publish.splicing import BASE
from pkgrepo.startup.provisioning import ensure_storages
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.server import repositories
from tests.support.catalogs import publish
from tests.support.inprocess_server import reactor, server_config
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.server import ScriptedUpstream

U = TypeVar("U", bound=ScriptedUpstream)

START_MS = 1_800_000_000_000
DAY_S = 86_400


class ManualClock:
    """A clock that stands still until C{advance} is called."""

    def __init__(self) -> None:
        self.ms = START_MS

    def now_ms(self) -> int:
        return self.ms

    def advance(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)


class ProxyWorld:
    """
    The parts of a server that serve packages of upstreams. ``clock`` is that of the proxies.

    Repositories are in the storage C{main}; ``upstreams`` are those that C{upstream} has started.
    """

    def __init__(self, folder: Path) -> None:
        self.config = server_config(folder, proxy__allow_private=["127.0.0.1"])
        self.clock = ManualClock()
        self.core = Core(self.config, reactor)
        self.core.clock = self.clock  # type: ignore[assignment]
        self.upstreams: list[ScriptedUpstream] = []

    async def start(self) -> None:
        await self.core.start()
        await ensure_storages(self.core, self.config)
        self.proxies = ProxyParts(self.core, self.config, reactor)
        self.documents, self.resolver = self.proxies.documents, self.proxies.resolver
        self.files = self.proxies.package_files
        self.format: Any = self.core.formats["npm"]

    async def stop(self) -> None:
        for each in self.upstreams:
            each.stop()
        await self.proxies.stop()
        await self.core.stop()

    async def restart(self) -> None:
        """Forget what is only in memory."""
        await self.settle()
        await self.proxies.stop()
        self.proxies = ProxyParts(self.core, self.config, reactor)
        self.documents, self.resolver = self.proxies.documents, self.proxies.resolver
        self.files = self.proxies.package_files

    async def settle(self) -> None:
        """Wait until everything is stored."""
        await self.core.wait_idle()

    def upstream(self) -> NpmUpstream:
        """Start a registry."""
        return self.started(NpmUpstream())

    def started(self, upstream: U) -> U:
        """Start an upstream that ends with the others."""
        self.upstreams.append(upstream.start())
        return upstream

    async def hosted(self, name: str = "own", **others: Any) -> Repository:
        return await self._add(name, "Hosted", {}, {}, **others)

    async def proxy(self, name: str, *upstreams: ScriptedUpstream, format: str = "npm", **settings: Any) -> Repository:
        """Add a proxy with routes ``a``, ``b`` and so on; ``settings`` are for example C{cache_ttl}, C{policy}."""
        routes = [
            {"name": route, "url": each.url, "priority": 0} for route, each in zip("abc", upstreams, strict=False)
        ]
        return await self._add(name, "Proxy", {"proxy": {"routes": routes}}, settings, format=format)

    async def virtual(
        self, name: str, *members: Repository, resolution: str = "first", format: str = "npm", **settings: Any
    ) -> Repository:
        config = {"members": [each.uid for each in members], "publish_to": None, "resolution": resolution}
        return await self._add(name, "Virtual", config, settings, format=format)

    async def change(self, repository: Repository, **changes: Any) -> Repository:
        """Change columns of a repository, such as C{active} or C{settings}, and return it as it is now."""
        await self.core.catalog.write(
            repositories.update_repository, repository.id, now_ms=self.core.clock.now_ms(), **changes
        )
        return self.now(repository)

    def now(self, repository: Repository) -> Repository:
        """Return the present value of a repository."""
        found = self.core.registry.find_id(repository.id)
        assert found is not None
        return found

    async def own(self, repository: Repository, name: str) -> None:
        """Add a package to a hosted repository."""
        await self.core.catalog.write(publish, repository, f"{name}/-/{name}-1.0.0.tgz", package=name, version="1.0.0")

    async def disown(self, repository: Repository, name: str) -> None:
        """Remove it."""
        package = await self.core.catalog.look(packages.find_package, repository.id, name)
        await self.core.catalog.write(packages.remove_package, package.id)

    async def get(self, repository: Repository, name: str, trace: Trace | None = None, **options: Any) -> Held:
        """Ask the documents of a proxy for a package."""
        request = self.format.proxied.document_request(name)
        return await self.documents.get(repository, request, trace or Trace(), **options)

    async def versions_in(self, repository: Repository, held: Held) -> list[str]:
        """Read the versions in the parts of an answer for the package ``left``."""

        def read(parts: PartsFile) -> list[str]:
            return [entry.version for entry in parts.entries()]

        return await self.documents.read(repository, self.format.proxied.document_request("left"), held, read)

    async def versions(self, repository: Repository, name: str, **options: Any) -> list[str]:
        """Return the versions of a package as a repository shows it now."""
        return list((await self.packument(repository, name, **options))["versions"])

    async def packument(self, repository: Repository, name: str, **options: Any) -> dict[str, Any]:
        """Return the document of a package as a repository shows it now."""
        state = await self.resolver.state(self.now(repository), name, **options)
        spliced, _ = await state.load(FULL)
        document: dict[str, Any] = msgspec.json.decode(spliced.joined().replace(BASE, b""))
        return document

    async def steps(self, repository: Repository, name: str, **options: Any) -> list[Step]:
        """Return the steps by which the members of a package are found, whatever the result."""
        trace = Trace()
        with suppress(PkgrepoError):
            await self.resolver.members(self.now(repository), name, trace, **options)
        return trace.steps

    async def _add(
        self,
        name: str,
        kind: str,
        config: dict[str, Any],
        settings: dict[str, Any],
        *,
        format: str = "npm",
        **others: Any,
    ) -> Repository:
        added: Repository = await self.core.catalog.write(
            repositories.add_repository,
            storage_id=self.core.registry.storages()[0].id,
            name=name,
            format=format,
            type=kind,
            visibility="public",
            config={"type": kind, **config},
            settings=settings,
            now_ms=self.core.clock.now_ms(),
            **others,
        )
        return self.now(added)


def kinds(steps: Sequence[Step]) -> list[str]:
    """Return ``repository step`` of each step, with the repository's name, and the route if there is one."""
    return [" ".join(filter(None, (each.repository.rpartition("/")[2], each.route, str(each.step)))) for each in steps]
