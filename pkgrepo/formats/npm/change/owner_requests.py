"""Changes one owner or star of a package, as pnpm 12 asks for it; npm writes the package's document back instead."""

from __future__ import annotations

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import names
from pkgrepo.formats.npm.authorization import CHANGE_OWNERS, RepositoryRequests, permissions_of
from pkgrepo.formats.npm.packument.document import revision
from pkgrepo.formats.npm.packument.requests import PackageRequests
from pkgrepo.formats.npm.refusals import user_not_found
from pkgrepo.gateway.bodies import read_object
from pkgrepo.gateway.callers.access import may_see_email
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer, Fields, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Actor, Repository
from pkgrepo.untrusted.text import quoted

from .commands import apply_document
from .document_change import DocumentChange

MOST_CHECKED = 20  # owners whose permissions are looked up for one answer


class OwnerRequests(RepositoryRequests):
    """Answers requests about owners and stars in one repository."""

    def __init__(self, services: Services, repository: Repository, packages: PackageRequests) -> None:
        super().__init__(services, repository)
        self._packages = packages

    async def add_owner(self, request: Request, name: str) -> Answer:
        """Add the user in the body as an owner. :raises Refusal: no such user; :raises NotFound: no such package"""
        identity = await self._services.access.identify(request)
        await self._require(identity, Action.WRITE, name, CHANGE_OWNERS)
        username = (await read_object(request)).get("user")
        if not isinstance(username, str):
            raise Invalid("the body must name a user", "user")
        user = await self._services.accounts.find_user(username)
        if user is None:
            raise user_not_found(username)
        email = user.email if may_see_email(identity, user) else ""
        return await self._change_owners(request, name, user.username, {"name": user.username, "email": email})

    async def remove_owner(self, request: Request, name: str, username: str) -> Answer:
        """
        Remove an owner; it succeeds also when the user is none.

        :raises NotFound: no such package; :raises Invalid: no owner would be left
        """
        return await self._change_owners(request, name, username, None)

    async def star(self, request: Request, *, given: bool) -> Answer:
        """Add or remove the caller's star on the package in the body. :raises NotFound: no such package"""
        body = await read_object(request)
        stated = [body[key] for key in ("package", "name") if key in body]
        name = stated[0] if stated else None
        if not isinstance(name, str) or not names.is_readable(name) or stated[-1] != name:
            raise Invalid("the body must name one package", "package")
        actor = await self._authorize_change(request, Action.WRITE, name, "star")
        return await self._change(name, DocumentChange(star=given), actor)

    async def _change_owners(self, request: Request, name: str, username: str, owner: dict[str, str] | None) -> Answer:
        actor = await self._authorize_change(request, Action.WRITE, name, CHANGE_OWNERS)
        package = await self._packages.package(name)
        owners = [each for each in package.meta.get("maintainers", ()) if each["name"] != username]
        if owner is not None:
            owners.append(owner)
        if not owners:
            raise Invalid(f"{username} is the only owner of {name}; add another one first", "user")
        change = DocumentChange(revision=revision(name, package.serial), maintainers=owners)
        return await self._change(name, change, actor)

    async def _change(self, name: str, change: DocumentChange, actor: Actor) -> Answer:
        rev = await self._services.publisher.change(apply_document, self._repository, name, change, actor, False)
        notice = await owners_notice(self._services, self._repository, name, change)
        return json_answer({"ok": True, "id": name, "rev": rev}, headers=notice)


async def owners_notice(services: Services, repository: Repository, name: str, change: DocumentChange) -> Fields:
    """A header that npm prints, when a change names owners who may not publish the package; else no header."""
    stated = [each["name"] for each in change.maintainers or ()][:MOST_CHECKED]
    permissions = {each: await permissions_of(services, repository, each, [name]) for each in stated}
    powerless = [each for each in stated if permissions[each] != {name: "write"}]
    if not powerless:
        return ()
    sentence = (
        f"{', '.join(map(quoted, powerless))} may not publish {name}: owners are a note, and what somebody may do is "
        f"decided by the permissions of {repository.path}"
    )
    return ((b"npm-notice", sentence.encode("ascii", "replace")),)
