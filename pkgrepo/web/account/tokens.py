"""The caller's access tokens."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from pkgrepo.http.answers import Answer
from pkgrepo.web.forms import Form
from pkgrepo.web.refused import REFUSED
from pkgrepo.web.tables import Pages, PageTable
from pkgrepo.web.visits import Visit

from .sentences import sentence_of

PER_PAGE: Final = 100
REACH: Final[dict[str, list[str]]] = {  # actions by the choice in the form
    "read": ["read"],
    "write": ["read", "write"],
    "delete": ["read", "write", "overwrite", "delete"],
}
EVERYTHING: Final = ["read", "write", "overwrite", "delete", "edit", "admin"]
FORM: Final = {"name": "", "reach": "write", "repositories": "", "packages": "", "days": "90"}  # with the first values


class TokenPages(Pages):
    """The list of tokens, and the form that makes one."""

    pages: ClassVar = PageTable()

    @pages.get("/account/tokens")
    async def tokens(self, visit: Visit) -> Answer:
        """The tokens, and the form for a new one."""
        return await self._page(visit)

    @pages.post("/account/tokens")
    async def make(self, visit: Visit, form: Form) -> Answer:
        """Make a token, and show its text this once; or only explain what it could do."""
        if form.flag("explain"):
            return await self._page(visit, form=form, explained=_explained(_new_token(form)))
        try:
            made = await visit.api("POST", "/user/token", fields=_new_token(form))
        except REFUSED as error:
            return await self._page(visit, form=form, error=str(error))
        return await self._page(visit, made=made)

    @pages.post("/account/tokens/revoke")
    async def revoke(self, visit: Visit, form: Form) -> Answer:
        """Revoke a token."""
        await visit.api("DELETE", "/user/token/<id>", {"id": form.text("id")})
        return visit.redirect("/account/tokens")

    async def _page(
        self, visit: Visit, *, form: Form | None = None, explained: str = "", error: str = "", made: Any = None
    ) -> Answer:
        values = {**FORM, "repositories": visit.query("repository")}
        if values["repositories"]:
            values["name"] = f"for {values['repositories']}"
        if form is not None:
            values = {name: form.text(name) for name in FORM}
        shown = Form({name: [value] for name, value in values.items()})
        query: dict[str, Any] = {"limit": PER_PAGE}
        query |= {each: visit.query(each) for each in ("sort", "cursor") if visit.query(each)}
        return visit.page(
            "account/tokens.html",
            status=422 if error else 200,
            tokens=await visit.api("GET", "/user/token", query=query),
            order=visit.query("sort") or "created_at",
            scopes=await visit.api("GET", "/info/scopes"),
            info=await visit.api("GET", "/info"),
            values=values,
            chosen=[] if form is None else form.all("scopes"),
            explained=explained or _explained(_new_token(form or shown)),
            sentence_of=_sentence,
            error=error,
            made=made,
        )


def _new_token(form: Form) -> dict[str, Any]:
    """The body of the request for a token. Without scopes and repositories, it has the rights of its owner in them."""
    fields: dict[str, Any] = {"name": form.text("name")}
    reach = REACH.get(form.text("reach"))
    if reach is None and form.all("scopes"):  # scopes alone would be for no repository
        reach = EVERYTHING
    if reach is not None:
        places = form.lines("repositories") or ["*/*"]
        packages = form.lines("packages")
        fields["repositories"] = [{"repository": each, "actions": reach, "packages": packages} for each in places]
    if form.all("scopes"):
        fields["scopes"] = form.all("scopes")
    days = form.text("days")
    if days.isascii() and days.isdigit() and len(days) < 6:
        fields["expires_in_days"] = int(days)
    return fields


def _explained(fields: dict[str, Any]) -> str:
    """What the token that this body asks for could do."""
    repositories = fields.get("repositories")
    access = "owner" if repositories is None else "listed"
    return sentence_of(access, repositories or [], fields.get("scopes", []), days=fields.get("expires_in_days"))


def _sentence(token: Any) -> str:
    """What a token can do, by its record."""
    repositories = [msgspec.to_builtins(each) for each in token.repositories]
    return sentence_of(token.repository_access, repositories, token.scopes, until=token.expires_at)
