"""Requests that yank, delete or mark published versions; no standard client has commands for these."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.index.indexing import index_project
from pkgrepo.formats.python.index.requests import IndexCaches, find_path
from pkgrepo.formats.python.names import COMPANIONS, project_key
from pkgrepo.formats.python.versions import version_key
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response, json_response
from pkgrepo.model import Action, Actor, Version, VersionState
from pkgrepo.repositories.publish import package_changes
from pkgrepo.untrusted.strict_json import decode_typed

STATUSES = ("active", "archived", "quarantined", "deprecated")  # PEP 792
BODY_LIMIT = 64 * 1024
REASON_LIMIT = 1000


async def yank(context: Context[object], request: Request, project: str, version: str) -> Response:
    """Yank a version: installers ignore it unless it is pinned (PEP 592). The request may have a reason."""
    key, actor = await _admit(context, request, project)
    reason: Any = request.parameter(b"reason")
    if reason is None:
        reason = (await _read(request)).get("reason", "")
    yanked = await context.services.content.change(
        package_changes.yank_version,
        context.repository,
        key,
        version_key(version),
        _reason(reason),
        actor,
        index_project,
    )
    return _shown(key, yanked)


async def unyank(context: Context[object], request: Request, project: str, version: str) -> Response:
    """Restore a yanked version, which is judged like publishing it."""
    key = project_key(project)
    _, admitted = await context.admit_publishing(request, key)
    live = await context.services.content.change(
        package_changes.set_version_state,
        context.repository,
        key,
        version_key(version),
        VersionState.LIVE,
        "",
        admitted,
        index_project,
    )
    return _shown(key, live)


async def delete_file(
    context: Context[IndexCaches], request: Request, project: str, version: str, filename: str
) -> Response:
    """Remove one distribution with its companions. :raises NotFound: it does not exist"""
    key, actor = await _admit(context, request, project)
    path = await find_path(context, filename, key)
    companions = [path + suffix for suffix in COMPANIONS]
    present = await context.services.catalog.look(package_changes.present, context.repository.id, companions)
    return await _delete(context, key, version, [path, *present], actor)


async def delete_version(context: Context[object], request: Request, project: str, version: str) -> Response:
    """Remove a version with all its files. :raises NotFound: it does not exist"""
    key, actor = await _admit(context, request, project)
    return await _delete(context, key, version, None, actor)


async def set_status(context: Context[object], request: Request, project: str) -> Response:
    """
    Set a project's status (PEP 792) from ``{"status": ..., "reason": ...}``, which is judged like publishing.

    :raises Invalid: no such status
    """
    key = project_key(project)
    _, admitted = await context.admit_publishing(request, key, Action.EDIT)
    value = await _read(request)
    status = value.get("status")
    if status not in STATUSES:
        raise Invalid(f"status must be one of {', '.join(STATUSES)}", "/status")
    meta = {"status": status, "status_reason": _reason(value.get("reason", ""))}
    await context.services.content.change(
        package_changes.set_package_meta, context.repository, key, meta, admitted, index_project
    )
    return json_response({"name": key, "status": status})


async def _admit(context: Context[object], request: Request, project: str) -> tuple[str, Actor]:
    key = project_key(project)
    return key, actor_of(request, await context.admit(request, Action.DELETE, key))


def _shown(project: str, changed: Version) -> Response:
    return json_response({"name": project, "version": changed.text, "state": changed.state, "reason": changed.reason})


async def _delete(
    context: Context[object], project: str, version: str, paths: list[str] | None, actor: Actor
) -> Response:
    burn = not context.repository.policy.get("reuse_deleted_names", False)
    gone = await context.services.content.change(
        package_changes.remove_files,
        context.repository,
        project,
        version_key(version),
        paths,
        actor,
        index_project,
        burn,
    )
    return json_response({"deleted": gone})


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
