"""Requests that yank, delete or mark published versions; no standard client has commands for these."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.index.indexing import index_project
from pkgrepo.formats.python.names import COMPANIONS
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Actor, Repository, VersionState
from pkgrepo.repositories.publish import package_changes
from pkgrepo.untrusted.strict_json import decode_typed

STATUSES = ("active", "archived", "quarantined", "deprecated")  # PEP 792
BODY_LIMIT = 64 * 1024
REASON_LIMIT = 1000


class ChangeRequests:
    """Changes to one hosted repository. Permissions are checked by the caller."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository

    async def read_reason(self, request: Request) -> str:
        """The ``reason`` from the query, a form or a JSON body; empty if there is none."""
        found = request.parameter(b"reason")
        if found is not None:
            return _reason(found)
        value = await _read(request)
        return _reason(value.get("reason", ""))

    async def yank(self, project: str, version: str, reason: str, actor: Actor) -> Answer:
        """Yank a version: installers ignore it unless it is pinned (PEP 592)."""
        return await self._set_state(project, version, VersionState.YANKED, reason, actor)

    async def unyank(self, project: str, version: str, actor: Actor) -> Answer:
        """Undo a yank."""
        return await self._set_state(project, version, VersionState.LIVE, "", actor)

    async def delete(self, project: str, version: str, path: str | None, actor: Actor) -> Answer:
        """
        Remove the distribution at a path with its companions, or a whole version if ``path`` is None.

        :raises NotFound: it does not exist
        """
        paths = None
        if path is not None:
            companions = [path + suffix for suffix in COMPANIONS]
            paths = [
                path,
                *await self._services.catalog.look(package_changes.present, self._repository.id, companions),
            ]
        burn = not self._repository.policy.get("reuse_deleted_names", False)
        gone = await self._services.publisher.change(
            package_changes.remove_files, self._repository, project, version, paths, actor, index_project, burn
        )
        return json_answer({"deleted": gone})

    async def set_status(self, request: Request, project: str, actor: Actor) -> Answer:
        """
        Set a project's status from ``{"status": ..., "reason": ...}``.

        :raises Invalid: no such status
        """
        value = await _read(request)
        status = value.get("status")
        if status not in STATUSES:
            raise Invalid(f"status must be one of {', '.join(STATUSES)}", "/status")
        meta = {"status": status, "status_reason": _reason(value.get("reason", ""))}
        await self._services.publisher.change(
            package_changes.set_package_meta, self._repository, project, meta, actor, index_project
        )
        return json_answer({"name": project, "status": status})

    async def _set_state(self, project: str, version: str, state: VersionState, reason: str, actor: Actor) -> Answer:
        changed = await self._services.publisher.change(
            package_changes.set_version_state, self._repository, project, version, state, reason, actor, index_project
        )
        return json_answer({"name": project, "version": changed.text, "state": changed.state, "reason": changed.reason})


async def _read(request: Request) -> dict[str, Any]:
    body = await request.body.read_all(BODY_LIMIT)
    if not body:
        return {}
    if (request.header(b"content-type") or b"").startswith(b"application/x-www-form-urlencoded"):
        return {name: values[0] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
    return decode_typed(body, dict[str, Any], "the body is not a JSON object")


def _reason(value: object) -> str:
    if not isinstance(value, str):
        raise Invalid("reason must be a string", "/reason")
    return " ".join(value.split())[:REASON_LIMIT]
