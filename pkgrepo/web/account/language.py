"""The language in which a browser reads the console, with or without a login."""

from __future__ import annotations

from pkgrepo.errors import Invalid
from pkgrepo.gateway.callers.browsers import language_cookie_field
from pkgrepo.http.responses import Response
from pkgrepo.web.rendering.languages import marked
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

pages = PageTable()


@pages.post("/language", open=True)
async def choose_language(visit: Visit, form: Form) -> Response:
    """Keep the choice of a language in the browser, and show the page again."""
    code = form.text("language")
    if code not in visit.languages:
        raise Invalid(marked("the console has no such language"))
    return visit.go_back(form.text("next"), (language_cookie_field(visit.request, code),))
