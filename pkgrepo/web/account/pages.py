"""Profile, password and logins of the caller."""

from __future__ import annotations

from typing import ClassVar

from pkgrepo.errors import Invalid
from pkgrepo.http.answers import Answer
from pkgrepo.web.forms import Form
from pkgrepo.web.refused import REFUSED
from pkgrepo.web.tables import Pages, PageTable
from pkgrepo.web.visits import Visit


class AccountPages(Pages):
    """The page of the caller's account and its forms."""

    pages: ClassVar = PageTable()

    @pages.get("/account")
    async def account(self, visit: Visit) -> Answer:
        """The profile, the permissions, and the logins."""
        return await self._page(visit)

    @pages.post("/account")
    async def change(self, visit: Visit, form: Form) -> Answer:
        """Change name and email."""
        try:
            await visit.api("PATCH", "/user/me", fields={"name": form.text("name"), "email": form.text("email")})
        except REFUSED as error:
            return await self._page(visit, error=str(error))
        return visit.redirect("/account")

    @pages.post("/account/password")
    async def change_password(self, visit: Visit, form: Form) -> Answer:
        """Change the password, which ends every session."""
        fields = {"old_password": form.secret("old"), "new_password": form.secret("new")}
        try:
            if form.secret("new") != form.secret("repeated"):
                raise Invalid("the two new passwords differ")
            await visit.api("POST", "/user/change-password", fields=fields)
        except REFUSED as error:
            return await self._page(visit, error=str(error))
        return visit.redirect("/login?next=/ui/account")

    @pages.post("/account/sessions")
    async def end_sessions(self, visit: Visit, form: Form) -> Answer:
        """End one login, or all others."""
        if form.text("id"):
            await visit.api("DELETE", "/user/sessions/<id>", {"id": form.text("id")})
        else:
            await visit.api("DELETE", "/user/sessions")
        return visit.redirect("/account")

    async def _page(self, visit: Visit, error: str = "") -> Answer:
        return visit.page(
            "account/account.html",
            status=422 if error else 200,
            me=await visit.api("GET", "/user/me"),
            permissions=await visit.api("GET", "/user/me/permissions"),
            sessions=await visit.api("GET", "/user/sessions"),
            error=error,
        )
