"""
Who may do what on another server, as groups of this one, with grants in the repositories of a plan.

===============================  ====================================  ============================================
there                            is read from                          here
===============================  ====================================  ============================================
a role of Nexus 3                ``service/rest/v1/security/roles``    a group; roles in roles are added up
a local user of Nexus 3          ``service/rest/v1/security/users``    commands that make an account and a member
a group in permissions of        ``api/v2/security/permissions``       a group
Artifactory
a user in permissions of         the same                              commands that grant it
Artifactory
===============================  ====================================  ============================================

Nothing here gives more than there: a right that is limited to paths, or by an expression, is left out and named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pkgrepo.auth.login.identities import check_username
from pkgrepo.errors import Invalid
from pkgrepo.importing.plans import FORMATS, LOCAL_NAME, Plan, Settings, objects, table, texts
from pkgrepo.model import Action

READ, WRITE, OVERWRITE, DELETE = Action.READ.value, Action.WRITE.value, Action.OVERWRITE.value, Action.DELETE.value
ORDER: Final = [each.value for each in Action]
_VIEW: Final = re.compile(r"nx-repository-view-([a-z0-9]+|\*)-(.+)-(browse|read|edit|add|delete|\*)")
_NEXUS: Final[Mapping[str, Sequence[str]]] = {
    "browse": [],  # a page of the console, without the files
    "read": [READ],
    "add": [WRITE],
    "edit": [WRITE, OVERWRITE],
    "delete": [DELETE],
    "*": [READ, WRITE, OVERWRITE, DELETE],
}
_ARTIFACTORY: Final[Mapping[str, Sequence[str]]] = {
    "read": [READ],
    "write": [WRITE],
    "delete": [DELETE, OVERWRITE],
}
_NO_LIMIT: Final = ("", "**", "**/*")  # patterns of paths
_EVERY: Final = {
    "ANY": ("Hosted", "Proxy", "Virtual"),
    "ANY LOCAL": ("Hosted",),
    "ANY REMOTE": ("Proxy",),
}
ANONYMOUS: Final = "anonymous"  # who has not logged in, on both
BUILT_IN: Final = ("nx-admin", "nx-anonymous")  # roles of Nexus

Grants = dict[str, set[str]]  # actions by the name of a repository


def plan_nexus_rights(roles: Iterable[Settings], users: Iterable[Settings], plan: Plan) -> None:
    """Put the roles of a Nexus 3 and its local users into the plan. :raises Invalid: they are not what it answers"""
    known = {_id(each, "id"): each for each in objects(roles)}
    made = set[str]()
    for name, role in known.items():
        if name not in BUILT_IN and _add_group(name, role.get("description"), _granted(name, known, plan), plan):
            made.add(name)
    for user in objects(users):
        _plan_user(user, made, plan)


def plan_artifactory_rights(targets: Iterable[Settings], plan: Plan) -> None:
    """Put the permissions of an Artifactory into the plan. :raises Invalid: they are not what it answers"""
    found: dict[str, dict[str, Grants]] = {"groups": {}, "users": {}}
    for target in objects(targets):
        rights = table(target, "repo")
        if _is_limited(rights):
            plan.notes.append(f"the permission {target.get('name')} is left out: it is limited to paths")
            continue
        places = [place for each in texts(rights.get("repositories")) for place in _places(each, plan)]
        for kind, of_kind in found.items():
            for name, actions in table(table(rights, "actions"), kind).items():
                wanted = _wanted(name, texts(actions), target, plan)
                grants = of_kind.setdefault(name, {})
                for place in places:
                    grants.setdefault(place, set()).update(wanted)
    for name, grants in found["groups"].items():
        _add_group(name, "", grants, plan)
    for name, grants in found["users"].items():
        _grant_user(name, grants, plan)


def _granted(name: str, roles: Mapping[str, Settings], plan: Plan) -> Grants:
    """What a role grants, with the roles in it."""
    grants: Grants = {}
    for each in _with_inner(name, roles):
        role = roles[each]
        for privilege in texts(role.get("privileges")):
            found = _VIEW.fullmatch(privilege)
            if found is None:
                plan.notes.append(f"the privilege {privilege} of the role {each} is not taken over")
                continue
            format_name, repository, action = found.groups()
            for place in _matching(format_name, repository, plan):
                grants.setdefault(place, set()).update(_NEXUS[action])
    return grants


def _with_inner(name: str, roles: Mapping[str, Settings]) -> Iterator[str]:
    """The ids of a role and of all in it, each once."""
    seen, left = set[str](), [name]
    while left:
        each = left.pop()
        if each in roles and each not in seen:
            seen.add(each)
            yield each
            left += texts(roles[each].get("roles"))


def _wanted(name: str, actions: Sequence[str], target: Settings, plan: Plan) -> set[str]:
    """What the actions of a user or group in a permission of Artifactory are here."""
    if "manage" in actions:  # edit is more: it also makes a repository public
        plan.notes.append(f"{name} may manage the permission {target.get('name')} there: see permissions")
    return {action for each in actions for action in _ARTIFACTORY.get(each, ())}


def _is_limited(rights: Settings) -> bool:
    """Whether a permission is not for all paths, or says so in a way that is not known."""
    included, excluded = (rights.get(f"{each}-patterns") for each in ("include", "exclude"))
    if isinstance(included, str):
        included = [included]
    all_in = not included or (isinstance(included, list) and any(each in _NO_LIMIT for each in included))
    return not all_in or (bool(excluded) and (not isinstance(excluded, list) or any(excluded)))


def _matching(format_name: str, repository: str, plan: Plan) -> Iterator[str]:
    served = FORMATS.get(format_name)
    for each in plan.repositories:
        if (format_name == "*" or each["format"] == served) and repository in ("*", each["name"]):
            yield each["name"]


def _places(name: str, plan: Plan) -> Iterator[str]:
    for each in plan.repositories:
        if each["name"] == name or each["config"]["type"] in _EVERY.get(name, ()):
            yield each["name"]


def _add_group(name: str, description: object, grants: Grants, plan: Plan) -> bool:
    """Put a group into the plan; False if it would have no rights here, or its name can be that of none."""
    rights = [
        {"repository": plan.place(place), "actions": _ordered(actions)}
        for place, actions in sorted(grants.items())
        if actions
    ]
    if not rights:
        plan.notes.append(f"{name} is no group here: it has no rights in these repositories")
        return False
    if LOCAL_NAME.fullmatch(name) is None:
        plan.notes.append(f"{name} is no group here: a name has letters, digits, dots, dashes and underscores")
        return False
    if name.casefold() in {each["name"].casefold() for each in plan.groups}:
        plan.notes.append(f"{name} is no group here: names that differ only by case are equal, and another one has it")
        return False
    plan.groups.append({"name": name, "description": str(description or "")[:2000], "grants": rights})
    return True


def _plan_user(user: Settings, groups: set[str], plan: Plan) -> None:
    name, roles = _id(user, "userId"), texts(user.get("roles"))
    if user.get("status") in ("disabled", "locked") or name == ANONYMOUS or not _can_be_user(name, plan):
        return
    mail = str(user.get("emailAddress") or "")
    plan.commands.append(["user", "create", name, *(["--email", mail] if mail else []), "--invite"])
    plan.commands += [["group", "add", each, name] for each in roles if each in groups]
    if "nx-admin" in roles:
        plan.notes.append(f"{name} is an administrator there: pkgrepo user edit {name} --admin")


def _id(raw: Settings, key: str) -> str:
    found = raw.get(key)
    if not isinstance(found, str) or not found:
        raise Invalid("the server lists a role or a user without an id")
    return found


def _grant_user(name: str, grants: Grants, plan: Plan) -> None:
    rights = {place: _ordered(actions) for place, actions in sorted(grants.items()) if actions}
    if rights and _can_be_user(name, plan):
        plan.commands += [["user", "grant", name, plan.place(place), *actions] for place, actions in rights.items()]


def _can_be_user(name: str, plan: Plan) -> bool:
    if name == ANONYMOUS:
        plan.notes.append(f"{name} has rights there: see the visibility of repositories")
        return False
    try:
        check_username(name)
    except Invalid as error:
        plan.notes.append(f"{name} is no user here: {error.message}")
        return False
    return True


def _ordered(actions: Iterable[str]) -> list[str]:
    return sorted(actions, key=ORDER.index)
