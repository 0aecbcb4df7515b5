"""The routes that read and replace the configuration of a repository, as a whole, one part, or the members."""

from __future__ import annotations

from typing import Any

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.gateway.format import Format
from pkgrepo.management.api.access_rules import EDITORS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import Table, Value
from pkgrepo.management.repositories.schema import ConfigKey, MemberRecord, Members, NewMembers
from pkgrepo.management.repositories.stored import is_whole, part_name, parts, replace, warnings_of, whole, with_part
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.configuration import virtual_config_of
from pkgrepo.proxy.definitions import shown_config

WARNINGS = "warnings"  # added to the configuration in answers


table = Table("repositories")


@table.get("/repository/<repository>/config", EDITORS, "Show the configuration")
async def show_config(call: Call) -> dict[str, Any]:
    """The whole configuration, including defaults. A password or token in it is shown as ***."""
    return whole(call, await call.fresh_repository())


@table.put(
    "/repository/<repository>/config",
    EDITORS,
    "Replace the configuration",
    audit="repository.configure",
    conditional=True,
)
async def replace_config(call: Call, body: dict[str, Any]) -> dict[str, Any]:
    """
    Parts that are absent get their defaults. A field warnings, as in answers, is ignored in the body.

    A password or token *** means the stored one of the route with the same address and user. The type cannot be
    changed (409).
    """
    repository = await call.fresh_repository()
    call.check_unchanged(whole(call, repository))
    changed = await replace(call, repository, _without_warnings(body), "")
    answer: dict[str, Any] = _with_warnings(call, changed, whole(call, changed))
    return answer


@table.get("/repository/<repository>/configs", EDITORS, "List the parts of the configuration")
async def list_parts(call: Call) -> list[ConfigKey]:
    """The first key is the name of the format; the others are the parts that can be set."""
    format_ = _format(call, call.repository)
    return [
        ConfigKey(key=format_.name, description="The configuration as a whole."),
        *(ConfigKey(key=key, description=part["description"]) for key, part in sorted(parts(format_).items())),
    ]


@table.get("/repository/<repository>/config/<key>", EDITORS, "Show one part of the configuration")
async def show_part(call: Call, key: str) -> Value[Any]:
    """A part that is not set is null. The name of the format as key gives the fixed part."""
    return Value(_part(call, await call.fresh_repository(), key))


@table.put(
    "/repository/<repository>/config/<key>",
    EDITORS,
    "Replace one part of the configuration",
    audit="repository.configure",
    conditional=True,
)
async def replace_part(call: Call, body: Any, key: str) -> Value[Any]:
    """A null body resets the part to its default. The name of the format as key replaces the fixed part."""
    repository = await call.fresh_repository()
    call.check_unchanged(_part(call, repository, key))
    return await _replace_part(call, repository, key, _without_warnings(body))


@table.patch(
    "/repository/<repository>/config/<key>",
    EDITORS,
    "Change fields of one part of the configuration",
    audit="repository.configure",
    conditional=True,
)
async def change_part(call: Call, body: dict[str, Any], key: str) -> Value[Any]:
    """
    Sets the fields in the body, such as one of push_rules, and leaves the others (JSON Merge Patch, RFC 7396).

    A null resets a field to its default, if it has one. Only parts that are objects can be changed so.
    """
    repository = await call.fresh_repository()
    before = _part(call, repository, key)
    call.check_unchanged(before)
    if not isinstance(before, dict | None):
        raise Invalid(f"{key} is no object: replace it with PUT")
    return await _replace_part(call, repository, key, _merged(before, _without_warnings(body)))


async def _replace_part(call: Call, repository: Repository, key: str, value: Any) -> Value[Any]:
    if is_whole(_format(call, repository), key):
        if not isinstance(value, dict):
            raise Invalid("a configuration is an object")
        config, pointer = {**repository.settings, **value}, ""
    else:
        name = part_name(_format(call, repository), key)
        config, pointer = with_part(whole(call, repository), name, value), f"/{name}"
    repository = await replace(call, repository, config, pointer)
    return Value(_with_warnings(call, repository, _part(call, repository, key)))


def _with_warnings(call: Call, repository: Repository, answer: Any) -> Any:
    warnings = warnings_of(call, repository, names_rules=True)
    return {**answer, WARNINGS: warnings} if warnings and isinstance(answer, dict) else answer


def _format(call: Call, repository: Repository) -> Format:
    return call.services.formats[repository.format]


def _part(call: Call, repository: Repository, key: str) -> Any:
    format_ = _format(call, repository)
    if is_whole(format_, key):
        return shown_config(repository, call.registry)
    name = part_name(format_, key)
    if name not in parts(format_) and not name.startswith("x_"):
        raise NotFound("configuration key", key)
    return whole(call, repository).get(name)


def _merged(before: Any, patch: Any) -> Any:
    """The value after a patch (RFC 7396 section 2)."""
    if not isinstance(patch, dict):
        return patch
    kept = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            kept.pop(name, None)
        else:
            kept[name] = _merged(kept.get(name), value)
    return kept


def _without_warnings(body: Any) -> Any:
    """The body without the warnings of an earlier answer."""
    return {key: value for key, value in body.items() if key != WARNINGS} if isinstance(body, dict) else body


@table.get("/repository/<repository>/members", EDITORS, "Show the members of a virtual repository")
async def show_members(call: Call) -> Members:
    """In the order in which they are asked. Repositories of other types have no members (404)."""
    return _members(call, _virtual(await call.fresh_repository()))


@table.put(
    "/repository/<repository>/members",
    EDITORS,
    "Replace the members of a virtual repository",
    audit="repository.configure",
    conditional=True,
)
async def replace_members(call: Call, body: NewMembers) -> Members:
    """New members must be readable by the caller: readers of this repository get their packages."""
    repository = _virtual(await call.fresh_repository())
    call.check_unchanged(_members(call, repository))
    names = [each if isinstance(each, str) else each.repository for each in body.members]
    config = {**whole(call, repository), **body.given("publish_to", "resolution"), "members": names}
    return _members(call, await replace(call, repository, config, ""))


def _members(call: Call, repository: Repository) -> Members:
    shown = whole(call, repository)
    found = [call.registry.find_uid(uid) for uid in virtual_config_of(repository).members]
    return Members(
        members=[MemberRecord.of(each) for each in found if each is not None],
        publish_to=shown["publish_to"],
        resolution=shown["resolution"],
    )


def _virtual(repository: Repository) -> Repository:
    if repository.type is not RepositoryType.VIRTUAL:
        raise NotFound("virtual repository", repository.path)
    return repository
