"""Set up and remove a second factor, with the password, so that also those can who must have one to log in."""

from __future__ import annotations

from typing import Any, Final

from markupsafe import Markup

from pkgrepo.errors import Conflict, DirectoryUnavailable, IdentityRefused, NotFound, TooManyAttempts
from pkgrepo.http.responses import Response
from pkgrepo.web.refusals import REFUSED
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

TEMPLATE: Final = "login/second_factor.html"

pages = PageTable()
PROBLEMS = (*REFUSED, TooManyAttempts, NotFound, DirectoryUnavailable)


@pages.get("/second-factor")
async def show(visit: Visit) -> Response:
    """The forms that begin, and that remove."""
    return _page(visit)


@pages.post("/second-factor", open=True)
async def begin(visit: Visit, form: Form) -> Response:
    """Show a new secret, and the form for its first code."""
    try:
        made = await visit.api("POST", "/user/second-factor", fields=_proof(form))
    except PROBLEMS as error:
        return _page(visit, error)
    return _confirmation(visit, made.ticket, made.secret, made.uri)


@pages.post("/second-factor/confirm", open=True)
async def confirm(visit: Visit, form: Form) -> Response:
    """Set the factor up, and show the recovery codes."""
    ticket, secret, uri = (form.text(name) for name in ("ticket", "secret", "uri"))
    try:
        found = await visit.api(
            "POST", "/user/second-factor/confirm", fields={"ticket": ticket, "code": form.text("code")}
        )
    except Conflict as error:
        return _page(visit, error)
    except PROBLEMS as error:
        return _confirmation(visit, ticket, secret, uri, error)
    return _codes(visit, found.codes)


@pages.post("/second-factor/codes", open=True)
async def renew(visit: Visit, form: Form) -> Response:
    """Show new recovery codes."""
    try:
        found = await visit.api("POST", "/user/second-factor/recovery-codes", fields=_proof(form))
    except PROBLEMS as error:
        return _page(visit, error)
    return _codes(visit, found.codes)


@pages.post("/second-factor/remove", open=True)
async def remove(visit: Visit, form: Form) -> Response:
    """Remove the factor."""
    try:
        await visit.api("POST", "/user/second-factor/remove", fields=_proof(form))
    except PROBLEMS as error:
        return _page(visit, error)
    return visit.redirect("/login")


@pages.post("/second-factor/passkey", open=True)
async def begin_passkey(visit: Visit, form: Form) -> Response:
    """Show the form for a new passkey, which a script makes."""
    try:
        made = await visit.api("POST", "/user/passkeys/begin", fields=_proof(form))
    except PROBLEMS as error:
        return _page(visit, error)
    options = {
        "challenge": made.challenge,
        "rp": {"id": made.rp_id, "name": "pkgrepo"},
        "user": {"id": made.user_id, "name": made.username, "displayName": made.username},
        "pubKeyCredParams": [{"type": "public-key", "alg": each} for each in made.algorithms],
        "excludeCredentials": [{"type": "public-key", "id": each} for each in made.exclude],
    }
    return visit.page(TEMPLATE, codes=[], ticket=made.ticket, error="", options=options, done="")


@pages.post("/second-factor/passkey/made", open=True)
async def make_passkey(visit: Visit, form: Form) -> Response:
    """Keep a new passkey."""
    names = ("ticket", "name", "client_data", "authenticator_data", "public_key")
    try:
        made = await visit.api("POST", "/user/passkeys", fields={name: form.text(name) for name in names})
    except (*PROBLEMS, IdentityRefused) as error:
        return _page(visit, error)
    return visit.page(TEMPLATE, codes=[], ticket="", error="", options=None, done=made.name)


def _proof(form: Form) -> dict[str, Any]:
    return {"username": form.text("username"), "password": form.secret("password"), "code": form.text("code")}


def _page(visit: Visit, error: Exception | str = "") -> Response:
    return visit.page(TEMPLATE, codes=[], ticket="", error=str(error), options=None, done="")


def _codes(visit: Visit, codes: list[str]) -> Response:
    return visit.page(TEMPLATE, codes=codes, ticket="", error="", options=None, done="")


def _confirmation(visit: Visit, ticket: str, secret: str, uri: str, error: Exception | str = "") -> Response:
    return visit.page(
        TEMPLATE,
        codes=[],
        ticket=ticket,
        secret=secret,
        uri=uri,
        picture=_picture(uri) if uri.startswith("otpauth://") else "",
        error=str(error),
        options=None,
        done="",
    )


def _picture(text: str) -> Markup:
    """The QR code of a text, as SVG in the page: nothing else sees the secret."""
    import segno  # noqa: PLC0415 - of all pages this one alone needs it

    try:
        code = segno.make(text, error="m", micro=False)
    except segno.DataOverflowError:
        return Markup("")
    return Markup(code.svg_inline(scale=5, border=2, light="#fff", dark="#000"))  # noqa: S704 - made of squares alone
