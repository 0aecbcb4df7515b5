"""Health checks, which probes ask for from the start on: they need nothing of the management API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from attrs import frozen
from twisted.web.resource import IResource

from pkgrepo.errors import PkgrepoError
from pkgrepo.http.answering.dispatch import App, SegmentResource, answer_with, refuse_unrouted
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Response, json_response
from pkgrepo.interfaces import IBlobStore
from pkgrepo.management.api.problems import ERRORS
from pkgrepo.management.api.schema import Record
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.model import Storage
from pkgrepo.storage.catalog.blobs.blobs import count_suspects
from pkgrepo.storage.catalog.descriptions import count_undescribed, undescribed_since
from pkgrepo.storage.catalog.people.users import has_users
from pkgrepo.storage.catalog.server.layout_pending import Backlog, backlog
from pkgrepo.storage.catalog.server.webhooks import disabled_webhooks, failing_webhooks
from pkgrepo.storage.free_space import free_and_total, low_water

OK = "ok"
DEGRADED = "degraded"
UNAVAILABLE = "unavailable"
STATUSES = (OK, DEGRADED, UNAVAILABLE)  # from the best to the worst
UNSET_UP: Final = "ok: not configured"
LATE_S: Final = 10.0  # seconds; searches learn of a change some 0.1 s after it


class Health(Record):
    """The status of the server: ok, degraded or unavailable. Only admins get the results of the checks."""

    status: str
    checks: dict[str, Any] | None = None


def branches(services: ManagementServices) -> dict[str, IResource]:
    """Resources by the first segment of the path."""
    alive = answering_get(live)
    return {"healthz": alive, "health": alive, "readyz": answering_get(partial(ready, services))}


def answering_get(handler: Callable[[Request], Awaitable[Response]]) -> IResource:
    """A resource that answers GET at one path."""
    app = App()
    refuse_unrouted(app, ERRORS)

    @app.route("/", methods=["GET"])
    async def handle(request: Request) -> None:
        await answer_with(request, ERRORS, lambda: handler(request))

    return SegmentResource(app)


@frozen
class Check:
    """The result of one check: its subject, one of ``STATUSES``, and a sentence for admins."""

    name: str
    status: str = OK
    sentence: str = OK


async def live(_request: Request) -> Response:
    """Always 200: an answer shows that the reactor runs."""
    return json_response(Health(status="ok"), headers=NO_STORE)


async def ready(services: ManagementServices, request: Request) -> Response:
    """
    Whether the server can answer requests; admins also see each check.

    ===========  ======  ================================================================================
    status       code    when
    ===========  ======  ================================================================================
    ok           200     every check succeeded
    degraded     200     reading works, but a disk has less free space than the low-water mark: nothing can be
                         published, and the readable layout is not updated until there is space again
    unavailable  503     the catalog does not answer, or an active storage cannot be opened
    ===========  ======  ================================================================================
    """
    status, checks = await _checked(services)
    identity = await services.shared.access.identify(request)
    shown = None
    if identity.admin and identity.limits is None:
        shown = {each.name: each.sentence for each in (*checks, *await _others(services))}
    health = Health(status=status, checks=shown)
    return json_response(health, 503 if status == UNAVAILABLE else 200, headers=NO_STORE)


async def run_checks(services: ManagementServices) -> tuple[str, list[Check]]:
    """The status of the server, and all checks."""
    status, checks = await _checked(services)
    return status, [*checks, *await _others(services)]


async def _others(services: ManagementServices) -> list[Check]:
    """The checks that admins learn of, and that do not decide on the status."""
    checks = (_bytes, _layout, _searches, _webhooks, _advisories, _backups, _twins)
    found = [await each(services) for each in checks]
    return [*found, *map(_directory, services.callers.directories)]


async def _checked(services: ManagementServices) -> tuple[str, list[Check]]:
    """The checks that decide on the status."""
    checks = [
        await _catalog(services),
        await _database(services),
        *[await _storage(services, each) for each in services.shared.registry.storages() if each.active],
    ]
    return max((each.status for each in checks), key=STATUSES.index), checks


async def _catalog(services: ManagementServices) -> Check:
    try:
        await services.shared.catalog.look(has_users)
        await services.shared.registry.refresh()
    except PkgrepoError as error:
        return Check("catalog", UNAVAILABLE, str(error))
    return Check("catalog")


async def _database(services: ManagementServices) -> Check:
    try:
        free, total = await services.shared.pools.disk(free_and_total, services.database_dir)
    except OSError as error:
        return Check("database", UNAVAILABLE, error.strerror or "its folder is not to be seen")
    return _room(services, "database", free, total)


async def _storage(services: ManagementServices, storage: Storage) -> Check:
    name = f"storage {storage.name}"
    try:
        store: IBlobStore = await services.maintenance.stores.open(storage)
        capacity = store.capacity()
    except (PkgrepoError, OSError) as error:
        return Check(name, UNAVAILABLE, str(error))
    return Check(name) if capacity is None else _room(services, name, *capacity)


def _room(services: ManagementServices, name: str, free: int, total: int) -> Check:
    least = low_water(total, services.low_water)
    if free >= least:
        return Check(name)
    return Check(name, DEGRADED, f"only {free} bytes, or inodes for them, are free; {least} are kept (data.low_water)")


async def _bytes(services: ManagementServices) -> Check:
    """What is known to be damaged is not served, and keeps the server from nothing else."""
    name, catalog = "stored bytes", services.shared.catalog
    try:
        counts = {
            each.name: await catalog.scan(count_suspects, each.id) for each in services.shared.registry.storages()
        }
    except PkgrepoError as error:
        return Check(name, DEGRADED, str(error))
    if not any(counts.values()):
        return Check(name)
    found = " and ".join(f"{count} blobs of {storage}" for storage, count in counts.items() if count)
    return Check(name, DEGRADED, f"{found} are damaged or missing, and in no other place: see pkgrepo verify")


async def _layout(services: ManagementServices) -> Check:
    """What could not be shown is tried again, and keeps the server from nothing."""
    name = "readable layout"
    try:
        found: Backlog = await services.shared.catalog.scan(backlog)
    except PkgrepoError as error:
        return Check(name, DEGRADED, str(error))
    count = sum(found.failed.values())
    if not count:
        return Check(name)
    return Check(name, DEGRADED, f"{count} entries could not be shown, and are tried again: {found.reason}")


async def _searches(services: ManagementServices) -> Check:
    """Searches that do not know of everything yet keep the server from nothing."""
    catalog = services.shared.catalog
    try:
        since_ms = await catalog.scan(undescribed_since)
        count = await catalog.scan(count_undescribed)
    except PkgrepoError as error:
        return Check("searches", DEGRADED, str(error))
    late_s = 0.0 if since_ms is None else (services.shared.clock.now_ms() - since_ms) / 1000
    if late_s < LATE_S:
        return Check("searches")
    return Check("searches", DEGRADED, f"{count} changes are not found yet, the first of which is {late_s:.0f} s old")


async def _webhooks(services: ManagementServices) -> Check:
    """Those whose receivers fail, or were switched off for that; they keep the server from nothing."""
    catalog, problems = services.shared.catalog, []
    try:
        if off := await catalog.scan(disabled_webhooks):
            problems.append(f"switched off because their receivers failed: {', '.join(off)}")
        if failing := await catalog.scan(failing_webhooks):
            problems.append(f"their receivers fail: {', '.join(failing)}")
    except PkgrepoError as error:
        return Check("webhooks", DEGRADED, str(error))
    return Check("webhooks", DEGRADED, "; ".join(problems)) if problems else Check("webhooks")


def _directory(directory: Any) -> Check:
    """A directory that is away keeps others from nothing, nor those who have logged in."""
    name = f"directory {directory.name}"
    return Check(name, DEGRADED, f"it cannot be asked: {directory.trouble}") if directory.trouble else Check(name)


async def _advisories(services: ManagementServices) -> Check:
    """Without a source there is nothing to check; old ones keep the server from audits, and from knowing of malware."""
    try:
        known = await services.shared.advisories.knowledge()
    except PkgrepoError as error:
        return Check("advisories", DEGRADED, str(error))
    if not known.has_source:
        return Check("advisories", OK, f"{UNSET_UP}; malware is not looked for")
    if known.problem:
        found = services.shared.registry.policy.malware is not None
        said = "malware that was found later is not known" if found else "malware is not looked for"
        return Check("advisories", DEGRADED, f"{known.problem}; {said}")
    if services.shared.registry.policy.malware is None:
        return Check("advisories", OK, "ok: known malware is served (advisories.block_malware)")
    return Check("advisories")


async def _backups(services: ManagementServices) -> Check:
    """Without a destination there is nothing to check; old ones keep the server from nothing."""
    if services.backups.plan is None:
        return Check("backup", OK, UNSET_UP)
    try:
        problem = await services.backups.problem()
    except PkgrepoError as error:
        return Check("backup", DEGRADED, str(error))
    return Check("backup", DEGRADED, problem) if problem else Check("backup")


async def _twins(services: ManagementServices) -> Check:
    """Old ones keep the server from nothing."""
    if not services.twins.plans:
        return Check("twins", OK, UNSET_UP)
    try:
        problem = await services.twins.problem()
    except PkgrepoError as error:
        return Check("twins", DEGRADED, str(error))
    return Check("twins", DEGRADED, problem) if problem else Check("twins")
