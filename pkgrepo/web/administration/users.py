"""Users, their permissions, and the matrix of grants: users as rows, repositories as columns."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from pkgrepo.errors import Forbidden, Invalid, NotFound
from pkgrepo.http.responses import Response
from pkgrepo.web.refusals import REFUSED
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

MOST_LISTED: Final = 300  # repositories that a field suggests; all are taken
PER_PAGE: Final = 100
FLAGS: Final = ("admin", "user_manager", "system_manager")


pages = PageTable()
ROWS: Final = 30  # users on a page
COLUMNS: Final = 6  # repositories on a page
KEPT: Final = ("q", "repositories", "cursor", "columns")  # the query that a change of a cell leaves alone


@pages.get("/admin/users")
async def show_users(visit: Visit) -> Response:
    """The users, with a filter, and the form for a new one."""
    return await _list(visit)


@pages.post("/admin/users")
async def add_user(visit: Visit, form: Form) -> Response:
    """Add a person, or a service, which has only tokens."""
    fields: dict[str, Any] = {name: form.text(name) for name in ("username", "name", "email")}
    fields["kind"] = "service" if form.flag("service") else "person"
    if form.flag("service"):
        fields["owner"] = _owner(form)
    if form.secret("password"):
        fields["password"] = form.secret("password")
    try:
        made = await visit.api("POST", "/users", fields=fields)
    except REFUSED as error:
        return await _list(visit, error=str(error))
    return (
        await make_link(visit, form, made.id) if form.flag("invite") else visit.redirect_to("admin", "users", made.id)
    )


@pages.get("/admin/users/<id>")
async def show_user(visit: Visit, id: str) -> Response:
    """One user: account, flags, default actions and grants."""
    return await _user(visit, id)


@pages.post("/admin/users/<id>")
async def change_user(visit: Visit, form: Form, id: str) -> Response:
    """Change the account, the flags and the default actions."""
    fields: dict[str, Any] = {"name": form.text("name"), "email": form.text("email"), "active": form.flag("active")}
    fields["default_repository_actions"] = form.all("actions")
    if form.flag("service"):
        fields["owner"] = _owner(form)
    if visit.identity.admin:
        fields |= {flag: form.flag(flag) for flag in FLAGS}
    return await _do(visit, id, "PATCH", "/users/<id>", fields)


@pages.post("/admin/users/<id>/password")
async def set_password(visit: Visit, form: Form, id: str) -> Response:
    """Set a new password."""
    return await _do(visit, id, "PUT", "/users/<id>/password", {"password": form.secret("password")})


@pages.post("/admin/users/<id>/password-link")
async def make_link(visit: Visit, _form: Form, id: str) -> Response:
    """Create a one-time link for a password, and show it this once."""
    try:
        made = await visit.api("POST", "/users/<id>/password-link", {"id": id}, fields={})
    except REFUSED as error:
        return await _user(visit, id, error=str(error))
    return await _user(visit, id, link=made)


@pages.post("/admin/users/<id>/second-factor")
async def remove_second_factor(visit: Visit, _form: Form, id: str) -> Response:
    """Remove the second factor of a user who has lost it."""
    try:
        await visit.api("DELETE", "/users/<id>/second-factor", {"id": id})
    except (*REFUSED, NotFound) as error:
        return await _user(visit, id, error=str(error))
    return visit.redirect_to("admin", "users", id)


@pages.post("/admin/users/<id>/passkeys")
async def remove_passkeys(visit: Visit, _form: Form, id: str) -> Response:
    """Remove all passkeys of a user who has lost a device."""
    return await _do(visit, id, "DELETE", "/users/<id>/passkeys", {})


@pages.post("/admin/users/<id>/sessions")
async def end_sessions(visit: Visit, form: Form, id: str) -> Response:
    """End one login, or all but the own one."""
    try:
        if form.text("session"):
            place = {"id": id, "session": form.text("session")}
            await visit.api("DELETE", "/users/<id>/sessions/<session>", place)
        else:
            await visit.api("DELETE", "/users/<id>/sessions", {"id": id})
    except REFUSED as error:
        return await _user(visit, id, error=str(error))
    return visit.redirect_to("admin", "users", id)


@pages.post("/admin/users/<id>/grants")
async def set_grants(visit: Visit, form: Form, id: str) -> Response:
    """Set the grants: for each repository that is named, the actions that are checked."""
    return await _do(visit, id, "PUT", "/users/<id>/permissions", {"repositories": grants_of(form)})


@pages.post("/admin/users/<id>/delete")
async def delete_user(visit: Visit, _form: Form, id: str) -> Response:
    """Delete the user."""
    try:
        await visit.api("DELETE", "/users/<id>", {"id": id})
    except REFUSED as error:
        return await _user(visit, id, error=str(error))
    return visit.redirect("/admin/users")


@pages.get("/admin/users/<id>/rights")
async def show_rights(visit: Visit, id: str) -> Response:
    """What a user may do in each repository, and why."""
    query = {name: visit.query(name) for name in ("cursor",) if visit.query(name)}
    user = await visit.api("GET", "/users/<id>", {"id": id})
    listed = await visit.api("GET", "/users/<id>/rights", {"id": id}, query={**query, "limit": PER_PAGE})
    return visit.page("account/rights.html", listed=listed, user=user)


def grants_of(form: Form) -> list[dict[str, Any]]:
    """The grants of a form with a row for each repository, and one for a new one."""
    names = [name for name in form.all("repository") if not form.flag(f"drop {name}")]
    grants = [{"repository": name, "actions": form.all(f"actions {name}")} for name in names]
    if form.text("new"):
        grants.append({"repository": form.text("new"), "actions": form.all("new actions")})
    return grants


def _owner(form: Form) -> dict[str, str] | None:
    """The owner of a service account: a user name, or a name after the word group."""
    text = form.text("owner")
    if not text:
        return None
    word, _, name = text.partition(" ")
    return {"group": name.strip()} if word.casefold() == "group" and name.strip() else {"user": text}


async def _do(visit: Visit, id: str, method: str, operation: str, fields: dict[str, Any]) -> Response:
    try:
        await visit.api(method, operation, {"id": id}, fields=fields)
    except REFUSED as error:
        return await _user(visit, id, error=str(error))
    return visit.redirect_to("admin", "users", id)


async def _list(visit: Visit, error: str = "") -> Response:
    query: dict[str, Any] = {"limit": PER_PAGE}
    query |= {name: visit.query(name) for name in ("q", "inactive_days", "sort", "cursor") if visit.query(name)}
    try:
        listed = await visit.api("GET", "/users", query=query)
    except Invalid as wrong:
        listed, error = await visit.api("GET", "/users", query={"limit": PER_PAGE}), str(wrong)
    return visit.page(
        "administration/users.html",
        listed=listed,
        order=visit.query("sort") or "username",
        error=error,
    )


async def _user(visit: Visit, id: str, error: str = "", link: Any = None) -> Response:
    return visit.page(
        "administration/user.html",
        user=await visit.api("GET", "/users/<id>", {"id": id}),
        permissions=await visit.api("GET", "/users/<id>/permissions", {"id": id}),
        sessions=await _sessions(visit, id),
        methods=await visit.api("GET", "/users/<id>/login-methods", {"id": id}),
        scopes=await visit.api("GET", "/info/scopes"),
        repositories=(await visit.api("GET", "/repository", query={"limit": MOST_LISTED})).items,
        error=error,
        link=link,
    )


async def _sessions(visit: Visit, id: str) -> Any:
    """The logins of a user; None for admins and system managers, if the caller is no admin."""
    try:
        return await visit.api("GET", "/users/<id>/sessions", {"id": id})
    except Forbidden:
        return None


@pages.get("/admin/grants")
async def show_grants(visit: Visit) -> Response:
    """A part of the matrix, and with ``user`` and ``repository`` the form of this cell."""
    return await _grants_page(visit, visit.query("user"), visit.query("repository"))


@pages.post("/admin/grants")
async def change_grant(visit: Visit, form: Form) -> Response:
    """Set or remove the grant of one cell, and show the matrix as it was."""
    user, repository = form.text("user"), form.text("repository")
    operation, cell = "/users/<id>/permissions/<place>", {"id": user, "place": repository}
    try:
        if form.flag("remove"):
            await visit.api("DELETE", operation, cell)
        else:
            await visit.api("PUT", operation, cell, fields={"actions": form.all("actions")})
    except REFUSED as error:
        return await _grants_page(visit, user, repository, error=str(error))
    return visit.redirect("/admin/grants?" + urlencode({name: form.text(name) for name in KEPT if form.text(name)}))


async def _grants_page(visit: Visit, user: str, repository: str, error: str = "") -> Response:
    rows: dict[str, Any] = {"limit": ROWS}
    rows |= {name: visit.query(name) for name in ("q", "cursor") if visit.query(name)}
    shown = (("q", "repositories"), ("cursor", "columns"))
    columns: dict[str, Any] = {"limit": COLUMNS}
    columns |= {name: visit.query(field) for name, field in shown if visit.query(field)}
    chosen = None
    if user and repository:
        found = await visit.api("GET", "/users/<id>", {"id": user})
        permissions = await visit.api("GET", "/users/<id>/permissions", {"id": user})
        own = [each for each in permissions.repositories if (each.repository, each.via) == (repository, "user")]
        chosen = {"user": found, "repository": repository, "grant": own[0] if own else None}
    return visit.page(
        "administration/grants.html",
        listed=await visit.api("GET", "/permissions", query=rows),
        repositories=await visit.api("GET", "/repository", query=columns),
        scopes=await visit.api("GET", "/info/scopes"),
        chosen=chosen,
        kept=KEPT,
        error=error,
    )
