"""Answers what anaconda-client asks about packages and the caller, and removes packages for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from pkgrepo.errors import AuthenticationRequired, Invalid, NotFound
from pkgrepo.formats.conda import configuration
from pkgrepo.formats.conda.files import FileRequests
from pkgrepo.formats.conda.index.records import index_package
from pkgrepo.formats.conda.paths import PackagePath
from pkgrepo.gateway.bodies import read_body, read_object
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.callers.token_limits import limits_in
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import NO_STORE, Answer, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Repository
from pkgrepo.repositories.publish import package_changes

from . import documents
from .targets import FileTarget, PackageTarget, ReleaseTarget, file_target, package_target, release_target
from .upload_requests import UploadRequests

DESCRIPTION_SIZE: Final = 1024 * 1024  # bytes of the description of a package, which is not used
LONGEST_NOTE: Final = 100  # characters of a token's name

Target = PackageTarget | ReleaseTarget | FileTarget

_TARGETS: Final[Mapping[str, Callable[[Sequence[str]], Target]]] = {
    "package": package_target,
    "release": release_target,
    "dist": file_target,
    "download": file_target,
    "stage": file_target,
    "commit": file_target,
}


class AnacondaRequests:
    """Requests of anaconda-client to one hosted repository."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository
        self._files = FileRequests(services, repository)
        uploads = UploadRequests(services, repository)
        # By method and first word; the rest of the path is the target.
        self._targeted: dict[tuple[str, str], Callable[[Request, Any], Awaitable[Answer]]] = {
            ("GET", "package"): partial(self._show, documents.read_package),
            ("GET", "release"): partial(self._show, documents.read_release),
            ("GET", "dist"): partial(self._show, documents.read_file),
            ("GET", "download"): self._download,
            ("POST", "package"): self._describe,
            ("PATCH", "package"): self._describe,
            ("POST", "release"): self._describe,
            ("PATCH", "release"): self._describe,
            ("POST", "stage"): uploads.stage,
            ("POST", "commit"): uploads.commit,
            ("DELETE", "package"): self._remove,
            ("DELETE", "release"): self._remove,
            ("DELETE", "dist"): self._remove,
        }

    async def answer(self, request: Request, parts: Sequence[str]) -> Answer:
        """
        Answer a request whose path begins with one of the words; see the table of this room.

        :raises NotFound: there is no such thing; :raises Invalid: the path or the body is malformed
        """
        method = "GET" if request.method == b"HEAD" else request.method.decode("ascii")
        word, *rest = parts
        parse, handle = _TARGETS.get(word), self._targeted.get((method, word))
        if parse is not None and handle is not None:
            return await handle(request, parse(rest))
        match method, parts:
            case "GET", ["user"] | ["user", _]:
                return await self._user(request, *rest)
            case "POST", ["authentications"]:
                return await self._log_in(request)
            case "DELETE", ["authentications"]:
                return await self._log_out(request)
        await self._services.access.admit(request, Action.READ, self._repository)
        raise NotFound("address", "/".join(parts)[:200])

    async def _user(self, request: Request, name: str = "") -> Answer:
        identity = await self._services.access.admit(request, Action.READ, self._repository)
        if not name and identity.anonymous:
            raise AuthenticationRequired
        created_at = self._repository.created_at.isoformat()
        user = {"login": name or identity.username, "user_type": "org", "created_at": created_at}
        return json_answer(user, headers=NO_STORE)

    async def _show(self, read: Callable[..., dict[str, Any]], request: Request, target: Target) -> Answer:
        await self._services.access.admit(request, Action.READ, self._repository, target.name)
        return json_answer(await self._services.catalog.scan(read, self._repository, target), headers=NO_STORE)

    async def _download(self, request: Request, target: FileTarget) -> Answer:
        return await self._files.file(request, PackagePath(target.subdir, target.file))

    async def _describe(self, request: Request, target: PackageTarget | ReleaseTarget) -> Answer:
        """Take a description, which the files themselves have; it must be read before the next request."""
        await self._services.access.admit(request, Action.WRITE, self._repository, target.name)
        await read_body(request, DESCRIPTION_SIZE)
        return json_answer({"name": target.name}, headers=NO_STORE)

    async def _remove(self, request: Request, target: Target) -> Answer:
        """Remove a package, a version or a file. The client wants 201, but for a file."""
        services, repository = self._services, self._repository
        identity = await services.access.admit(request, Action.DELETE, repository, target.name)
        actor = actor_of(request, identity)
        burn = not configuration.policy(repository).reuse_deleted_names
        change = services.publisher.change
        if isinstance(target, PackageTarget):
            await change(package_changes.remove_package, repository, target.name, actor, burn)
            return json_answer({}, 201)
        paths = [target.path] if isinstance(target, FileTarget) else None
        await change(
            package_changes.remove_files,
            repository,
            target.name,
            target.version_key,
            paths,
            actor,
            index_package,
            burn,
        )
        return json_answer({}, 201 if paths is None else 200)

    async def _log_in(self, request: Request) -> Answer:
        """A token for the channel, for a caller with a name and a password."""
        request.repository = self._repository.path
        identity = await self._services.access.identify(request)
        if identity.anonymous:
            raise AuthenticationRequired("log in with your name and password")
        note = (await read_object(request)).get("note")
        name = "".join(each for each in note if each.isprintable()) if isinstance(note, str) else ""
        limits = limits_in(self._services.registry, self._repository.authority)
        actor = actor_of(request, identity)
        _, text = await self._services.accounts.issue(identity, name[:LONGEST_NOTE] or "anaconda login", limits, actor)
        return json_answer({"token": text}, headers=NO_STORE)

    async def _log_out(self, request: Request) -> Answer:
        """Revoke the token that the caller uses. :raises Invalid: it is a password"""
        identity = await self._services.access.admit(request, Action.READ, self._repository)
        word, _, text = (request.header(b"authorization") or b"").decode("latin-1").partition(" ")
        if identity.token_id is None or word.lower() not in ("token", "bearer"):
            raise Invalid("only a token can be given up", "authorization")
        await self._services.accounts.revoke_text(identity, text.strip(), actor_of(request, identity))
        return json_answer({}, 201, headers=NO_STORE)
