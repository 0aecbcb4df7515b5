"""Answers GET and HEAD of files and of their checksums."""

from __future__ import annotations

from functools import partial

from pkgrepo.errors import NotFound
from pkgrepo.formats.maven.paths import ArtifactFile, Checksum, FilePath, PlainFile
from pkgrepo.formats.maven.push_rules import require_any
from pkgrepo.gateway.package_files import answer_file, find_package_file
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Identity, Repository
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.resolving.found_files import Want

from .heads import checksum_answer, present_file


class FileRequests:
    """Downloads from one repository."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository

    async def admit(self, request: Request, target: FilePath) -> tuple[Identity, str]:
        """The caller, who may read what is at a path, and the package key for which that is so."""
        identity = await self._services.access.identify(request)
        return identity, await require_any(self._services, identity, Action.READ, self._repository, target)

    async def file(self, request: Request, target: ArtifactFile | PlainFile) -> Answer:
        """A stored file. :raises NotFound: there is none"""
        identity, key = await self.admit(request, target)
        present = partial(present_file, self._repository, target)
        answer = await answer_file(
            self._services, request, identity, self._repository, key, target.path, present=present
        )
        if answer is None:
            raise _no_file(target)
        return answer

    async def checksum(self, request: Request, target: Checksum) -> Answer:
        """
        The checksum of a stored file, computed when that arrived.

        :raises NotFound: there is no such file
        """
        assert isinstance(target.of, (ArtifactFile, PlainFile))
        _, key = await self.admit(request, target.of)
        generation = self._services.catalog.generation()
        found = await find_package_file(self._services, self._repository, key, target.of.path, Want.DIGESTS)
        if found is None:
            raise _no_file(target.of)
        file = found.file
        digests = file.source.digests if isinstance(file, RemoteFile) else file.digests
        if target.algorithm not in digests:
            raise _no_file(target.of)
        modified_s = None if isinstance(file, RemoteFile) else int(file.created_at.timestamp())
        answer = checksum_answer(self._repository, target.of, target.algorithm, digests, modified_s)
        if found.fresh is not None:
            self._services.answer_cache.put_answer(
                request,
                self._repository,
                answer,
                package=key,
                fresh=found.fresh,
                ends_s=found.ends_s,
                generation=generation,
            )
        return answer


def _no_file(target: FilePath) -> NotFound:
    return NotFound("file", target.path.rpartition("/")[2])
