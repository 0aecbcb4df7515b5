"""
Groups, the rights of users, and projects as a file describes them: what differs on the server, and the changes.

Grants that another person has changed since the comparison are not replaced unseen: the server refuses that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from attrs import frozen
from msgspec import UNSET

from pkgrepo.client.api import Client, at
from pkgrepo.client.apply.definitions import (
    Difference,
    Given,
    GrantGiven,
    GroupGiven,
    ProjectGiven,
    UserGiven,
    differences,
)
from pkgrepo.errors import Conflict, Invalid

ACTIONS = ("read", "write", "overwrite", "delete", "edit", "admin")


@frozen
class Change:
    """What has to be done for one group, user or project; ``carry_out`` makes the changes."""

    kind: str
    name: str
    creates: bool
    found: list[Difference]
    carry_out: Callable[[], Awaitable[Any]]
    deletes: bool = False

    @property
    def title(self) -> str:
        """What it is about."""
        return f"{self.kind} {self.name}"

    @property
    def verb(self) -> str:
        """What is done, in a word."""
        if self.deletes:
            return "delete"
        return "create" if self.creates else "change" if self.found else "unchanged"

    def __str__(self) -> str:
        return f"{self.title}: {self.verb}"

    def to_json(self, *, dry_run: bool) -> dict[str, Any]:
        """The change for programs; ``dry_run`` tells that nothing was done."""
        found = {each.pointer: each.to_json() for each in self.found}
        return {self.kind: self.name, "action": self.verb, "dry_run": dry_run, "differences": found}


async def plan_rights(client: Client, given: Given) -> list[Change]:
    """
    Compare groups, users and projects of a file with the server, in the order in which they can be changed.

    :raises Invalid: a user, group or repository that the file names is neither on the server nor in the file
    """
    await _check_names(client, given)
    return [
        *[await _group(client, each) for each in given.groups or ()],
        *[await _user(client, each) for each in given.users or ()],
        *[await _project(client, each) for each in given.projects or ()],
    ]


async def surplus_rights(client: Client, given: Given) -> list[Change]:
    """The groups and projects that the file does not name, of each kind that the file has."""
    found = []
    for kind, place, key, named in (
        ("project", "project", "key", [each.key for each in given.projects or ()]),
        ("group", "groups", "name", [each.name for each in given.groups or ()]),
    ):
        if (given.projects if kind == "project" else given.groups) is UNSET:
            continue
        kept = {each.casefold() for each in named}
        names = [str(each[key]) for each in await client.all_items(place)]
        found += [_removal(client, kind, place, name) for name in names if name.casefold() not in kept]
    return found


def _removal(client: Client, kind: str, place: str, name: str) -> Change:
    return Change(kind, name, False, [], lambda: client.change("DELETE", place, name), deletes=True)


async def _group(client: Client, given: GroupGiven) -> Change:
    found = await client.look("groups", given.name)
    record = None if found is None else found.value
    have: dict[str, Any] = {}
    wanted: dict[str, Any] = {}
    if given.description is not UNSET:
        have["description"], wanted["description"] = "" if record is None else record["description"], given.description
    if given.members is not UNSET:
        members = [] if record is None else await client.all_items("groups", given.name, "members")
        have["members"] = {each["username"].casefold(): "member" for each in members}
        wanted["members"] = {each.casefold(): "member" for each in given.members}
    if given.grants is not UNSET:
        have["grants"] = {} if record is None else _granted(record["repositories"])
        wanted["grants"] = _wanted(given.grants)

    async def carry_out() -> None:
        text = {"description": wanted["description"]} if "description" in wanted else {}
        now = found
        if now is None:
            now = await client.call("POST", at("groups"), value={"name": given.name, **text})
        elif text and have["description"] != wanted["description"]:
            now = await client.call("PATCH", at("groups", given.name), value=text, headers=now.unchanged)
        if have.get("grants") != wanted.get("grants"):
            body = {"repositories": _body(wanted["grants"])}
            await client.call("PUT", at("groups", given.name, "permissions"), value=body, headers=now.unchanged)
        before, after = have.get("members", {}), wanted.get("members", {})
        for method, names in (("POST", after.keys() - before.keys()), ("DELETE", before.keys() - after.keys())):
            for name in sorted(names):
                await client.change(method, "groups", given.name, "members", body={"user": name})

    return Change("group", given.name, record is None, differences(have if record else {}, wanted), carry_out)


async def _user(client: Client, given: UserGiven) -> Change:
    place = at("users", given.username, "permissions")
    wanted: dict[str, Any] = {}
    body: dict[str, Any] = {}
    if given.grants is not UNSET:
        wanted["grants"] = _wanted(given.grants)
        body["repositories"] = _body(wanted["grants"])
    if given.default_actions is not UNSET:
        wanted["default_actions"] = body["default_repository_actions"] = _ordered(given.default_actions)

    def have_of(record: Any) -> dict[str, Any]:
        own = [each for each in record["repositories"] if each["via"] == "user"]
        every = {"grants": _granted(own), "default_actions": record["default_repository_actions"]}
        return {name: every[name] for name in wanted}

    have = have_of((await client.call("GET", place)).value)

    async def carry_out() -> None:
        if have == wanted:
            return
        now = await client.call("GET", place)  # which also has grants of groups, and the file may have changed these
        if have_of(now.value) != have:
            raise Conflict(f"the rights of {given.username} were changed meanwhile: run this again")
        await client.call("PUT", place, value=body, headers=now.unchanged)

    return Change("user", given.username, False, differences(have, wanted), carry_out)


async def _project(client: Client, given: ProjectGiven) -> Change:
    record = await client.find("project", given.key)
    fields = {
        name: value
        for name in ("name", "description", "visibility", "quota")
        if (value := getattr(given, name)) is not UNSET
    }
    wanted: dict[str, Any] = dict(fields)
    if given.members is not UNSET:
        wanted["members"] = {each.place: each.role for each in given.members}
    if given.bindings is not UNSET:
        wanted["bindings"] = {f"{each.repository} {each.pattern}": "bound" for each in given.bindings}
    have = {} if record is None else {name: _of_project(record, name) for name in wanted}

    async def carry_out() -> None:
        now = record
        if now is None:
            now = await client.change("POST", "project", body={"key": given.key, **fields})
        elif any(now[name] != value for name, value in fields.items()):
            now = await client.change("PATCH", "project", given.key, body=fields)
        if "members" in wanted:
            await _set_members(client, given.key, _of_project(now, "members"), wanted["members"])
        if "bindings" in wanted:
            await _set_bindings(client, given.key, _of_project(now, "bindings"), wanted["bindings"])

    return Change("project", given.key, record is None, differences(have, wanted), carry_out)


async def _set_members(client: Client, key: str, have: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    for place, role in wanted.items():
        if have.get(place) != role:
            kind, _, name = place.partition(" ")
            await client.change("POST", "project", key, "members", body={kind: name, "role": role})
    for place in sorted(have.keys() - wanted.keys()):
        kind, _, name = place.partition(" ")
        await client.change("DELETE", "project", key, "members", **{kind: name})


async def _set_bindings(client: Client, key: str, have: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    for place in sorted(wanted.keys() - have.keys()):
        repository, _, pattern = place.partition(" ")
        body = {"repository": repository, "pattern": pattern}
        await client.change("POST", "project", key, "bindings", body=body)
    for place in sorted(have.keys() - wanted.keys()):
        repository, _, pattern = place.partition(" ")
        await client.change("DELETE", "project", key, "bindings", repository=repository, pattern=pattern)


def _of_project(record: Mapping[str, Any], name: str) -> Any:
    """A part of a project's record in the form that is compared."""
    if name == "members":
        if record["members"] is None:
            raise Invalid(f"you may not see the members of project {record['key']}, so that they cannot be compared")
        return {f"{each['kind']} {each['name'].casefold()}": each["role"] for each in record["members"]}
    if name == "bindings":
        return {f"{each['repository']} {each['pattern']}": "bound" for each in record["bindings"]}
    return record[name]


def _granted(records: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    return {each["repository"]: each["actions"] for each in records}


def _wanted(grants: Iterable[GrantGiven]) -> dict[str, list[str]]:
    return {each.repository.lower() if each.is_pattern else each.repository: _ordered(each.actions) for each in grants}


def _body(grants: Mapping[str, list[str]]) -> list[dict[str, Any]]:
    return [{"repository": path, "actions": actions} for path, actions in grants.items()]


def _ordered(actions: Iterable[str]) -> list[str]:
    """The actions in the order in which the server lists them. :raises Invalid: there is no such action"""
    words = {each.casefold() for each in actions}
    unknown = sorted(words.difference(ACTIONS))
    if unknown:
        raise Invalid(f"there is no action {unknown[0]!r}; there are {', '.join(ACTIONS)}")
    return [each for each in ACTIONS if each in words]


async def _check_names(client: Client, given: Given) -> None:
    """Look up the users, groups and repositories that the file names, so that a mistake is found before any change."""
    groups = {each.name.casefold() for each in given.groups or ()}
    paths = {each.path.casefold() for each in given.repositories}
    named = {("users", each) for group in given.groups or () for each in group.members or ()}
    named |= {("users", each.username) for each in given.users or ()}
    for project in given.projects or ():
        for member in project.members or ():
            kind, _, name = member.place.partition(" ")
            if kind == "user" or name not in groups:
                named.add(("users" if kind == "user" else "groups", name))
        named |= {("repository", each.repository) for each in project.bindings or ()}
    for each in (*(given.groups or ()), *(given.users or ())):
        named |= {("repository", grant.repository) for grant in each.grants or () if not grant.is_pattern}
    for place, name in sorted(named):
        if place == "repository" and name.casefold() in paths:
            continue
        if await client.find(place, name) is None:
            raise Invalid(f"there is no {place.removesuffix('s')} {name!r}, which the file names")
