"""
Answers ``npm access``: the visibility of a package, and the permissions of its owners.

Visibility and permissions belong to the repository, and are changed through the management API. Owners of a package
are informative only: an owner gets no permission by being added, and loses none by being removed.
"""

from __future__ import annotations

from typing import Any

from pkgrepo.formats.npm.authorization import RepositoryRequests, check_access, permissions_of
from pkgrepo.formats.npm.packument.requests import PackageRequests
from pkgrepo.gateway.answers.content import is_private
from pkgrepo.gateway.bodies import read_object
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import NO_STORE, Answer, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Package, Repository

AT_ONCE = 20  # owners whose permissions are looked up in one turn of the reactor


class AccessRequests(RepositoryRequests):
    """Answers requests about the access to packages of one repository."""

    def __init__(self, services: Services, repository: Repository, packages: PackageRequests) -> None:
        super().__init__(services, repository)
        self._packages = packages

    async def show(self, request: Request, name: str, what: str) -> Answer:
        """
        The visibility of a package, which is that of its repository, or the permissions of its owners.

        ``what`` is the last part of the path: ``visibility`` for npm, ``access`` for pnpm 12, ``collaborators``.

        :raises NotFound: no such package
        """
        await self._authorize_read(request, name)
        await self._packages.check_exists(request, name)
        package, public = await self._packages.find_package(name), not is_private(self._repository)
        answers: dict[str, Any] = {
            "visibility": {"public": public},
            "access": {"access": "public" if public else "restricted", "publish_requires_tfa": False},
        }
        value = answers.get(what, {})
        if what not in answers and package is not None:
            value = await self._collaborators(request, package)
        return json_answer(value, headers=NO_STORE)

    async def _collaborators(self, request: Request, package: Package) -> dict[str, str]:
        """The permission of each owner who has one."""
        found: dict[str, str] = {}
        for count, each in enumerate(package.meta.get("maintainers", ()), 1):
            permissions = await permissions_of(self._services, self._repository, each["name"], [package.name])
            if permissions:
                found[each["name"]] = permissions[package.name]
            if count % AT_ONCE == 0:
                await request.next_turn()
        return found

    async def set_access(self, request: Request, name: str) -> Answer:
        """
        Accept the access that the package already has.

        :raises Forbidden: another access was asked for; a package has that of its repository
        """
        await self._authorize_change(request, Action.WRITE, name, "change the access of")
        await self._packages.package(name)
        check_access(self._repository, (await read_object(request)).get("access"))
        return json_answer({"ok": True}, headers=NO_STORE)
