"""Answers requests that deprecate, unpublish or tag versions, and reads the documents that ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import names, semver
from pkgrepo.formats.npm.authorization import UNPUBLISH, authorize_change, require
from pkgrepo.formats.npm.configuration import policy_of
from pkgrepo.formats.npm.limits import MOST_TAGS
from pkgrepo.formats.npm.paths import PackagePath, TarballPath
from pkgrepo.gateway.access import actor_of
from pkgrepo.gateway.bodies import read_json
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer, Fields, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Actor, Identity, Repository
from pkgrepo.storage.gil import GilReleaser
from pkgrepo.untrusted.quoting import quoted

from . import commands
from .commands import DocumentChange
from .owners import owners_notice
from .written_document import WrittenDocument

MOST_MAINTAINERS = 1000
CHANGE_TAGS = "change the tags of"
BATCH = 200  # versions that are deprecated in one transaction, which takes the write lock for some 10 ms


class ChangeRequests:
    """Answers requests that change packages of one hosted repository."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository

    async def apply(self, name: str, change: DocumentChange, identity: Identity, actor: Actor) -> Answer:
        """
        Apply a written-back document; see ``commands``. The caller was authorized to write, but not to delete.

        :raises NotFound: no such package; :raises Conflict: the package was changed meanwhile
        :raises Forbidden: the document removes versions, and the caller may not
        """
        if change.kept is not None:
            require(self._services, identity, Action.DELETE, self._repository, name, UNPUBLISH)
        notice: Fields = ()
        if change.deprecated:
            rev = await shield(self._deprecate(name, change.deprecated, actor))
        else:
            rev = await self._services.publisher.change(
                commands.apply_document, self._repository, name, change, actor, self._burn
            )
            notice = owners_notice(self._services, self._repository, name, change)
        return json_answer({"ok": True, "id": name, "rev": rev}, 200 if change.revision else 201, headers=notice)

    async def remove_version(self, request: Request, path: TarballPath) -> Answer:
        """Remove the version of this tarball; it succeeds also when the version does not exist."""
        actor = await self._authorize(request, Action.DELETE, path.name, UNPUBLISH)
        version = names.find_tarball_version(path.name, path.filename)
        if version is None:
            raise Invalid(f"{quoted(path.filename)} is no tarball of {path.name}")
        await self._services.publisher.change(
            commands.remove_version, self._repository, path.name, version.key, path.revision, actor, self._burn
        )
        return json_answer({"ok": True})

    async def remove_package(self, request: Request, path: PackagePath) -> Answer:
        """Remove a package with all versions. :raises NotFound: no such package; :raises Conflict: it was changed"""
        actor = await self._authorize(request, Action.DELETE, path.name, UNPUBLISH)
        await self._services.publisher.change(
            commands.remove_package, self._repository, path.name, path.revision, actor, self._burn
        )
        return json_answer({"ok": True})

    async def set_tag(self, request: Request, name: str, tag: str) -> Answer:
        """Set a dist-tag on the version in the body. :raises Invalid: the tag is not a valid one"""
        actor = await self._authorize(request, Action.WRITE, name, CHANGE_TAGS)
        names.check_tag(tag)
        text = await read_json(request)
        if not isinstance(text, str):
            raise Invalid('the body must be a version in quotes, such as "1.0.0"')
        tagged = await self._services.publisher.change(commands.set_tag, self._repository, name, tag, text, actor)
        return json_answer({"ok": True, "id": name, "dist-tags": tagged}, 201)

    async def unset_tag(self, request: Request, name: str, tag: str) -> Answer:
        """Remove a dist-tag. :raises Invalid: the tag is ``latest``, which every package has"""
        actor = await self._authorize(request, Action.WRITE, name, CHANGE_TAGS)
        if tag == names.DEFAULT_TAG:
            raise Invalid("the tag 'latest' cannot be removed; let it stand for another version", "tag")
        tagged = await self._services.publisher.change(commands.unset_tag, self._repository, name, tag, actor)
        return json_answer({"ok": True, "id": name, "dist-tags": tagged})

    async def _authorize(self, request: Request, action: Action, name: str, verb: str) -> Actor:
        identity = await authorize_change(self._services, request, self._repository, action, name, verb)
        return actor_of(request, identity)

    async def _deprecate(self, name: str, messages: Mapping[str, str], actor: Actor) -> str:
        waiting, rev = list(messages.items()), ""
        while waiting:
            some, waiting = dict(waiting[:BATCH]), waiting[BATCH:]
            rev = await self._services.publisher.change(commands.deprecate, self._repository, name, some, actor)
        return rev

    @property
    def _burn(self) -> bool:
        return not policy_of(self._repository).reuse_deleted_names


def verb_of_change(change: DocumentChange) -> str:
    """The verb for what a document asks for, for the sentence of a refusal."""
    if change.kept is not None:
        return UNPUBLISH
    if change.deprecated:
        return "deprecate"
    return "change" if change.maintainers is None else "change the owners of"


def read_change(written: WrittenDocument, revision: str, username: str) -> DocumentChange:
    """
    The change that a document asks for. Call it in a thread for a document with thousands of versions.

    A document removes the versions that it leaves out, but only when it names its revision and has ``versions`` at
    all (``npm owner`` sends nothing but maintainers).

    :raises Invalid: a part of it is malformed, or its revision differs from the one in the request's address
    """
    document = written.members
    stated = document.get("_rev")
    if revision and stated not in (None, revision):
        raise Invalid("the document is of another revision than the one in the request's address", "_rev")
    sent = _mapping(document, "versions") if written.versions is None else written.versions
    removing = bool(revision) and sent is not None
    tags = _mapping(document, "dist-tags") if removing else None
    users = _mapping(document, "users") if not removing else None
    return DocumentChange(
        revision=revision,
        kept=frozenset(_keys(sent)) if removing and sent is not None else None,
        tags=None if tags is None else _tags(tags),
        deprecated={} if removing or sent is None else _messages(sent),
        maintainers=_maintainers(document, sent),
        star=None if users is None or sent is not None else bool(users.get(username)),
    )


def _keys(sent: Mapping[str, Any]) -> Iterator[str]:
    gil = GilReleaser()
    for text in sent:
        version = semver.find_version(text)
        if version is not None:
            yield version.key
        gil.release_if_due()


def _tags(sent: Mapping[str, Any]) -> dict[str, str]:
    if len(sent) > MOST_TAGS:
        raise Invalid(f"the document has more than {MOST_TAGS} dist-tags", "dist-tags")
    for tag, text in sent.items():
        names.check_tag(tag)
        if not isinstance(text, str):
            raise Invalid(f"tag {quoted(tag)} must stand for a version", "dist-tags")
    return dict(sent)


def _messages(sent: Mapping[str, Any]) -> dict[str, str]:
    """The deprecation message of each version that has one; an empty one ends a deprecation."""
    messages: dict[str, str] = {}
    gil = GilReleaser()
    for text, message in sent.items():
        gil.release_if_due()
        if message is None:
            continue
        version = semver.find_version(text)
        if version is not None and isinstance(message, str):
            messages[version.key] = message
        elif version is not None and message is False:  # old clients send this
            messages[version.key] = ""
    return messages


def _maintainers(document: Mapping[str, Any], sent: Mapping[str, Any] | None) -> list[dict[str, str]] | None:
    """The maintainers of a document without versions; None when it does not change them."""
    given = document.get("maintainers")
    if given is None or sent is not None:
        return None
    if not isinstance(given, list) or len(given) > MOST_MAINTAINERS:
        raise Invalid(f"maintainers must be a list of at most {MOST_MAINTAINERS}", "maintainers")
    found: list[dict[str, str]] = []
    for each in given:
        name = each.get("name") if isinstance(each, dict) else None
        email = each.get("email", "") if isinstance(each, dict) else None
        if not isinstance(name, str) or not name or not isinstance(email, str):
            raise Invalid("a maintainer has a name and an email", "maintainers")
        found.append({"name": name, "email": email})
    return found


def _mapping(document: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    value = document.get(key)
    if value is not None and not isinstance(value, dict):
        raise Invalid(f"{key!r} must be an object", key)
    return value
