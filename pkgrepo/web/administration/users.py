"""Users, their permissions, and the matrix of grants: users as rows, repositories as columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlencode

from pkgrepo.auth.patterns import most_exact
from pkgrepo.errors import Forbidden
from pkgrepo.http.responses import Response
from pkgrepo.web.tables import REFUSED, PageTable
from pkgrepo.web.visits import Form, Visit

MOST_LISTED: Final = 300  # repositories that a field suggests; all are taken
PER_PAGE: Final = 100
FLAGS: Final = ("admin", "user_manager", "system_manager")
ROWS: Final = 30  # users on a page
COLUMNS: Final = 6  # repositories on a page
OWN: Final = "user"  # of grants: the user's own
MOST_MATCHED: Final = 20  # patterns whose repositories are shown
SHOWN_MATCHES: Final = 5  # repositories of each
KEPT: Final = ("q", "repositories", "cursor", "columns")  # the query that a change of a cell leaves alone
USERS: Final = "/admin/users"
USER: Final = "/admin/users/<id>"

pages = PageTable()


@pages.get(USERS)
async def show_users(visit: Visit) -> Response:
    """The users, with a filter, and the form for a new one."""
    return visit.page(
        "administration/users.html",
        listed=await visit.listed("/users", visit.asked("q", "inactive_days", "sort", "cursor"), PER_PAGE),
        order=visit.query("sort") or "username",
    )


@pages.get(USER)
async def show_user(visit: Visit, link: Any = None) -> Response:
    """One user: account, flags, default actions and grants; with a ``link`` for a password, if one was just made."""
    permissions = await visit.api("GET", "/users/<id>/permissions")
    return visit.page(
        "administration/user.html",
        user=await visit.api("GET", "/users/<id>"),
        permissions=permissions,
        matching=await matching(visit, [each for each in permissions.repositories if each.via == OWN]),
        sessions=await _sessions(visit),
        methods=await visit.api("GET", "/users/<id>/login-methods"),
        scopes=await visit.api("GET", "/info/scopes"),
        repositories=(await visit.api("GET", "/repository", query={"limit": MOST_LISTED})).items,
        link=link,
    )


async def matching(visit: Visit, grants: Iterable[Any]) -> dict[str, Any]:
    """Some repositories that the patterns of grants match now, of those that the visitor may see, by pattern."""
    patterns = [each.repository for each in grants if each.repository_id is None][:MOST_MATCHED]
    return {
        each: await visit.api("GET", "/repository", query={"pattern": each, "limit": SHOWN_MATCHES, "count": True})
        for each in patterns
    }


def deciding(user: Any, path: str) -> list[Any]:
    """The grants of a row of the matrix that decide in a repository: of the user, or else of each group."""
    found = []
    for via in sorted({each.via for each in user.repositories}, key=lambda each: (each != OWN, each)):
        grants = [each for each in user.repositories if each.via == via]
        patterns = most_exact((each.repository for each in grants if each.repository_id is None), path.lower())
        exact = [each for each in grants if each.repository_id is not None and each.repository == path]
        of_patterns = [each for each in grants if each.repository in patterns]
        found += exact or [each for each in of_patterns if not each.actions] or of_patterns
        if found and via == OWN:
            break
    return found


async def _sessions(visit: Visit) -> Any:
    """The logins of a user; None for admins and system managers, if the caller is no admin."""
    try:
        return await visit.api("GET", "/users/<id>/sessions")
    except Forbidden:
        return None


@pages.post(USERS, page=show_users)
async def add_user(visit: Visit, form: Form) -> Response:
    """Add a person, or a service, which has only tokens."""
    fields: dict[str, Any] = form.texts("username", "name", "email")
    fields["kind"] = "service" if form.flag("service") else "person"
    if form.flag("service"):
        fields["owner"] = _owner(form)
    if form.secret("password"):
        fields["password"] = form.secret("password")
    made = await visit.api("POST", "/users", fields=fields)
    visit.at["id"] = made.id
    return await make_link(visit, form) if form.flag("invite") else visit.redirect(USER)


@pages.post(USER, page=show_user)
async def change_user(visit: Visit, form: Form) -> None:
    """Change the account, the flags and the default actions."""
    fields: dict[str, Any] = {**form.texts("name", "email"), "active": form.flag("active")}
    fields["default_repository_actions"] = form.all("actions")
    if form.flag("service"):
        fields["owner"] = _owner(form)
    if visit.identity.admin:
        fields |= {flag: form.flag(flag) for flag in FLAGS}
    await visit.api("PATCH", "/users/<id>", fields=fields)


@pages.post(f"{USER}/password-link")
async def make_link(visit: Visit, _form: Form) -> Response:
    """Create a one-time link for a password, and show it this once; or why not."""
    made = None
    try:
        made = await visit.api("POST", "/users/<id>/password-link")
    except REFUSED as error:
        visit.error = str(error)
    return await show_user(visit, made)


@pages.post(f"{USER}/sessions", page=show_user)
async def end_sessions(visit: Visit, form: Form) -> None:
    """End one login, or all but the own one."""
    one = "/<session>" if form.text("session") else ""
    await visit.api("DELETE", f"/users/<id>/sessions{one}", form.texts("session"))


def grants_of(form: Form) -> dict[str, Any]:
    """The grants of a form with a row for each repository, and one for a new one."""
    names = [name for name in form.all("repository") if not form.flag(f"drop {name}")]
    grants = [{"repository": name, "actions": form.all(f"actions {name}")} for name in names]
    if form.text("new"):
        grants.append({"repository": form.text("new"), "actions": form.all("new actions")})
    return {"repositories": grants}


def _owner(form: Form) -> dict[str, str] | None:
    """The owner of a service account: a user name, or a name after the word group."""
    text = form.text("owner")
    if not text:
        return None
    word, _, name = text.partition(" ")
    return {"group": name.strip()} if word.casefold() == "group" and name.strip() else {"user": text}


def _password(form: Form) -> dict[str, Any]:
    return {"password": form.secret("password")}


pages.operation(f"{USER}/password", "PUT", "/users/<id>/password", _password, page=show_user)
pages.operation(f"{USER}/second-factor", "DELETE", "/users/<id>/second-factor", page=show_user)
pages.operation(f"{USER}/passkeys", "DELETE", "/users/<id>/passkeys", page=show_user)
pages.operation(f"{USER}/grants", "PUT", "/users/<id>/permissions", grants_of, page=show_user)
pages.operation(f"{USER}/delete", "DELETE", "/users/<id>", page=show_user, then=USERS)


@pages.get(f"{USER}/rights")
async def show_rights(visit: Visit) -> Response:
    """What a user may do in each repository, and why."""
    user = await visit.api("GET", "/users/<id>")
    listed = await visit.api("GET", "/users/<id>/rights", query=visit.asked("cursor", limit=PER_PAGE))
    return visit.page("account/rights.html", listed=listed, user=user)


@pages.get("/admin/grants")
async def show_grants(visit: Visit) -> Response:
    """A part of the matrix, and with ``user`` and ``repository`` the form of this cell."""
    user, repository = (visit.sent.text(each) or visit.query(each) for each in ("user", "repository"))
    shown = (("q", "repositories"), ("cursor", "columns"))
    columns = {name: visit.query(field) for name, field in shown if visit.query(field)}
    chosen = None
    if user and repository:
        found = await visit.api("GET", "/users/<id>", {"id": user})
        permissions = await visit.api("GET", "/users/<id>/permissions", {"id": user})
        own = [each for each in permissions.repositories if (each.repository, each.via) == (repository, OWN)]
        chosen = {"user": found, "repository": repository, "grant": own[0] if own else None}
    return visit.page(
        "administration/grants.html",
        listed=await visit.api("GET", "/permissions", query=visit.asked("q", "cursor", limit=ROWS)),
        repositories=await visit.api("GET", "/repository", query={"limit": COLUMNS, **columns}),
        scopes=await visit.api("GET", "/info/scopes"),
        chosen=chosen,
        deciding=deciding,
        kept=KEPT,
    )


@pages.post("/admin/grants", page=show_grants)
async def change_grant(visit: Visit, form: Form) -> Response:
    """Set or remove the grant of one cell, and show the matrix as it was."""
    operation, cell = "/users/<id>/permissions/<place>", {"id": form.text("user"), "place": form.text("repository")}
    if form.flag("remove"):
        await visit.api("DELETE", operation, cell)
    else:
        await visit.api("PUT", operation, cell, fields={"actions": form.all("actions")})
    return visit.redirect("/admin/grants?" + urlencode({name: form.text(name) for name in KEPT if form.text(name)}))
