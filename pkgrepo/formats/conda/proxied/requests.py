"""Answers reads of the documents of a proxy or virtual channel. Permissions are checked by the caller."""

from __future__ import annotations

from pkgrepo.errors import existing
from pkgrepo.formats.conda.index.caches import IndexCaches
from pkgrepo.formats.conda.index.documents import Form
from pkgrepo.formats.conda.index.requests import IndexRequests, in_coding_for, shards_index
from pkgrepo.formats.conda.paths import ShardPath
from pkgrepo.gateway.answers.answer_cache import CachedAnswer
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request
from pkgrepo.model import Repository

from .channels import MemberChannels
from .members import ChannelState, find_members


class MemberIndexRequests(IndexRequests):
    """Reads of one channel that is not hosted."""

    def __init__(
        self, services: Services, repository: Repository, caches: IndexCaches, channels: MemberChannels
    ) -> None:
        super().__init__(services, repository, caches)
        self._channels = channels

    async def answer(self, request: Request, form: Form, *, negotiated: bool = False) -> Answer:
        """
        A document; if ``negotiated``, in the content coding that the client prefers.

        :raises NotFound, UpstreamFailed: see L{find_members} and L{MemberChannels.get}
        """
        services, repository, channels = self._services, self._repository, self._channels
        generation, config_serial = services.catalog.generation(), services.registry.serial
        wanted = in_coding_for(request, form) if negotiated else form
        state = await self._state(request, form)
        document, opens_ms = await channels.get(services, repository, state, wanted)

        def again(other: Request) -> Answer | None:
            made = in_coding_for(other, form) if negotiated else form
            found = channels.ready(repository, state, made)
            return None if found is None else self.render(found, made, negotiated=negotiated)

        if state.cacheable:
            ends = [each for each in (state.ends_ms, opens_ms) if each is not None]
            services.answer_cache.put(
                request,
                CachedAnswer(
                    repository,
                    package=None,
                    negotiate=again,
                    fresh=lambda r: state.fresh(r, config_serial),
                    size=len(document.body) if isinstance(document.body, bytes) else 0,
                    generation=generation,
                    ends_s=min(ends) // 1000 if ends else 0,
                ),
            )
        return self.render(document, wanted, negotiated=negotiated)

    async def find_shard(self, request: Request, path: ShardPath) -> tuple[str, bytes]:
        """A shard of the index, or of one before that is still there, with the name of its package."""
        services, repository, digest = self._services, self._repository, bytes.fromhex(path.sha256)
        found = self._channels.find_shard(repository, path.subdir, digest)
        if found is None:
            form = shards_index(path.subdir)
            await self._channels.get(services, repository, await self._state(request, form), form)
            found = self._channels.find_shard(repository, path.subdir, digest)
        return existing(found, "shard", path.sha256)

    async def _state(self, request: Request, form: Form) -> ChannelState:
        return await find_members(
            self._services, self._repository, form.subdir, form.document, revalidate=request.revalidates
        )
