"""From the archive of a deployment to its stored files."""

from __future__ import annotations

from collections.abc import Callable, Generator
from io import FileIO
from typing import Any

from pkgrepo.archives.source import Source
from pkgrepo.errors import Conflict
from pkgrepo.formats.maven.configuration import DeployRequirements
from pkgrepo.formats.maven.deploy.contents.storing import Event, Storing, file_events
from pkgrepo.formats.maven.deploy.contents.survey import Contents, survey
from pkgrepo.formats.maven.deploy.contents.validation import check_contents, check_digests
from pkgrepo.formats.maven.deploy.problems import Problems
from pkgrepo.formats.maven.deploy.publishing import Publishing, Refused
from pkgrepo.formats.maven.deploy.stepping import Steps
from pkgrepo.formats.maven.paths import ArtifactFile
from pkgrepo.gateway.services import Services
from pkgrepo.model import BlobInfo, Repository
from pkgrepo.model.deployments import Deployment, StagedFile
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import deployments

from .pushers import Pusher

BUNDLE = "the bundle"  # in sentences about it


class Validating:
    """Validates deployments of one hosted repository."""

    def __init__(self, services: Services, repository: Repository, publishing: Publishing) -> None:
        self._services = services
        self._repository = repository
        self._publishing = publishing

    async def validate(self, pusher: Pusher, deployment: Deployment, archive: BlobInfo, staged: Staged) -> None:
        """
        Store the files in the archive of a deployment that is VALIDATING, which is VALIDATED then.

        Files that an earlier call has stored are not stored again.

        :raises Refused: its files are not valid, or may not be published
        """
        contents, problems = Contents(), Problems()
        limit = self._services.max_upload
        surveying = await self._steps(staged, archive, lambda source: survey(source, limit, contents, problems))
        async with surveying as batches:
            async for _ in batches:
                pass
        requirements = DeployRequirements.of(self._repository)
        await self._services.pools.cpu(check_contents, contents, requirements, problems)
        if problems:
            raise Refused(problems)
        await self._publishing.check_rules(pusher.identity, contents.files.values())
        await self._services.catalog.write(deployments.set_size, deployment.id, archive.size + contents.size)
        wanted = await self._missing(deployment, contents, problems)
        storing = Storing(self._services, self._repository, deployment, staged, contents=contents, problems=problems)
        events: Steps[Event] = await self._steps(staged, archive, lambda source: file_events(source, limit, wanted))
        await storing.store(events)
        if problems:
            raise Refused(problems)
        await self._publishing.check_signatures(deployment)
        if not deployment.automatic:  # else it is published next, which checks the same
            await self._publishing.check_places(pusher.identity, deployment)
        now_ms = self._services.clock.now_ms()
        if not await self._services.catalog.write(
            deployments.finish_validation, deployment.id, contents.size, leased=deployment.automatic, now_ms=now_ms
        ):
            raise Conflict("the deployment is not VALIDATING any more")

    async def _missing(self, deployment: Deployment, contents: Contents, problems: Problems) -> dict[str, ArtifactFile]:
        """The files that are not stored yet; those that are stored are compared with their checksums."""
        stored: list[StagedFile] = await self._services.catalog.scan(deployments.staged_files, deployment.id)
        whole = {each.path: each.blob for each in stored if each.blob.locator}
        for path, blob in whole.items():
            check_digests(path, contents.checksums.get(path, {}), blob.digests, problems)
        return {path: file for path, file in contents.files.items() if path not in whole}

    async def _steps(self, staged: Staged, archive: BlobInfo, read: Callable[[Source], Any]) -> Steps[Any]:
        """Steps over an archive, which is closed at their end."""
        return Steps(self._services.pools.cpu, _steps_of(open(await staged.as_file(archive), "rb", buffering=0), read))


def _steps_of(file: FileIO, read: Callable[[Source], Any]) -> Generator[Any, None, None]:
    with file:  # or when the object is freed: a generator that never starts does not come here
        yield from read(Source(file.fileno(), BUNDLE))
