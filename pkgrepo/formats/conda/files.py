"""Answers reads of packages."""

from __future__ import annotations

from pkgrepo.errors import existing
from pkgrepo.gateway.package_files import answer_file
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Repository

from .layout import package_path
from .paths import PackagePath


class FileRequests:
    """The files of one repository."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository

    async def file(self, request: Request, path: PackagePath) -> Answer:
        """A package. :raises NotFound: there is none"""
        services, repository = self._services, self._repository
        identity = await services.access.admit(request, Action.READ, repository, path.name.name)
        public = package_path(path.subdir, path.name)
        answer = await answer_file(services, request, identity, repository, path.name.name, public)
        return existing(answer, "file", str(path.name))
