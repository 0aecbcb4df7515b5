"""Answers requests that deprecate, unpublish or tag versions."""

from __future__ import annotations

from collections.abc import Mapping

from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import names
from pkgrepo.formats.npm.authorization import UNPUBLISH, RepositoryRequests
from pkgrepo.formats.npm.configuration import policy_of
from pkgrepo.formats.npm.paths import PackagePath, TarballPath
from pkgrepo.gateway.bodies import read_json
from pkgrepo.http.answers import Answer, Fields, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Actor, Identity
from pkgrepo.untrusted.text import quoted

from . import commands
from .document_change import DocumentChange
from .owner_requests import owners_notice

CHANGE_TAGS = "change the tags of"
BATCH = 200  # versions that are deprecated in one transaction, which takes the write lock for some 10 ms


class ChangeRequests(RepositoryRequests):
    """Answers requests that change packages of one hosted repository."""

    async def apply(self, name: str, change: DocumentChange, identity: Identity, actor: Actor) -> Answer:
        """
        Apply a written-back document; see ``commands``. The caller was authorized to write; deleting is checked here.

        :raises NotFound: no such package; :raises Conflict: the package was changed meanwhile
        :raises Forbidden: the document removes versions, and the caller may not
        """
        if change.kept is not None:
            await self._require(identity, Action.DELETE, name, UNPUBLISH)
        notice: Fields = ()
        if change.deprecated:
            rev = await shield(self._deprecate(name, change.deprecated, actor))
        else:
            rev = await self._services.publisher.change(
                commands.apply_document, self._repository, name, change, actor, self._burn
            )
            notice = await owners_notice(self._services, self._repository, name, change)
        return json_answer({"ok": True, "id": name, "rev": rev}, 200 if change.revision else 201, headers=notice)

    async def remove_version(self, request: Request, path: TarballPath) -> Answer:
        """Remove the version of this tarball; it succeeds also when the version does not exist."""
        actor = await self._authorize_change(request, Action.DELETE, path.name, UNPUBLISH)
        version = names.find_tarball_version(path.name, path.filename)
        if version is None:
            raise Invalid(f"{quoted(path.filename)} is no tarball of {path.name}")
        await self._services.publisher.change(
            commands.remove_version, self._repository, path.name, version.key, path.revision, actor, self._burn
        )
        return json_answer({"ok": True})

    async def remove_package(self, request: Request, path: PackagePath) -> Answer:
        """Remove a package with all versions. :raises NotFound: no such package; :raises Conflict: it was changed"""
        actor = await self._authorize_change(request, Action.DELETE, path.name, UNPUBLISH)
        await self._services.publisher.change(
            commands.remove_package, self._repository, path.name, path.revision, actor, self._burn
        )
        return json_answer({"ok": True})

    async def set_tag(self, request: Request, name: str, tag: str) -> Answer:
        """Set a dist-tag on the version in the body. :raises Invalid: the tag is not a valid one"""
        actor = await self._authorize_change(request, Action.WRITE, name, CHANGE_TAGS)
        names.check_tag(tag)
        text = await read_json(request)
        if not isinstance(text, str):
            raise Invalid('the body must be a version in quotes, such as "1.0.0"')
        tagged = await self._services.publisher.change(commands.set_tag, self._repository, name, tag, text, actor)
        return json_answer({"ok": True, "id": name, "dist-tags": tagged}, 201)

    async def unset_tag(self, request: Request, name: str, tag: str) -> Answer:
        """Remove a dist-tag. :raises Invalid: the tag is ``latest``, which every package has"""
        actor = await self._authorize_change(request, Action.WRITE, name, CHANGE_TAGS)
        if tag == names.DEFAULT_TAG:
            raise Invalid("the tag 'latest' cannot be removed; let it stand for another version", "tag")
        tagged = await self._services.publisher.change(commands.unset_tag, self._repository, name, tag, actor)
        return json_answer({"ok": True, "id": name, "dist-tags": tagged})

    async def _deprecate(self, name: str, messages: Mapping[str, str], actor: Actor) -> str:
        waiting, rev = list(messages.items()), ""
        while waiting:
            some, waiting = dict(waiting[:BATCH]), waiting[BATCH:]
            rev = await self._services.publisher.change(commands.deprecate, self._repository, name, some, actor)
        return rev

    @property
    def _burn(self) -> bool:
        return not policy_of(self._repository).reuse_deleted_names
