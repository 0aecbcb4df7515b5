"""Set up and remove a second factor, with the password, so that also those can who must have one to log in."""

from __future__ import annotations

from typing import Any, Final

from markupsafe import Markup

from pkgrepo.errors import Conflict, DirectoryUnavailable, IdentityRefused, TooManyAttempts
from pkgrepo.http.responses import Response
from pkgrepo.web.tables import REFUSED, Errors, PageTable
from pkgrepo.web.visits import Form, Visit

TEMPLATE: Final = "login/second_factor.html"
PROBLEMS: Final[Errors] = (*REFUSED, TooManyAttempts, DirectoryUnavailable)
NOTHING: Final[dict[str, Any]] = {"codes": [], "ticket": "", "options": None, "done": ""}

pages = PageTable(PROBLEMS)


@pages.get("/second-factor")
async def show(visit: Visit, **values: Any) -> Response:
    """The forms that begin, and that remove; or with ``values`` what one of them led to."""
    return visit.page(TEMPLATE, **NOTHING | values)


@pages.post("/second-factor", page=show, open=True)
async def begin(visit: Visit, form: Form) -> Response:
    """Show a new secret, and the form for its first code."""
    made = await visit.api("POST", "/user/second-factor", fields=_proof(form))
    return await _confirmation(visit, made.ticket, made.secret, made.uri)


@pages.post("/second-factor/confirm", page=show, open=True)
async def confirm(visit: Visit, form: Form) -> Response:
    """Set the factor up, and show the recovery codes."""
    try:
        found = await visit.api("POST", "/user/second-factor/confirm", fields=form.texts("ticket", "code"))
    except Conflict:
        raise
    except PROBLEMS as error:
        visit.error = str(error)
        return await _confirmation(visit, **form.texts("ticket", "secret", "uri"))
    return await show(visit, codes=found.codes)


@pages.post("/second-factor/codes", page=show, open=True)
async def renew(visit: Visit, form: Form) -> Response:
    """Show new recovery codes."""
    found = await visit.api("POST", "/user/second-factor/recovery-codes", fields=_proof(form))
    return await show(visit, codes=found.codes)


@pages.post("/second-factor/passkey", page=show, open=True)
async def begin_passkey(visit: Visit, form: Form) -> Response:
    """Show the form for a new passkey, which a script makes."""
    made = await visit.api("POST", "/user/passkeys/begin", fields=_proof(form))
    options = {
        "challenge": made.challenge,
        "rp": {"id": made.rp_id, "name": "pkgrepo"},
        "user": {"id": made.user_id, "name": made.username, "displayName": made.username},
        "pubKeyCredParams": [{"type": "public-key", "alg": each} for each in made.algorithms],
        "excludeCredentials": [{"type": "public-key", "id": each} for each in made.exclude],
    }
    return await show(visit, ticket=made.ticket, options=options)


@pages.post("/second-factor/passkey/made", page=show, refused=(*PROBLEMS, IdentityRefused), open=True)
async def make_passkey(visit: Visit, form: Form) -> Response:
    """Keep a new passkey."""
    fields = form.texts("ticket", "name", "client_data", "authenticator_data", "public_key")
    return await show(visit, done=(await visit.api("POST", "/user/passkeys", fields=fields)).name)


def _proof(form: Form) -> dict[str, Any]:
    return {**form.texts("username", "code"), "password": form.secret("password")}


pages.operation(
    "/second-factor/remove", "POST", "/user/second-factor/remove", _proof, page=show, then="/login", open=True
)


async def _confirmation(visit: Visit, ticket: str, secret: str, uri: str) -> Response:
    picture = _picture(uri) if uri.startswith("otpauth://") else ""
    return await show(visit, ticket=ticket, secret=secret, uri=uri, picture=picture)


def _picture(text: str) -> Markup:
    """The QR code of a text, as SVG in the page: nothing else sees the secret."""
    import segno  # noqa: PLC0415 - of all pages this one alone needs it

    try:
        code = segno.make(text, error="m", micro=False)
    except segno.DataOverflowError:
        return Markup("")
    return Markup(code.svg_inline(scale=5, border=2, light="#fff", dark="#000"))  # noqa: S704 - made of squares alone
