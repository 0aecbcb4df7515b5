"""Users and their permissions."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from pkgrepo.http.answers import Answer
from pkgrepo.web.forms import Form
from pkgrepo.web.refused import REFUSED
from pkgrepo.web.tables import Pages, PageTable
from pkgrepo.web.visits import Visit

PER_PAGE: Final = 100
FLAGS: Final = ("admin", "user_manager", "system_manager")


class UserPages(Pages):
    """The list of users, the form for a new one, and the page of each."""

    pages: ClassVar = PageTable()

    @pages.get("/admin/users")
    async def users(self, visit: Visit) -> Answer:
        """The users, with a filter, and the form for a new one."""
        return await self._list(visit)

    @pages.post("/admin/users")
    async def add(self, visit: Visit, form: Form) -> Answer:
        """Add a person, or a service, which has only tokens."""
        fields: dict[str, Any] = {name: form.text(name) for name in ("username", "name", "email")}
        fields["kind"] = "service" if form.flag("service") else "person"
        if form.secret("password"):
            fields["password"] = form.secret("password")
        try:
            made = await visit.api("POST", "/users", fields=fields)
        except REFUSED as error:
            return await self._list(visit, error=str(error))
        return visit.redirect_to("admin", "users", made.id)

    @pages.get("/admin/users/<id>")
    async def user(self, visit: Visit, id: str) -> Answer:
        """One user: account, flags, default actions and grants."""
        return await self._user(visit, id)

    @pages.post("/admin/users/<id>")
    async def change(self, visit: Visit, form: Form, id: str) -> Answer:
        """Change the account, the flags and the default actions."""
        fields: dict[str, Any] = {"name": form.text("name"), "email": form.text("email"), "active": form.flag("active")}
        fields["default_repository_actions"] = form.all("actions")
        if visit.identity.admin:
            fields |= {flag: form.flag(flag) for flag in FLAGS}
        return await self._do(visit, id, "PATCH", "/users/<id>", fields)

    @pages.post("/admin/users/<id>/password")
    async def set_password(self, visit: Visit, form: Form, id: str) -> Answer:
        """Set a new password."""
        return await self._do(visit, id, "PUT", "/users/<id>/password", {"password": form.secret("password")})

    @pages.post("/admin/users/<id>/grants")
    async def set_grants(self, visit: Visit, form: Form, id: str) -> Answer:
        """Set the grants: for each repository that is named, the actions that are checked."""
        names = [name for name in form.all("repository") if not form.flag(f"drop {name}")]
        grants = [{"repository": name, "actions": form.all(f"actions {name}")} for name in names]
        if form.text("new"):
            grants.append({"repository": form.text("new"), "actions": form.all("new actions")})
        return await self._do(visit, id, "PUT", "/users/<id>/permissions", {"repositories": grants})

    @pages.post("/admin/users/<id>/delete")
    async def delete(self, visit: Visit, _form: Form, id: str) -> Answer:
        """Delete the user."""
        try:
            await visit.api("DELETE", "/users/<id>", {"id": id})
        except REFUSED as error:
            return await self._user(visit, id, error=str(error))
        return visit.redirect("/admin/users")

    async def _do(self, visit: Visit, id: str, method: str, operation: str, fields: dict[str, Any]) -> Answer:
        try:
            await visit.api(method, operation, {"id": id}, fields=fields)
        except REFUSED as error:
            return await self._user(visit, id, error=str(error))
        return visit.redirect_to("admin", "users", id)

    async def _list(self, visit: Visit, error: str = "") -> Answer:
        query: dict[str, Any] = {"limit": PER_PAGE}
        query |= {name: visit.query(name) for name in ("q", "sort", "cursor") if visit.query(name)}
        listed = await visit.api("GET", "/users", query=query)
        return visit.page(
            "administration/users.html",
            status=422 if error else 200,
            listed=listed,
            order=visit.query("sort") or "username",
            error=error,
        )

    async def _user(self, visit: Visit, id: str, error: str = "") -> Answer:
        return visit.page(
            "administration/user.html",
            status=422 if error else 200,
            user=await visit.api("GET", "/users/<id>", {"id": id}),
            permissions=await visit.api("GET", "/users/<id>/permissions", {"id": id}),
            scopes=await visit.api("GET", "/info/scopes"),
            error=error,
        )
