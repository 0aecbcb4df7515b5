"""Whether a request was sent by a browser that shows a page, rather than by a client of a format."""

from __future__ import annotations

from typing import Final

from pkgrepo.http.answers import NO_STORE, Answer
from pkgrepo.http.request import Request

from .access import SAFE_METHODS

CONSOLE: Final = "/ui"


def shows_page(request: Request) -> bool:
    """
    Whether the answer will be shown to a person as a page.

    Browsers say so (Fetch metadata, section 2.2). Older ones prefer HTML to all other types and name Mozilla; pip,
    Gradle and others accept HTML among other types.
    """
    if request.method not in SAFE_METHODS:
        return False
    mode = request.header(b"sec-fetch-mode")
    if mode is not None:
        return mode == b"navigate"
    agent, accept = request.header(b"user-agent") or b"", request.header(b"accept") or b""
    return agent.startswith(b"Mozilla/") and accept.startswith(b"text/html,")


def to_console(request: Request, path: str) -> Answer:
    """Send a browser to a page of the console, a path below ``/ui``."""
    location = f"{request.base_url}{CONSOLE}{path}".encode("ascii")
    vary = (b"Vary", b"Sec-Fetch-Mode, User-Agent, Accept")
    return Answer(303, headers=((b"Location", location), vary, *NO_STORE))
