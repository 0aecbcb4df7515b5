"""Answers ``gem yank`` and requests that undo a yank."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from pkgrepo.errors import Conflict, FileExists, Invalid
from pkgrepo.formats.rubygems.indexer import apply_change
from pkgrepo.formats.rubygems.names import RUBY, check_name, check_platform, check_version, full_version
from pkgrepo.formats.rubygems.refusals import gem_not_found, version_not_found
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer, Refusal, text_answer
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Action, Actor, Repository, Version, VersionState
from pkgrepo.repositories.publish import package_changes
from pkgrepo.storage.catalog.packages import packages, versions

from .form import read_fields


@frozen
class VersionGiven:
    """A version as a request names it; ``platform`` is empty if it names none, which means ``ruby``."""

    name: str
    number: str
    platform: str

    @property
    def key(self) -> str:
        """The key of the version."""
        return full_version(self.number, self.platform or RUBY)


class ChangeRequests:
    """Yanks and restores versions of one hosted repository."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository

    async def yank(self, request: Request) -> Answer:
        """
        Yank one version for one platform: it vanishes from the indexes, and its files are not served any more.

        ``gem`` prints the answer and succeeds whatever the status is, so the sentence must say it all.

        :raises Refusal: there is no such gem or version, or it is yanked already
        """
        given, actor = await self._admit(request, Action.DELETE)
        await self._set_state(given, VersionState.YANKED, actor)
        return text_answer(f"Successfully deleted gem: {given.name} ({given.key})")

    async def unyank(self, request: Request) -> Answer:
        """Restore a yanked version. :raises Refusal: there is no such gem or version, or it is not yanked"""
        given, actor = await self._admit(request, Action.WRITE)
        await self._set_state(given, VersionState.LIVE, actor)
        return text_answer(f"Successfully unyanked gem: {given.name} ({given.key})")

    async def _admit(self, request: Request, action: Action) -> tuple[VersionGiven, Actor]:
        await self._services.access.admit(request, action, self._repository)
        given = _read_version(await read_fields(request))
        identity = await self._services.access.admit(request, action, self._repository, given.name)
        return given, actor_of(request, identity)

    async def _set_state(self, given: VersionGiven, state: VersionState, actor: Actor) -> None:
        await self._services.publisher.change(set_version_state, self._repository, given, state, actor)


def set_version_state(
    tx: Transaction, repository: Repository, given: VersionGiven, state: VersionState, actor: Actor, now_ms: int
) -> Version:
    """The write command of a yank, or of the restoring of a version. :raises Refusal: it cannot be done"""
    package = packages.find_package(tx, repository.id, given.name)
    if package is None:
        raise gem_not_found()
    version = versions.find_version(tx, package.id, given.key)
    if version is None:
        raise version_not_found(given.number, given.platform)
    if version.state is state:
        done = "has already been deleted" if state is VersionState.YANKED else "is not yanked"
        raise Refusal(422, f"The version {given.key} {done}.", "conflict")
    try:
        return package_changes.set_version_state(
            tx, repository, given.name, given.key, state, "", actor, apply_change, now_ms
        )
    except FileExists:
        raise Conflict(f"{given.name} {given.key} cannot be restored: another gem has its file name now") from None


def _read_version(fields: Mapping[str, str]) -> VersionGiven:
    try:
        name = check_name(fields.get("gem_name", ""))
    except Invalid:
        raise gem_not_found() from None
    number, platform = fields.get("version", ""), fields.get("platform", "")
    try:
        check_version(number)
        if platform:
            check_platform(platform)
    except Invalid as error:
        raise Refusal(404, error.message, "not_found") from None
    return VersionGiven(name, number, platform)
