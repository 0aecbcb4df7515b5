"""Whether the server lives, and whether it is ready."""

from __future__ import annotations

from pkgrepo.errors import PkgrepoError
from pkgrepo.http.answers import Answer, json_answer
from pkgrepo.http.request import Request
from pkgrepo.interfaces import IBlobStore
from pkgrepo.storage.catalog.identity import has_users
from pkgrepo.storage.catalog.layout_pending import Backlog, backlog

from .schemas.server import Health
from .services import ManagementServices

NO_STORE = ((b"Cache-Control", b"no-store"),)


class HealthChecks:
    """Answers for load balancers and supervisors."""

    def __init__(self, services: ManagementServices) -> None:
        self._services = services

    async def live(self, _request: Request) -> Answer:
        """Always fine: whoever gets an answer knows that the reactor turns."""
        return json_answer(Health(status="ok"), headers=NO_STORE)

    async def ready(self, request: Request) -> Answer:
        """
        200 when the catalog answers and every active storage takes uploads, else 503; admins see the checks.

        They see also what the readable layout lacks, which keeps nobody from being served.
        """
        checks = {"catalog": self._catalog(), **await self._storages()}
        fine = all(verdict == "ok" for verdict in checks.values())
        identity = await self._services.access.identify(request)
        shown = None
        if identity.admin and identity.limits is None:
            shown = {**checks, "readable layout": await self._layout()}
        health = Health(status="ok" if fine else "unavailable", checks=shown)
        return json_answer(health, 200 if fine else 503, headers=NO_STORE)

    def _catalog(self) -> str:
        try:
            self._services.catalog.look(has_users)
        except PkgrepoError as error:
            return str(error)
        return "ok"

    async def _layout(self) -> str:
        try:
            found: Backlog = await self._services.catalog.scan(backlog)
        except PkgrepoError as error:
            return str(error)
        count = sum(found.failed.values())
        return f"{count} entries could not be shown, and are tried again: {found.reason}" if count else "ok"

    async def _storages(self) -> dict[str, str]:
        verdicts: dict[str, str] = {}
        for storage in self._services.registry.storages():
            if not storage.active:
                continue
            try:
                store: IBlobStore = await self._services.stores.open(storage)
                free, _total = store.capacity()
            except (PkgrepoError, OSError) as error:
                verdicts[f"storage {storage.name}"] = str(error)
                continue
            low = self._services.settings.low_water
            verdicts[f"storage {storage.name}"] = "ok" if free >= low else f"only {free} bytes are free"
        return verdicts
