"""
Answers ``gem owner``: the people whom the author of a gem names as its owners.

Owners are a note. What somebody may do is decided by the permissions of the repository.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.indexer import apply_change
from pkgrepo.formats.rubygems.owners import OWNERS, owners_of
from pkgrepo.formats.rubygems.refusals import gem_not_found
from pkgrepo.gateway.callers.access import actor_of, may_see_email
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import NO_STORE, Answer, Refusal, json_answer, text_answer
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Action, Actor, Repository, User
from pkgrepo.repositories.publish import package_changes
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.people import users

from .form import read_fields

MOST_OWNERS: Final = 100

_YAML: Final = b"text/yaml; charset=utf-8"


class OwnerRequests:
    """The owners of the gems of one repository."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository

    async def list(self, request: Request, name: str, *, yaml: bool) -> Answer:
        """The owners of a gem; each has a handle, an id, and an email for that owner and for those who manage users."""
        identity = await self._services.access.admit(request, Action.READ, self._repository, name)
        found = await self._services.catalog.look(read_owners, self._repository.id, name)
        if found is None:
            raise gem_not_found()
        records = [
            _record(handle, None if user is None or not may_see_email(identity, user) else user)
            for handle, user in found
        ]
        if not yaml:
            return json_answer(records, headers=NO_STORE)
        return text_answer(_yaml(records), content_type=_YAML, headers=NO_STORE)

    async def change(self, request: Request, name: str, *, add: bool) -> Answer:
        """
        Add or remove the owner whose name or email is the field ``email``.

        :raises Refusal: there is no such gem or user
        """
        identity = await self._services.access.admit(request, Action.WRITE, self._repository, name)
        given = (await read_fields(request)).get("email", "").strip()
        actor = actor_of(request, identity)
        handle = await self._services.publisher.change(change_owners, self._repository, name, given, add, actor)
        verb = "added to" if add else "removed from"
        return text_answer(f"Owner {handle} was {verb} {name}. Owners are a note: permissions decide who may push.")


def read_owners(r: Reader, repository_id: int, name: str) -> Sequence[tuple[str, User | None]] | None:
    """The names of a gem's owners with their accounts, if these exist; None if there is no such gem."""
    package = packages.find_package(r, repository_id, name)
    if package is None:
        return None
    return [(handle, users.find_user_by_name(r, handle)) for handle in owners_of(r, package)]


def change_owners(
    tx: Transaction, repository: Repository, name: str, given: str, add: bool, actor: Actor, now_ms: int
) -> str:
    """
    The write command that adds or removes an owner, by name or email. Returns the owner's name.

    :raises Refusal: there is no such gem, user or owner; :raises Invalid: nobody would be left, or there are too many
    """
    package = packages.find_package(tx, repository.id, name)
    if package is None:
        raise gem_not_found()
    owners = owners_of(tx, package)
    handle = _find(tx, given, owners, add=add)
    if handle is None:
        raise Refusal(404, "Owner could not be found.", "not_found")
    after = [each for each in owners if each != handle] + ([handle] if add else [])
    if not after:
        raise Invalid(f"{handle} is the only owner of {name}; add another one first", "email")
    if len(after) > MOST_OWNERS:
        raise Invalid(f"a gem has at most {MOST_OWNERS} owners", "email")
    package_changes.set_package_meta(tx, repository, name, {OWNERS: after}, actor, apply_change, now_ms)
    return handle


def _find(r: Reader, given: str, owners: Sequence[str], *, add: bool) -> str | None:
    if not add and given in owners:
        return given  # also one whose account is gone
    user = users.find_user_by_name(r, given) if "@" not in given else None
    if user is None and not add:
        held = (users.find_user_by_name(r, each) for each in owners)
        user = next((each for each in held if each is not None and each.email == given), None)
    if user is None or (not add and user.username not in owners):
        return None
    return user.username


def _record(handle: str, user: User | None) -> dict[str, object]:
    email = None if user is None else user.email or None
    return {"id": None if user is None else user.uid, "handle": handle, "email": email}


def _yaml(records: Sequence[dict[str, object]]) -> str:
    """The records as YAML, of which JSON is a part; ``gem`` reads it with Psych."""
    if not records:
        return "--- []\n"
    return "---\n" + "".join(f"- {json.dumps(each)}\n" for each in records)
