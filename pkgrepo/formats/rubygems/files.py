"""Answers reads of gems, and of their specifications in the legacy index."""

from __future__ import annotations

from pkgrepo.errors import existing
from pkgrepo.gateway.package_files import answer_file
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Repository
from pkgrepo.storage.catalog.packages import files
from pkgrepo.storage.catalog.packages.summaries import package_and_version_of_file


class FileRequests:
    """The files of one hosted repository."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository

    async def file(self, request: Request, path: str) -> Answer:
        """
        The file at a public path. The file of a yanked version is at another one.

        The gem that it belongs to is looked up: a file name cannot be split into name, version and platform.

        :raises NotFound: there is none
        """
        package = await self._services.catalog.look(find_package_key, self._repository.id, path)
        identity = await self._services.access.admit(request, Action.READ, self._repository, package)
        answer = None
        if package is not None:
            answer = await answer_file(self._services, request, identity, self._repository, package, path)
        return existing(answer, "file", path.rsplit("/", 1)[-1])


def find_package_key(r: Reader, repository_id: int, path: str) -> str | None:
    """The key of the package that the file at a path belongs to, None if there is no file."""
    file = files.find_file(r, repository_id, path)
    found = None if file is None else package_and_version_of_file(r, file.id)
    return None if found is None else found[0]
