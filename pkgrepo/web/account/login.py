"""Log in and out, and the first start."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from pkgrepo.errors import (
    AuthenticationFailed,
    AuthenticationRequired,
    Conflict,
    Forbidden,
    IdentityRefused,
    Invalid,
    IssuerUnavailable,
    NotFound,
    SecondFactorMissing,
    SecondFactorRequired,
    TooManyAttempts,
)
from pkgrepo.http.responses import NO_STORE, Response
from pkgrepo.model import Action
from pkgrepo.web.rendering.languages import marked
from pkgrepo.web.rendering.tokens import sentence_of
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit, is_elsewhere

_NPM_LOGIN: Final = re.compile(r"/repositories/[\w.~%-]+/[\w.~%-]+/-/v1/login\?session=[\w.~%-]+", re.ASCII)
WRONG: Final = marked("The user name or the password is wrong.")
DEVICE: Final = "login/device.html"
NOT_ASKING: Final[dict[str, Any]] = {"asking": None, "asked": "", "code": "", "done": "", "target": ""}
LINK: Final = "login/password_link.html"
DEVICE_REFUSED: Final = (Forbidden, Invalid, NotFound, TooManyAttempts)

pages = PageTable()


@pages.get("/login")
async def form(visit: Visit) -> Response:
    """The login form; ``next`` is the page to show afterwards."""
    return await _form_page(visit)


@pages.post("/login", open=True)
async def log_in(visit: Visit, form: Form) -> Response:
    """Begin a session, and show the page from which the browser came."""
    visit.sent = form
    fields = {**form.texts("username", "code"), "password": form.secret("password")}
    try:
        return _go_on(visit, form.text("next"), await visit.api("POST", "/user/login", fields=fields))
    except SecondFactorRequired:
        error = marked("Type the one-time password of your app, too, or a recovery code.")
    except SecondFactorMissing as refused:
        return await _form_page(visit, refused, 401, needs_factor=True)
    except (AuthenticationFailed, Invalid):
        error = marked("The user name, the password or the code is wrong.") if form.text("code") else WRONG
    except (TooManyAttempts, Forbidden) as refused:
        error = str(refused)
    except IssuerUnavailable as away:
        return await _form_page(visit, away, 503)
    return await _form_page(visit, error, 401)


async def _form_page(
    visit: Visit, error: Exception | str = "", status: int = 200, *, needs_factor: bool = False
) -> Response:
    """``needs_factor``: the account must set up a second factor before."""
    visit.error = str(error)
    return visit.page(
        "login/login.html",
        status=status,
        next=visit.sent.text("next") or visit.query("next"),
        username=visit.sent.text("username"),
        needs_factor=needs_factor,
        providers=await visit.api("GET", "/user/login/oidc"),
        passkey=await visit.api("POST", "/user/login/passkey/begin"),
    )


@pages.post("/login/passkey", open=True)
async def log_in_with_passkey(visit: Visit, form: Form) -> Response:
    """Begin a session with what a script has got of a passkey."""
    visit.sent = form
    fields = form.texts("ticket", "credential_id", "client_data", "authenticator_data", "signature")
    try:
        return _go_on(visit, form.text("next"), await visit.api("POST", "/user/login/passkey", fields=fields))
    except IdentityRefused as error:
        return await _form_page(visit, error, 401)


@pages.get("/login/oidc/<provider>")
async def begin_at_provider(visit: Visit) -> Response:
    """Send the browser to an identity provider; ``next`` is the page to show after the login."""
    try:
        begun = await visit.api("POST", "/user/login/oidc/<provider>", fields={"next": visit.query("next")})
    except IssuerUnavailable as error:
        return await _form_page(visit, error, 503)
    url = json.loads(begun.body)["url"]
    return Response(303, headers=((b"Location", url.encode("ascii")), *NO_STORE, *_cookies(begun)))


@pages.get("/login/oidc/<provider>/callback")
async def end_at_provider(visit: Visit) -> Response:
    """Begin a session for a person whom the provider has sent back."""
    fields = {name: visit.query(name) for name in ("code", "state", "iss", "error", "error_description")}
    try:
        ended = await visit.api("POST", "/user/login/oidc/<provider>/callback", fields=fields)
    except (IdentityRefused, Forbidden) as error:
        return await _form_page(visit, error, 403)
    except IssuerUnavailable as error:
        return await _form_page(visit, error, 503)
    return _go_on(visit, json.loads(ended.body)["next"], ended)


@pages.get("/device")
async def show_device(visit: Visit) -> Response:
    """The field for the code that a program shows, or with ``user_code`` what the program asks for."""
    if visit.identity.anonymous:
        raise AuthenticationRequired
    code, found = visit.query("user_code"), None
    if code and not visit.error:
        try:
            found = await visit.api("GET", "/user/login/device", query={"user_code": code})
        except DEVICE_REFUSED as refused:
            visit.error = str(refused)
    return visit.page(DEVICE, **NOT_ASKING | {"code": code, "asking": found, "asked": found and _asked(visit, found)})


@pages.post("/device", page=show_device, refused=DEVICE_REFUSED)
async def decide_device(visit: Visit, form: Form) -> Response:
    """Approve the login of a program, or deny it."""
    approve = form.flag("approve")
    fields = {**form.texts("user_code"), "approve": approve}
    decided = await visit.api("POST", "/user/login/device/decision", fields=fields)
    target = decided.redirect or ""
    # A redirect of a form would need a form-action with the port (CSP 3, section 6.6.2.4).
    headers = ((b"Refresh", b"0; url=" + target.encode("ascii")),) if target else ()
    values = {**NOT_ASKING, "done": "approved" if approve else "denied", "target": target}
    return visit.page(DEVICE, headers=headers, **values)


def _asked(visit: Visit, found: Any) -> str:
    """What the token of a login could do."""
    scopes = found.scopes or []
    actions = [each for each in scopes if each in list(Action)]
    places = [{"repository": "*/*", "actions": actions, "packages": []}] if actions else []
    server = [each for each in scopes if each not in actions]
    access = "owner" if not scopes or len(actions) == len(Action) else "listed" if actions else "none"
    return sentence_of(access, places, server, days=found.expires_in_days, language=visit.language)


@pages.get("/password-link")
async def link_form(visit: Visit) -> Response:
    """The form for a new password; a script takes the secret of the link from the fragment of the address."""
    return visit.page(LINK, secret=_secret(visit.sent), done="")


@pages.post("/password-link", page=link_form, refused=(Conflict, Forbidden, Invalid), open=True)
async def use_link(visit: Visit, form: Form) -> Response:
    """Choose a password with a one-time link."""
    fields = {"secret": _secret(form), "password": _repeated(form)}
    used = await visit.api("POST", "/user/password-link", fields=fields)
    return visit.page(LINK, secret="", done=used.username)


def _secret(form: Form) -> str:
    return form.text("secret").rpartition("#")[2]


def _repeated(form: Form) -> str:
    """The password that was typed twice. :raises Invalid: it was not"""
    if form.secret("password") != form.secret("repeated"):
        raise Invalid(marked("the two passwords differ"))
    return form.secret("password")


@pages.post("/logout")
async def log_out(visit: Visit, _form: Form) -> Response:
    """End the session."""
    return visit.redirect("/", headers=_cookies(await visit.api("POST", "/user/logout")))


@pages.get("/install")
async def install_form(visit: Visit) -> Response:
    """The form for the first admin, while there is none."""
    info = await visit.api("GET", "/info")
    if info.installed and not visit.error:
        return visit.redirect("/")
    return visit.page("login/install.html", username=visit.sent.text("username", "admin"))


@pages.post("/install", page=install_form, refused=(Invalid,), open=True)
async def install(visit: Visit, form: Form) -> Response:
    """Make the first admin, and log them in."""
    await visit.api("POST", "/install", fields={"user": {**form.texts("username"), "password": _repeated(form)}})
    return await log_in(visit, form)


def _go_on(visit: Visit, target: str, begun: Response) -> Response:
    """Show the page to which a login was to lead, or go on with the login of npm."""
    cookies = _cookies(begun)
    if _NPM_LOGIN.fullmatch(target) and not is_elsewhere(target):
        location = (visit.base_url + target).encode("ascii")
        return Response(303, headers=((b"Location", location), *NO_STORE, *cookies))
    return visit.go_back(target, cookies)


def _cookies(answer: Response) -> tuple[tuple[bytes, bytes], ...]:
    return tuple(each for each in answer.headers if each[0] == b"Set-Cookie")
