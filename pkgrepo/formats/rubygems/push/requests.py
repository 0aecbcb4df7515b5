"""Answers ``gem push``: the gem is the body, or the part ``gem`` of a form."""

from __future__ import annotations

from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.refusals import UNREADABLE, UNSAVED
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.services import Services
from pkgrepo.gateway.uploads import check_declared_length, receive_body
from pkgrepo.http.answers import Answer, Refusal, text_answer
from pkgrepo.http.reading.multipart import MultipartLimits, read_form
from pkgrepo.http.request import Request
from pkgrepo.model import Action, BlobInfo, Repository
from pkgrepo.repositories.publish.staged import Staged

from .release import InspectedGem, Releases, read_gem

GEM_PART: Final = "gem"
FORM_OVERHEAD: Final = 16 * 1024 * 1024  # bytes that a form may have besides the gem: attestations
FORM_LIMITS: Final = MultipartLimits(parts=16)

_MULTIPART: Final = b"multipart/form-data"
_CONTENT: Final = "content"  # the pointer of errors in the archive itself, not in what it says


class PushRequests:
    """Pushes to one hosted repository."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository
        self._releases = Releases(services, repository)

    async def push(self, request: Request) -> Answer:
        """
        Publish the gem in the request. Pushing the same bytes again succeeds.

        :raises Conflict: what is published forbids it; :raises Forbidden: the caller may not push this gem
        :raises Refusal: the body is no gem, or one that clients could not install
        """
        admit = self._services.access.admit
        await admit(request, Action.WRITE, self._repository)
        async with self._services.publisher.stage(self._repository) as staged:
            blob = await self._receive(request, staged)
            if not blob.size:
                raise Refusal(400, "the body must be a gem, and it is empty", "empty")
            gem = await self._inspect(staged, blob)
            spec = gem.spec
            identity = await admit(
                request, Action.WRITE, self._repository, spec.name
            )  # again: the body may have taken hours
            changed = await self._releases.publish(staged, blob, gem, actor_of(request, identity))
        if not changed:
            return text_answer(f"Gem was already pushed: {spec.name} ({spec.full_version})")
        done = f"Successfully registered gem: {spec.name} ({spec.full_version})"
        return text_answer("\n".join((done, *request.notes)))  # gem prints the body

    async def _receive(self, request: Request, staged: Staged) -> BlobInfo:
        limit = self._services.max_upload
        content_type = request.header(b"content-type") or b""
        if not content_type.lower().startswith(_MULTIPART):
            # curl's --data-binary says that the body is a form in the address encoding: the type means nothing.
            return await receive_body(request, staged, limit=limit)
        check_declared_length(request, limit + FORM_OVERHEAD)
        blob: BlobInfo | None = None
        async for part in read_form(request.body, content_type, FORM_LIMITS):
            if part.name == GEM_PART:
                if blob is not None:
                    raise Refusal(400, "the form has more than one part named 'gem'", "bad_form")
                declared = request.body.declared
                expected = None if declared is None else min(declared, limit)
                blob = await staged.receive(part, limit=limit, expect_size=expected)
        if blob is None:
            raise Refusal(400, "the form has no part named 'gem'", "bad_form")
        return blob

    async def _inspect(self, staged: Staged, blob: BlobInfo) -> InspectedGem:
        try:
            return await staged.inspect(self._services.pools.cpu, blob, read_gem)
        except Invalid as error:
            template = UNREADABLE if error.pointer == _CONTENT else UNSAVED
            raise Refusal(422, template.format(why=error.message), "invalid") from None
