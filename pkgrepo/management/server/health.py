"""Health checks: liveness and readiness."""

from __future__ import annotations

from attrs import frozen

from pkgrepo.errors import PkgrepoError
from pkgrepo.http.answers import NO_STORE, Answer, json_answer
from pkgrepo.http.request import Request
from pkgrepo.interfaces import IBlobStore
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.model import Storage
from pkgrepo.storage.catalog.people.users import has_users
from pkgrepo.storage.catalog.server.layout_pending import Backlog, backlog
from pkgrepo.storage.free_space import free_and_total, low_water

from .schema import Health

OK = "ok"
DEGRADED = "degraded"
UNAVAILABLE = "unavailable"
STATUSES = (OK, DEGRADED, UNAVAILABLE)  # from the best to the worst


@frozen
class Check:
    """The result of one check: its subject, one of ``STATUSES``, and a sentence for admins."""

    name: str
    status: str = OK
    sentence: str = OK


class HealthChecks:
    """Answers health checks of load balancers and supervisors."""

    def __init__(self, services: ManagementServices) -> None:
        self._services = services

    async def live(self, _request: Request) -> Answer:
        """Always 200: an answer shows that the reactor runs."""
        return json_answer(Health(status="ok"), headers=NO_STORE)

    async def ready(self, request: Request) -> Answer:
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
        status, checks = await self._checked()
        identity = await self._services.shared.access.identify(request)
        shown = None
        if identity.admin and identity.limits is None:
            shown = {each.name: each.sentence for each in (*checks, await self._layout())}
        health = Health(status=status, checks=shown)
        return json_answer(health, 503 if status == UNAVAILABLE else 200, headers=NO_STORE)

    async def run(self) -> tuple[str, list[Check]]:
        """The status of the server, and all checks."""
        status, checks = await self._checked()
        return status, [*checks, await self._layout()]

    async def _checked(self) -> tuple[str, list[Check]]:
        """The checks that decide on the status."""
        checks = [
            await self._catalog(),
            await self._database(),
            *[await self._storage(each) for each in self._active()],
        ]
        return max((each.status for each in checks), key=STATUSES.index), checks

    async def _catalog(self) -> Check:
        try:
            await self._services.shared.catalog.look(has_users)
            await self._services.shared.registry.refresh()
        except PkgrepoError as error:
            return Check("catalog", UNAVAILABLE, str(error))
        return Check("catalog")

    async def _database(self) -> Check:
        services = self._services
        try:
            free, total = await services.shared.pools.disk(free_and_total, services.database_dir)
        except OSError as error:
            return Check("database", UNAVAILABLE, error.strerror or "its folder is not to be seen")
        return self._room("database", free, total)

    def _active(self) -> list[Storage]:
        return [storage for storage in self._services.shared.registry.storages() if storage.active]

    async def _storage(self, storage: Storage) -> Check:
        name = f"storage {storage.name}"
        try:
            store: IBlobStore = await self._services.stores.open(storage)
            capacity = store.capacity()
        except (PkgrepoError, OSError) as error:
            return Check(name, UNAVAILABLE, str(error))
        return Check(name) if capacity is None else self._room(name, *capacity)

    def _room(self, name: str, free: int, total: int) -> Check:
        least = low_water(total, self._services.low_water)
        if free >= least:
            return Check(name)
        return Check(name, DEGRADED, f"only {free} bytes are free, {least} are kept free (data.low_water)")

    async def _layout(self) -> Check:
        """What could not be shown is tried again, and keeps the server from nothing."""
        name = "readable layout"
        try:
            found: Backlog = await self._services.shared.catalog.scan(backlog)
        except PkgrepoError as error:
            return Check(name, DEGRADED, str(error))
        count = sum(found.failed.values())
        if not count:
            return Check(name)
        return Check(name, DEGRADED, f"{count} entries could not be shown, and are tried again: {found.reason}")
