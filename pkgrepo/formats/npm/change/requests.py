"""
Requests that deprecate, unpublish or tag versions, or change owners, stars or the access of a package.

npm deprecates, and changes owners and stars, by writing the package's document back; pnpm 12 has requests of its own.

Visibility and permissions belong to the repository, and are changed through the management API. Owners of a package
are informative only: an owner gets no permission by being added, and loses none by being removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import names
from pkgrepo.formats.npm.authorization import (
    CHANGE_OWNERS,
    UNPUBLISH,
    authorize_change,
    authorize_publishing,
    authorize_read,
    check_access,
    permissions_of,
    require,
)
from pkgrepo.formats.npm.change import commands
from pkgrepo.formats.npm.change.document_change import DocumentChange
from pkgrepo.formats.npm.configuration import policy_of
from pkgrepo.formats.npm.packument.document import revision
from pkgrepo.formats.npm.packument.requests import find_package, get_package, state_of
from pkgrepo.formats.npm.paths import PackagePath, TarballPath
from pkgrepo.formats.npm.refusals import user_not_found
from pkgrepo.gateway.bodies import read_json, read_object
from pkgrepo.gateway.callers.access import may_see_email
from pkgrepo.gateway.publishing.virtual import publish_context
from pkgrepo.gateway.responses.content import is_private
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Fields, Response, json_response
from pkgrepo.model import Action, Identity, Package
from pkgrepo.model.admission import Admitted
from pkgrepo.untrusted.text import quoted

CHANGE_TAGS = "change the tags of"
BATCH = 200  # versions that are deprecated in one transaction, which takes the write lock for some 10 ms

MOST_CHECKED = 20  # owners whose permissions are looked up for one response
AT_ONCE = 20  # users whose permissions are looked up in one turn of the reactor


async def apply_written(
    context: Context[object], name: str, change: DocumentChange, identity: Identity, actor: Admitted
) -> Response:
    """
    Apply a written-back document; see ``commands``. The caller was authorized to write; deleting is checked here.

    :raises NotFound: no such package; :raises Conflict: the package was changed meanwhile
    :raises Forbidden: the document removes versions, and the caller may not
    """
    if change.kept is not None:
        await require(context, identity, Action.DELETE, name, UNPUBLISH)
    notice: Fields = ()
    if change.deprecated:
        rev = await shield(_deprecate(context, name, change.deprecated, actor))
    else:
        rev = await context.services.content.change(
            commands.apply_document, context.repository, name, change, actor, _burn(context)
        )
        notice = await owners_notice(context, name, change)
    return json_response({"ok": True, "id": name, "rev": rev}, 200 if change.revision else 201, headers=notice)


async def _deprecate(context: Context[object], name: str, messages: Mapping[str, str], actor: Admitted) -> str:
    waiting, rev = list(messages.items()), ""
    while waiting:
        some, waiting = dict(waiting[:BATCH]), waiting[BATCH:]
        rev = await context.services.content.change(commands.deprecate, context.repository, name, some, actor)
    return rev


def _burn(context: Context[object]) -> bool:
    return not policy_of(context.repository).reuse_deleted_names


async def remove_version(context: Context[object], request: Request, path: TarballPath) -> Response:
    """Remove the version of this tarball; it succeeds also when the version does not exist."""
    actor = await authorize_change(context, request, Action.DELETE, path.name, UNPUBLISH)
    version = names.find_tarball_version(path.name, path.filename)
    if version is None:
        raise Invalid(f"{quoted(path.filename)} is no tarball of {path.name}")
    await context.services.content.change(
        commands.remove_version, context.repository, path.name, version.key, path.revision, actor, _burn(context)
    )
    return json_response({"ok": True})


async def remove_package(context: Context[object], request: Request, path: PackagePath) -> Response:
    """Remove a package with all versions. :raises NotFound: no such package; :raises Conflict: it was changed"""
    actor = await authorize_change(context, request, Action.DELETE, path.name, UNPUBLISH)
    await context.services.content.change(
        commands.remove_package, context.repository, path.name, path.revision, actor, _burn(context)
    )
    return json_response({"ok": True})


async def set_tag(context: Context[object], request: Request, name: str, tag: str) -> Response:
    """Set a dist-tag on the version in the body. :raises Invalid: the tag is not a valid one"""
    actor = await authorize_publishing(context, request, name, CHANGE_TAGS)
    names.check_tag(tag)
    text = await read_json(request)
    if not isinstance(text, str):
        raise Invalid('the body must be a version in quotes, such as "1.0.0"')
    tagged = await context.services.content.change(commands.set_tag, context.repository, name, tag, text, actor)
    return json_response({"ok": True, "id": name, "dist-tags": tagged}, 201)


async def change_tag(context: Context[object], request: Request, name: str, tag: str, version: str | None) -> None:
    """Set or remove a dist-tag in the repository that takes changes. :raises Invalid: as for clients"""
    context = await publish_context(context, request)
    if version is None:
        await unset_tag(context, request, name, tag)
        return
    actor = await authorize_publishing(context, request, name, CHANGE_TAGS)
    names.check_tag(tag)
    await context.services.content.change(commands.set_tag, context.repository, name, tag, version, actor)


async def unset_tag(context: Context[object], request: Request, name: str, tag: str) -> Response:
    """Remove a dist-tag. :raises Invalid: the tag is ``latest``, which every package has"""
    actor = await authorize_change(context, request, Action.WRITE, name, CHANGE_TAGS)
    if tag == names.DEFAULT_TAG:
        raise Invalid("the tag 'latest' cannot be removed; let it stand for another version", "tag")
    tagged = await context.services.content.change(commands.unset_tag, context.repository, name, tag, actor)
    return json_response({"ok": True, "id": name, "dist-tags": tagged})


async def add_owner(context: Context[object], request: Request, name: str) -> Response:
    """Add the user in the body as an owner. :raises Refusal: no such user; :raises NotFound: no such package"""
    identity = await context.services.access.identify(request)
    await require(context, identity, Action.WRITE, name, CHANGE_OWNERS)
    username = (await read_object(request)).get("user")
    if not isinstance(username, str):
        raise Invalid("the body must name a user", "user")
    user = await context.services.accounts.find_user(username)
    if user is None:
        raise user_not_found(username)
    email = user.email if may_see_email(identity, user) else ""
    return await _change_owners(context, request, name, user.username, {"name": user.username, "email": email})


async def remove_owner(context: Context[object], request: Request, name: str, username: str) -> Response:
    """
    Remove an owner; it succeeds also when the user is not an owner.

    :raises NotFound: no such package; :raises Invalid: no owner would be left
    """
    return await _change_owners(context, request, name, username, None)


async def star(context: Context[object], request: Request, *, given: bool) -> Response:
    """Add or remove the caller's star on the package in the body. :raises NotFound: no such package"""
    body = await read_object(request)
    stated = [body[key] for key in ("package", "name") if key in body]
    name = stated[0] if stated else None
    if not isinstance(name, str) or not names.is_readable(name) or stated[-1] != name:
        raise Invalid("the body must name one package", "package")
    actor = await authorize_publishing(context, request, name, "star")
    return await _change(context, name, DocumentChange(star=given), actor)


async def _change_owners(
    context: Context[object], request: Request, name: str, username: str, owner: dict[str, str] | None
) -> Response:
    actor = await authorize_publishing(context, request, name, CHANGE_OWNERS)
    package = await get_package(context, name)
    owners = [each for each in package.meta.get("maintainers", ()) if each["name"] != username]
    if owner is not None:
        owners.append(owner)
    if not owners:
        raise Invalid(f"{username} is the only owner of {name}; add another one first", "user")
    change = DocumentChange(revision=revision(name, package.serial), maintainers=owners)
    return await _change(context, name, change, actor)


async def _change(context: Context[object], name: str, change: DocumentChange, actor: Admitted) -> Response:
    rev = await context.services.content.change(commands.apply_document, context.repository, name, change, actor, False)
    notice = await owners_notice(context, name, change)
    return json_response({"ok": True, "id": name, "rev": rev}, headers=notice)


async def owners_notice(context: Context[object], name: str, change: DocumentChange) -> Fields:
    """A header that npm prints, when a change names owners who may not publish the package; else no header."""
    stated = [each["name"] for each in change.maintainers or ()][:MOST_CHECKED]
    permissions = {each: await permissions_of(context, each, [name]) for each in stated}
    powerless = [each for each in stated if permissions[each] != {name: "write"}]
    if not powerless:
        return ()
    sentence = (
        f"{', '.join(map(quoted, powerless))} may not publish {name}: owners are a note, and what somebody may do is "
        f"decided by the permissions of {context.repository.path}"
    )
    return ((b"npm-notice", sentence.encode("ascii", "replace")),)


async def show_access(context: Context[object], request: Request, name: str, what: str) -> Response:
    """
    The visibility of a package, which is that of its repository, or who may do what with it: see L{_collaborators}.

    ``what`` is the last part of the path: ``visibility`` for npm, ``access`` for pnpm 12, ``collaborators``.

    :raises NotFound: no such package
    """
    identity = await authorize_read(context, request, name)
    await state_of(context, request, name)  # it exists
    package, public = await find_package(context, name), not is_private(context.repository)
    responses: dict[str, Any] = {
        "visibility": {"public": public},
        "access": {"access": "public" if public else "restricted", "publish_requires_tfa": False},
    }
    value = responses.get(what, {})
    if what not in responses and package is not None:
        value = await _collaborators(context, request, identity, package)
    return json_response(value, headers=NO_STORE)


async def _collaborators(
    context: Context[object], request: Request, identity: Identity, package: Package
) -> dict[str, str]:
    """
    The permissions of those of whom the caller may know them, and who have one.

    These are the owners, who are in the document, the caller, and those whom the authorizer knows.
    """
    named = [each["name"] for each in package.meta.get("maintainers", ())]
    if identity.username:
        named.append(identity.username)
    named += await context.services.access.authorizer.known_people(identity, context.repository, package.key)
    found: dict[str, str] = {}
    for count, each in enumerate(dict.fromkeys(named), 1):
        permissions = await permissions_of(context, each, [package.name])
        if permissions:
            found[each] = permissions[package.name]
        if count % AT_ONCE == 0:
            await request.next_turn()
    return found


async def set_access(context: Context[object], request: Request, name: str) -> Response:
    """
    Accept the access that the package already has.

    :raises Forbidden: another access was asked for; a package has that of its repository
    """
    await authorize_change(context, request, Action.WRITE, name, "change the access of")
    await get_package(context, name)
    check_access(context.repository, (await read_object(request)).get("access"))
    return json_response({"ok": True}, headers=NO_STORE)
