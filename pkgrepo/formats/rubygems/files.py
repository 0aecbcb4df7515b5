"""Answers reads of gems, and of their specifications in the legacy index."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from pkgrepo.errors import NotFound, existing
from pkgrepo.gateway.package_files import answer_file
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Repository, RepositoryType
from pkgrepo.storage.catalog.packages import files
from pkgrepo.storage.catalog.packages.summaries import package_and_version_of_file

from .names import is_name

MOST_NAMES: Final = 4  # that are asked of upstreams for one file


class FileRequests:
    """The files of one repository."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository

    async def file(self, request: Request, path: str, full_name: str) -> Answer:
        """
        The file at a public path, of the gem with this full name. The file of a yanked version is at another path.

        The gem that it belongs to is looked up: a file name cannot be split into name, version and platform.

        :raises NotFound: there is no such file; :raises UpstreamFailed: that is not known
        """
        services, repository = self._services, self._repository
        for package in await self._packages(path, full_name):
            identity = await services.access.admit(request, Action.READ, repository, package)
            try:
                answer = await answer_file(services, request, identity, repository, package, path)
            except NotFound:
                continue
            if answer is not None:
                return answer
        await services.access.admit(request, Action.READ, repository)
        return existing(None, "file", path.rsplit("/", 1)[-1])

    async def _packages(self, path: str, full_name: str) -> list[str]:
        """The gems that a file may belong to: the one that has it, or else those that upstreams are asked about."""
        for leaf in self._services.proxy.resolver.leaves(self._repository):
            package = await self._services.catalog.look(find_package_key, leaf.id, path)
            if package is not None:
                return [package]
        if self._repository.type is RepositoryType.HOSTED:
            return []
        return list(islice(possible_names(full_name), MOST_NAMES))


def possible_names(full_name: str) -> Iterator[str]:
    """The names that a full name may begin with, longest first: a version begins with a digit."""
    end = len(full_name)
    while (end := full_name.rfind("-", 0, end)) > 0:
        if full_name[end + 1 : end + 2].isdigit() and is_name(full_name[:end]):
            yield full_name[:end]


def find_package_key(r: Reader, repository_id: int, path: str) -> str | None:
    """The key of the package that the file at a path belongs to, None if there is no file."""
    file = files.find_file(r, repository_id, path)
    found = None if file is None else package_and_version_of_file(r, file.id)
    return None if found is None else found[0]
