"""
The commands of ``npm stage`` (npm 11.19, 12): versions that wait for an approval.

Each ``npm stage publish`` opens a stage of its own, in the transaction that publishes the version to it. Stages of
several packages, which the API opens, are listed with an item for each version, and are approved whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from attrs import evolve, frozen

from pkgrepo.errors import Conflict, FileBurned, FileExists, Invalid, NotFound
from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.authorization import require, require_login, require_publishing
from pkgrepo.formats.npm.document_requests import Receiver, largest_body, parse_document
from pkgrepo.formats.npm.paths import tarball_path
from pkgrepo.formats.npm.publish.envelope import read_publication
from pkgrepo.formats.npm.publish.requests import make_release
from pkgrepo.formats.npm.refusals import version_taken
from pkgrepo.gateway.bodies import check_declared_length
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.package_files import answer_file
from pkgrepo.gateway.publishing import stages as gateway
from pkgrepo.gateway.publishing.stages import Opening, StageContents, as_staged, find_stage, prepare_stage
from pkgrepo.gateway.publishing.virtual import publish_context
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Response, json_response
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import SYSTEM, Action, Actor, Identity, Repository
from pkgrepo.model.admission import Admitted
from pkgrepo.proxy.virtual import publish_target
from pkgrepo.repositories.clock import format_time
from pkgrepo.repositories.publish.index import Indexer
from pkgrepo.repositories.publish.releases import Release, publish_release
from pkgrepo.repositories.upkeep.staging import Inside
from pkgrepo.storage.catalog.packages import packages, tags, versions
from pkgrepo.storage.catalog.server import stages
from pkgrepo.storage.catalog.server.audit import Entry
from pkgrepo.storage.catalog.server.repositories import get_repository
from pkgrepo.storage.catalog.server.stages import OPEN, StageItem

PER_PAGE: Final = 100  # items of a page; npm asks for so many
SEVERAL: Final = "the stage {} has several versions: install them from {}"

Item = tuple[StageContents, StageItem]


@frozen
class _Opened:
    """A stage with its version; ``surplus`` are locators of copies that the catalog did not need."""

    uid: str
    surplus: tuple[str, ...]


async def stage(context: Context[object], request: Request, name: str) -> Response:
    """
    Stage the version in the body: ``POST /-/stage/package/<name>``.

    :raises Forbidden: the caller may not publish it, or the repository has or had the version
    :raises Invalid: the document or the tarball is refused
    """
    base = context.repository
    context = await publish_context(context, request)
    services, target = context.services, context.repository
    as_stage = evolve(context, repository=as_staged(target))
    identity = await services.access.identify(request)
    await require(as_stage, identity, Action.WRITE, name, "stage")
    check_declared_length(request, largest_body(services.max_upload))
    async with services.content.stage(target, name) as staged:
        received = await Receiver(request, staged, max_tarball=services.max_upload).receive()
        if received.tarball is None:
            raise Invalid("the document has no tarball attached", "_attachments")
        publication = await parse_document(
            context, received.document, partial(read_publication, received.document, name)
        )
        identity = await services.access.identify(request)  # again: the body may have taken hours
        actor = await require_publishing(as_stage, identity, name, "stage", actor_of(request, identity))
        await services.content.check(target, [name])
        release, publishing = await make_release(
            context, request, staged, publication, received.tarball, identity, actor
        )
        opening = await prepare_stage(services, identity, base, package=name)
        entry = Entry(actor, "stage.create", target.path, detail={"content": [f"{name}@{publication.version.text}"]})
        blobs = [each.blob for each in release.files]
        opened: _Opened = await services.content.change_with_blobs(
            _open, target, staged, blobs, opening, release, publishing, entry, actor
        )
    return json_response({"ok": True, "id": name, "stageId": opened.uid}, 201, headers=NO_STORE)


def _open(
    tx: Transaction,
    _target: Repository,
    opening: Opening,
    release: Release,
    indexer: Indexer,
    entry: Entry,
    actor: Admitted,
    now_ms: int,
) -> _Opened:
    """The write command on the target: open a stage, and publish a release to it."""
    opened = opening.open(tx, actor, now_ms)
    gateway.with_row(entry, now_ms)(tx, opened)
    hosted = get_repository(tx, stages.staged_id(tx, opened.uid))
    published = publish_release(tx, hosted, release, actor, indexer, now_ms)
    return _Opened(opened.uid, published.surplus)


async def list_stages(context: Context[object], request: Request) -> Response:
    """``GET /-/stage``: the versions that wait for an approval, those of one ``package`` if it is named."""
    identity = await require_login(context, request)
    page, count = _number(request, b"page", 0), min(_number(request, b"perPage", PER_PAGE), PER_PAGE)
    target = publish_target(context.services.registry, context.repository)
    wanted = (request.parameter(b"package") or "").strip()
    found = await gateway.list_stages(context.services, identity, target.id, OPEN, None, stages.MOST_OPEN)
    items = [(staged, each) for staged in found for each in staged.content if wanted in ("", each.package)]
    shown = items[page * count : (page + 1) * count]
    records = await context.services.catalog.scan(_records, shown)
    return json_response({"items": records, "total": len(items)}, headers=NO_STORE)


async def show_stage(context: Context[object], request: Request, uid: str) -> Response:
    """``GET /-/stage/<id>``. :raises NotFound: there is none that the caller may see"""
    _, staged = await _find(context, request, uid)
    [record] = await context.services.catalog.scan(_records, [(staged, each) for each in staged.content[:1]])
    if len(staged.content) > 1:
        record["packages"] = [each.title for each in staged.content]
    if staged.stage.state != OPEN:
        record["state"] = staged.stage.state
    return json_response(record, headers=NO_STORE)


async def stage_tarball(context: Context[object], request: Request, uid: str) -> Response:
    """
    ``GET /-/stage/<id>/tarball``.

    :raises NotFound: there is no such stage; :raises Conflict: it has several versions
    """
    identity, staged = await _find(context, request, uid)
    if staged.hosted is None:
        raise NotFound("tarball", uid)
    if len(staged.content) > 1:
        address = "" if staged.overlay is None else context.services.repository_url(request, staged.overlay)
        raise Conflict(SEVERAL.format(uid, address))
    [item] = staged.content
    path = tarball_path(item.key, item.name)
    response = await answer_file(context.services, request, identity, staged.hosted, item.key, path)
    if response is None:
        raise NotFound("tarball", uid)
    return response


async def approve(context: Context[object], request: Request, uid: str) -> Response:
    """
    ``POST /-/stage/<id>/approve``: publish what is staged.

    :raises Forbidden: the caller may not approve it, or a version of it was published meanwhile
    :raises Conflict: it has ended
    """
    identity, staged = await _find(context, request, uid)
    actor = actor_of(request, identity)
    try:
        await gateway.approve(context.services, identity, staged, actor, inside=_row(context, staged, "approve", actor))
    except (FileExists, FileBurned):
        raise version_taken(", ".join(each.name for each in staged.content)) from None
    return json_response({"ok": True, "stageId": staged.stage.uid}, headers=NO_STORE)


async def reject(context: Context[object], request: Request, uid: str) -> Response:
    """
    ``DELETE /-/stage/<id>``: give up what is staged.

    :raises Forbidden: the caller neither staged it nor may approve it; :raises Conflict: it has ended
    """
    identity, staged = await _find(context, request, uid)
    actor = actor_of(request, identity)
    inside = _row(context, staged, "reject", actor)
    await gateway.reject(context.services, identity, staged, "", actor, inside=inside)
    return json_response({"ok": True}, headers=NO_STORE)


def _row(context: Context[object], staged: StageContents, verb: str, actor: Actor) -> Inside:
    """The row of the audit log, as the API writes it."""
    place = f"{staged.target.path}+stage-{staged.stage.uid}"
    detail = {"content": [each.title for each in staged.content]}
    return gateway.with_row(Entry(actor, f"stage.{verb}", place, detail=detail), context.services.clock.now_ms())


async def _find(context: Context[object], request: Request, uid: str) -> tuple[Identity, StageContents]:
    """The caller, and a stage of this repository that they may see. :raises NotFound: there is none"""
    identity = await require_login(context, request)
    staged = await find_stage(context.services, identity, uid, context.repository)
    if not staged.content:
        raise NotFound("stage", uid)  # npm knows no stage without a version
    return identity, staged


def _number(request: Request, name: bytes, default: int) -> int:
    """A number in the query. :raises Invalid: it is not a number"""
    text = request.parameter(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Invalid(f"{name.decode()} is a number", name.decode())
    return int(text)


def _records(r: Reader, items: Sequence[Item]) -> list[dict[str, Any]]:
    """The items as npm shows them."""
    return [_record(r, staged, item) for staged, item in items]


def _record(r: Reader, staged: StageContents, item: StageItem) -> dict[str, Any]:
    record: dict[str, Any] = {
        "id": staged.stage.uid,
        "packageName": item.package,
        "version": item.name,
        "createdAt": format_time(staged.stage.created_at),
        "actor": staged.stage.actor,
        "actorType": "user",
    }
    if staged.stage.description:
        record["description"] = staged.stage.description
    package = None if staged.hosted is None else packages.find_package(r, staged.hosted.id, item.key)
    found = None if package is None else versions.find_version(r, package.id, semver.parse_version(item.name).key)
    if package is not None and found is not None:
        named = (tags.find_tag(r, package.id, each) for each in tags.names_by_version(r, package.id).get(found.id, ()))
        record["tag"] = ", ".join(each.name for each in named if each is not None and each.actor != SYSTEM.name)
        record["shasum"] = found.meta.get("dist", {}).get("shasum")
    return record
