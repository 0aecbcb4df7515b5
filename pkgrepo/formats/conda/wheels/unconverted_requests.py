"""Answers which wheels of the repository beside a channel are no conda packages, and why."""

from __future__ import annotations

from typing import Final

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.gateway.answers.content import document_cache_control
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Repository
from pkgrepo.storage.catalog.packages import followed_wheels

DOCUMENT: Final = "unconverted.json"
PAGE: Final = 1000  # wheels in an answer
LONGEST_CURSOR: Final = 1000  # characters


class UnconvertedRequests:
    """The wheels that one channel could not convert."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository

    async def list_page(self, request: Request) -> Answer:
        """
        Up to ``PAGE`` wheels after the path in the query ``after``, each with path, sha256 and reason; ``next`` is the
        next ``after``, or null. The caller needs the right to read the whole repository.

        :raises NotFound: the channel belongs to no other repository; :raises Invalid: ``after`` is too long
        """
        services, repository = self._services, self._repository
        await services.access.admit(request, Action.READ, repository)
        if repository.parent is None:
            raise NotFound("document", DOCUMENT)
        after = request.parameter(b"after") or ""
        if len(after) > LONGEST_CURSOR:
            raise Invalid(f"after is longer than {LONGEST_CURSOR} characters", "after")
        found = await services.catalog.scan(
            followed_wheels.list_unconverted, repository.id, after=after, limit=PAGE + 1
        )
        shown = [{"path": each.path, "sha256": each.sha256, "reason": each.reason} for each in found[:PAGE]]
        following = found[PAGE - 1].path if len(found) > PAGE else None
        headers = ((b"Cache-Control", document_cache_control(repository)),)
        return json_answer({"wheels": shown, "next": following}, headers=headers)
