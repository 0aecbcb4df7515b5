"""The route that rebuilds the documents of packages from the stored files."""

from __future__ import annotations

from functools import partial

from pkgrepo.errors import Conflict, existing
from pkgrepo.http.answers import Answer
from pkgrepo.interfaces import IPathFormat
from pkgrepo.management.api.access_rules import ADMINS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.repositories.upkeep.rebuild import KIND, rebuild_documents
from pkgrepo.storage.catalog.packages import packages

from .schema import Rebuilt
from .waiting import STILL_RUNNING, WAIT, run_job


class DocumentRebuilds(Handlers):
    """Rebuilds what documents are made of; reindex restores only what the catalog does not have."""

    table = Table("repositories")

    @table.route(
        "POST",
        "/repository/<repository>/rebuild",
        access=ADMINS,
        summary="Rebuild the metadata of a repository from its files",
        answer=Rebuilt,
        query=(WAIT, Parameter("package", "Only this package, for example com.example:app.")),
        audit="repository.rebuild",
        further=STILL_RUNNING,
    )
    async def rebuild(self, call: Call) -> Rebuilt | Answer:
        """
        Only for Maven repositories (409): maven-metadata.xml is made anew of the stored files and of what was uploaded.

        One rebuild runs at a time on each repository: while another one runs, the answer is 409 with its Location.
        """
        repository, shared = call.repository, self._services.shared
        format_ = self._services.formats[repository.format]
        if not IPathFormat.providedBy(format_):
            raise Conflict(f"the documents of {repository.format} repositories are not rebuilt")
        name = call.query("package")
        key = format_.package_key(name) if name else None
        if key is not None:
            existing(await self._catalog.look(packages.package_serial, repository.id, key), "package", key)
        work = partial(
            rebuild_documents,
            shared.catalog,
            shared.publisher,
            repository,
            format_,
            format_.index,
            key,
            call.actor,
        )
        job = await run_job(
            self._services, call, kind=KIND, key=repository.uid, data={"on": repository.path}, work=work
        )
        if isinstance(job, Answer):
            return job
        return Rebuilt(job_id=job.uid, packages=job.result["packages"], changed=job.result["changed"])
