"""Renders templates to answers, with the headers that keep package content from running in pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from pkgrepo import __version__
from pkgrepo.archives.listing import LONGEST_TEXT, is_archive
from pkgrepo.gateway.answers.content import choose_encoding, document_answer
from pkgrepo.http.answers import NO_STORE, Answer, Fields
from pkgrepo.http.request import Request
from pkgrepo.repositories.publish.splicing import render

from .assets import Assets
from .charts import bars, share
from .filters import FILTERS

HTML: Final = "text/html; charset=utf-8"
POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    b" frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
SECURITY: Final[Fields] = (
    (b"Content-Security-Policy", POLICY),
    # With no-referrer browsers send "Origin: null" with forms (Fetch standard, section 3.2).
    (b"Referrer-Policy", b"same-origin"),
    (b"Cross-Origin-Opener-Policy", b"same-origin"),
    (b"Vary", b"Cookie, Authorization, Accept-Encoding"),
)


class PageRenderer:
    """Renders the templates of this package."""

    def __init__(self, assets: Assets) -> None:
        self._environment = Environment(
            loader=PackageLoader("pkgrepo.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters.update(FILTERS)
        self._environment.tests["archive"] = is_archive
        self._environment.globals.update(
            asset=assets.address, bars=bars, longest=LONGEST_TEXT, share=share, version=__version__
        )

    def answer(
        self, request: Request, template: str, values: Mapping[str, Any], *, status: int = 200, headers: Fields = ()
    ) -> Answer:
        """A page for a request; ``status`` is a variable of every template."""
        text = self._environment.get_template(template).render(status=status, **values)
        document = render(HTML, text.encode("utf-8", "replace"), 0)
        encoding = choose_encoding(request.header(b"accept-encoding"))
        answer = document_answer(document, encoding, (*SECURITY, *NO_STORE, *headers))
        # without an ETag: NO_STORE says that nothing is kept
        return Answer(status, answer.body, answer.content_type, answer.headers)
