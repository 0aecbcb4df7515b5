"""The route that purges the cache of a proxy repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.http.answers import Answer
from pkgrepo.management.api.access_rules import EDITORS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.route import DRY_RUN, Table
from pkgrepo.management.jobs.waiting import STILL_RUNNING, WAIT, run_job
from pkgrepo.proxy.upkeep.purge import PURGE, Selection
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.untrusted.text import seconds_of

from .routes import proxy_of
from .schema import Purged, PurgeWish


class CachePurges(Handlers):
    """Removes what is cached. Clients make it be fetched again."""

    table = Table("upstreams")

    @table.route(
        "POST",
        "/repository/<repository>/cache/purge",
        access=EDITORS,
        summary="Purge the cache of a proxy repository",
        body=PurgeWish,
        answer=Purged,
        query=(WAIT, DRY_RUN),
        audit="cache.purge",
        further=STILL_RUNNING,
    )
    async def purge(self, call: Call, body: PurgeWish) -> Purged | Answer:
        """
        Removes cached packages, and what is known about packages. An empty body removes everything.

        One purge runs at a time in each repository: while another one runs, the answer is 409 with its Location.
        Repositories of other types have no cache (404).
        """
        repository, dry = proxy_of(call.repository), body.dry_run or call.flag("dry_run")
        selection, actor, purge = self._selection(call, body), call.actor, self._services.cache_purge
        given = {name: value for name, value in msgspec.to_builtins(body).items() if value not in (None, False)}

        async def work(progress: Progress) -> Mapping[str, Any]:
            await self._services.shared.proxy.settle()
            if body.limits:
                report = await purge.evict(repository, actor, progress, dry_run=dry)
            else:
                report = await purge.purge(repository, selection, actor, progress, dry_run=dry)
            found: Mapping[str, Any] = msgspec.to_builtins(Purged.of(report, dry_run=dry))
            self._services.audit_log.enqueue(call.entry(detail={**given, **found}))
            return found

        data = {"on": f"repository {repository.path!r}"}
        job = await run_job(self._services, call, kind=PURGE, key=repository.uid, data=data, work=work)
        call.audited = True  # by the work, which may end after the call
        return job if isinstance(job, Answer) else msgspec.convert(job.result, Purged)

    def _selection(self, call: Call, body: PurgeWish) -> Selection:
        chosen = body.package, body.pattern, body.older_than
        if body.limits and (body.documents_only or any(each is not None for each in chosen)):
            raise Invalid("limits takes no conditions", "/limits")
        older_s = None if body.older_than is None else seconds_of(body.older_than)
        format_ = self._services.formats[call.repository.format]
        return Selection(
            package=None if body.package is None else format_.package_key(body.package),
            pattern=body.pattern,
            before_ms=None if older_s is None else call.now_ms - int(older_s * 1000),
            documents_only=body.documents_only,
        )
