"""
Changes of what is published: ``gem yank``, its undoing, and ``gem owner``.

Owners are a note, see L{pkgrepo.repositories.publish.owners}.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl

from attrs import frozen

from pkgrepo.errors import Conflict, FileExists, Invalid, NotFound
from pkgrepo.formats.rubygems.indexer import apply_change
from pkgrepo.formats.rubygems.limits import FORM_SIZE
from pkgrepo.formats.rubygems.names import RUBY, check_name, check_platform, check_version, full_version
from pkgrepo.formats.rubygems.refusals import gem_not_found, version_not_found
from pkgrepo.gateway.bodies import read_body
from pkgrepo.gateway.callers.access import actor_of, may_see_email
from pkgrepo.gateway.services import Context
from pkgrepo.http.reading.multipart import MultipartLimits, read_form
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Refusal, Response, json_response, text_response
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Action, Actor, Repository, User, Version, VersionState
from pkgrepo.model.admission import Admitted
from pkgrepo.repositories.publish import package_changes
from pkgrepo.repositories.publish.owners import OWNER, change_owners, read_owners
from pkgrepo.storage.catalog.packages import packages, versions

_MOST_FIELDS = 32
_LIMITS = MultipartLimits(parts=_MOST_FIELDS, text_bytes=FORM_SIZE // _MOST_FIELDS)

_YAML: Final = b"text/yaml; charset=utf-8"


async def read_fields(request: Request) -> Mapping[str, str]:
    """
    The fields of a request by name; one in the body wins over one in the query, and the last of several over the rest.

    :raises Invalid: there are too many; :raises TooLarge, Refusal: the body is too large, or no form
    """
    fields = _parse(request.raw_query)
    content_type = request.header(b"content-type") or b""
    if content_type.lower().startswith(b"multipart/form-data"):
        request.body.limit = FORM_SIZE
        async for part in read_form(request.body, content_type, _LIMITS):
            fields[part.name] = await part.read_text()
    else:
        fields.update(_parse(await read_body(request, FORM_SIZE)))
    return fields


def _parse(data: bytes) -> dict[str, str]:
    try:
        return dict(
            parse_qsl(data.decode("ascii"), keep_blank_values=True, errors="replace", max_num_fields=_MOST_FIELDS)
        )
    except ValueError:
        raise Invalid(f"a form must be URL-encoded, with at most {_MOST_FIELDS} fields") from None


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


async def yank(context: Context[object], request: Request) -> Response:
    """
    Yank one version for one platform: it vanishes from the indexes, and its files are not served any more.

    ``gem`` prints the response and succeeds whatever the status is, so the sentence must say it all.

    :raises Refusal: there is no such gem or version, or it is yanked already
    """
    await context.admit(request, Action.DELETE)
    given = _read_version(await read_fields(request))
    actor = actor_of(request, await context.admit(request, Action.DELETE, given.name))
    await context.services.content.change(yank_version, context.repository, given, actor)
    return text_response(f"Successfully deleted gem: {given.name} ({given.key})")


async def unyank(context: Context[object], request: Request) -> Response:
    """Restore a yanked version. :raises Refusal: there is no such gem or version, or it is not yanked"""
    await context.admit(request, Action.WRITE)
    given = _read_version(await read_fields(request))
    _, admitted = await context.admit_publishing(request, given.name)
    await context.services.content.change(restore_version, context.repository, given, admitted)
    return text_response(f"Successfully unyanked gem: {given.name} ({given.key})")


def yank_version(tx: Transaction, repository: Repository, given: VersionGiven, actor: Actor, now_ms: int) -> Version:
    """The write command of a yank. :raises Refusal: it cannot be done"""
    if _find_version(tx, repository, given).state is VersionState.YANKED:
        raise Refusal(422, f"The version {given.key} has already been deleted.", "conflict")
    return package_changes.yank_version(tx, repository, given.name, given.key, "", actor, apply_change, now_ms)


def restore_version(
    tx: Transaction, repository: Repository, given: VersionGiven, actor: Admitted, now_ms: int
) -> Version:
    """The write command that restores a yanked version. :raises Refusal: it cannot be done"""
    state = VersionState.LIVE
    if _find_version(tx, repository, given).state is state:
        raise Refusal(422, f"The version {given.key} is not yanked.", "conflict")
    try:
        return package_changes.set_version_state(
            tx, repository, given.name, given.key, state, "", actor, apply_change, now_ms
        )
    except FileExists:
        raise Conflict(f"{given.name} {given.key} cannot be restored: another gem has its file name now") from None


def _find_version(r: Reader, repository: Repository, given: VersionGiven) -> Version:
    package = packages.find_package(r, repository.id, given.name)
    if package is None:
        raise gem_not_found()
    version = versions.find_version(r, package.id, given.key)
    if version is None:
        raise version_not_found(given.number, given.platform)
    return version


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


async def list_owners(context: Context[object], request: Request, name: str, *, yaml: bool) -> Response:
    """The owners of a gem; each has a handle, an id, and an email for that owner and for those who manage users."""
    identity = await context.admit(request, Action.READ, name)
    try:
        found = await context.services.catalog.look(read_owners, context.repository.id, name)
    except NotFound:
        raise gem_not_found() from None
    records = [
        _record(handle, None if user is None or not may_see_email(identity, user) else user) for handle, user in found
    ]
    if not yaml:
        return json_response(records, headers=NO_STORE)
    return text_response(_yaml(records), content_type=_YAML, headers=NO_STORE)


async def change_owner(context: Context[object], request: Request, name: str, *, add: bool) -> Response:
    """
    Add or remove the owner whose name or email is the field ``email``.

    :raises Refusal: there is no such gem or user
    """
    await context.admit(request, Action.WRITE, name)
    given = (await read_fields(request)).get("email", "").strip()
    _, actor = await context.admit_publishing(request, name)
    content = context.services.content
    try:
        (handle,) = await content.change(change_owners, context.repository, name, [given], add, actor, apply_change)
    except NotFound as error:
        if error.what != OWNER:
            raise gem_not_found() from None
        raise Refusal(404, "Owner could not be found.", "not_found") from None
    verb = "added to" if add else "removed from"
    return text_response(f"Owner {handle} was {verb} {name}. Owners are a note: permissions decide who may push.")


def _record(handle: str, user: User | None) -> dict[str, object]:
    email = None if user is None else user.email or None
    return {"id": None if user is None else user.uid, "handle": handle, "email": email}


def _yaml(records: Sequence[dict[str, object]]) -> str:
    """The records as YAML, of which JSON is a part; ``gem`` reads it with Psych."""
    if not records:
        return "--- []\n"
    return "---\n" + "".join(f"- {json.dumps(each)}\n" for each in records)
