"""The caller's own account: profile, password, logins in browsers, and access tokens."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from shlex import quote
from typing import Any, Final

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.http.responses import Response
from pkgrepo.web.rendering.languages import marked
from pkgrepo.web.rendering.tokens import sentence_of
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

pages = PageTable()
PER_PAGE: Final = 100
NEWEST: Final = "-created_at"
MOST_REPOSITORIES: Final = 1000  # that are looked at for one of each format
WARNED: Final = timedelta(days=14)  # before a token ends, as its first event comes
REACH: Final[dict[str, list[str]]] = {  # actions by the choice in the form
    "read": ["read"],
    "write": ["read", "write"],
    "delete": ["read", "write", "overwrite", "delete"],
}
EVERYTHING: Final = ["read", "write", "overwrite", "delete", "edit", "admin"]
LOGIN: Final = "/login?next=/ui/account"  # since a new password ends all sessions
SERVICE: Final = "/account/services/<id>"
# with the first values
FORM: Final = {"name": "", "reach": "write", "repositories": "", "packages": "", "days": "90", "canary": ""}


@pages.get("/account")
async def show_account(visit: Visit) -> Response:
    """The profile, the permissions, and the logins."""
    return visit.page(
        "account/account.html",
        me=await visit.api("GET", "/user/me"),
        permissions=await visit.api("GET", "/user/me/permissions"),
        sessions=await visit.api("GET", "/user/sessions"),
        passkeys=await visit.api("GET", "/user/passkeys"),
        methods=await visit.api("GET", "/user/me/login-methods"),
    )


def _password(form: Form) -> dict[str, Any]:
    if form.secret("new") != form.secret("repeated"):
        raise Invalid(marked("the two new passwords differ"))
    return {"old_password": form.secret("old"), "new_password": form.secret("new"), **form.texts("code")}


@pages.post("/account/sessions", then="/account")
async def end_sessions(visit: Visit, form: Form) -> None:
    """End one login, or all others."""
    await visit.api("DELETE", "/user/sessions/<id>" if form.text("id") else "/user/sessions", form.texts("id"))


@pages.get("/account/rights")
async def show_rights(visit: Visit) -> Response:
    """What the caller may do in each repository, and why."""
    listed = await visit.api("GET", "/user/me/rights", query=visit.asked("cursor", limit=PER_PAGE))
    return visit.page("account/rights.html", listed=listed, user=None)


@pages.get("/account/services")
async def show_services(visit: Visit) -> Response:
    """The service accounts that the caller owns, alone or in a group."""
    return visit.page("account/services.html", services=await visit.api("GET", "/user/services"))


@pages.get("/account/tokens")
@pages.get(SERVICE)
async def show_tokens(visit: Visit, *, made: Any = None, explained: str = "") -> Response:
    """The tokens of the caller or of a service account, and the form for a new one; with the one just ``made``."""
    service = await _service(visit) if "id" in visit.at else None
    values = {**FORM, "repositories": visit.query("repository")}
    if values["repositories"]:
        values["name"] = f"for {values['repositories']}"
    form = visit.sent or Form({name: [value] for name, value in values.items()})
    query = {"sort": NEWEST, **visit.asked("sort", "cursor", limit=PER_PAGE)}
    listed = await visit.api("GET", _tokens_of(visit), query=query)
    now = datetime.now(UTC)
    ending = {
        each.id
        for each in listed.items
        if each.revoked_at is None and each.expires_at is not None and now < each.expires_at < now + WARNED
    }
    return visit.page(
        "account/tokens.html",
        service=service,
        tokens=listed,
        rings=[] if service else await visit.api("GET", "/user/canary"),
        ending=ending,
        order=query["sort"],
        scopes=await visit.api("GET", "/info/scopes"),
        info=await visit.api("GET", "/info"),
        values=form.texts(*FORM),
        chosen=form.all("scopes"),
        explained=explained or _explained(visit, _new_token(form)),
        sentence_of=partial(_sentence, visit),
        made=made,
        lines=[] if made is None else await _lines(visit, made),
    )


def _tokens_of(visit: Visit) -> str:
    """The operation that lists and makes tokens."""
    return "/users/<id>/token" if "id" in visit.at else "/user/token"


async def _service(visit: Visit) -> Any:
    """A service account that the caller owns, or may manage."""
    owned = [each for each in await visit.api("GET", "/user/services") if each.id == visit.at["id"]]
    return owned[0] if owned else await visit.api("GET", "/users/<id>")


@pages.post("/account/tokens", page=show_tokens)
@pages.post(SERVICE, page=show_tokens)
async def make_token(visit: Visit, form: Form) -> Response:
    """Make a token, and show its text this once; or only explain what it could do."""
    if form.flag("explain"):
        visit.sent = form
        return await show_tokens(visit, explained=_explained(visit, _new_token(form)))
    return await show_tokens(visit, made=await visit.api("POST", _tokens_of(visit), fields=_new_token(form)))


pages.operation("/account", "PATCH", "/user/me", ("name", "email"), page=show_account)
pages.operation("/account/password", "POST", "/user/change-password", _password, page=show_account, then=LOGIN)
pages.operation("/account/passkeys", "DELETE", "/user/passkeys/<id>", then="/account")
pages.operation("/account/tokens/revoke", "DELETE", "/user/token/<id>", then="/account/tokens")


@pages.post(f"{SERVICE}/revoke", then=SERVICE)
async def revoke_service_token(visit: Visit, form: Form) -> None:
    """Revoke a token of a service account."""
    await visit.api("DELETE", "/users/<id>/token/<token>", {"token": form.text("id")})


async def _lines(visit: Visit, made: Any) -> list[dict[str, str]]:
    """What to copy for each client so that it uses a new token, for one repository of each format that it opens."""
    patterns = ["*"] if made.repository_access == "owner" else [each.repository for each in made.repositories]
    opened: dict[str, Any] = {}
    for each in (await visit.api("GET", "/repository", query={"limit": MOST_REPOSITORIES})).items:
        path = f"{each.storage_name}/{each.name}"
        if each.format not in opened and any(fnmatchcase(path, pattern) for pattern in patterns):
            opened[each.format] = each
    found: dict[str, dict[str, str]] = {}
    for record in opened.values():
        place = {"repository": f"{record.storage_name}/{record.name}"}
        said = [
            (each.client, each.file or each.title, each.text)
            for each in await visit.api("GET", "/repository/<repository>/setup", place)
        ]
        kind = visit.format_of(record)
        logins = [(each["client"], each["file"], each["text"]) for each in kind.logins(visit.base_url)]
        for client, file, text in logins or said:
            used = re.sub(r"<TOKEN>|\bTOKEN\b", made.token, text).replace("USERNAME", made.owner)
            if made.token in used and client in kind.token_clients and client not in found:
                found[client] = {"title": client, "file": file, "text": used}
    address = quote(visit.base_url)
    text = f"printf %s {made.token} > token.txt\npkgrepo login {address} --token-file token.txt\nrm token.txt\n"
    return [*found.values(), {"title": "pkgrepo", "file": "", "text": text}]


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
    if form.flag("canary"):
        return {**fields, "canary": True}
    days = form.text("days")
    if days.isascii() and days.isdigit() and len(days) < 6:
        fields["expires_in_days"] = int(days)
    return fields


def _explained(visit: Visit, fields: dict[str, Any]) -> str:
    """What the token that this body asks for could do."""
    if "canary" in fields:
        return visit.language.text("It opens nothing: any use is refused, and reported. It does not end.")
    repositories = fields.get("repositories")
    access = "owner" if repositories is None else "listed"
    days = fields.get("expires_in_days")
    return sentence_of(access, repositories or [], fields.get("scopes", []), days=days, language=visit.language)


def _sentence(visit: Visit, token: Any) -> str:
    """What a token can do, by its record."""
    repositories = [msgspec.to_builtins(each) for each in token.repositories]
    return sentence_of(
        token.repository_access, repositories, token.scopes, until=token.expires_at, language=visit.language
    )
