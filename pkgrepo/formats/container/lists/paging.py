"""Paging of lists: the page that a request asks for, and the link to the next page."""

from __future__ import annotations

from urllib.parse import urlencode

from pkgrepo.http.answers import Refusal
from pkgrepo.http.request import Request

MOST = 10_000  # entries of a page


def parse_page(request: Request) -> tuple[int, str]:
    """The page size, and the entry after which the page begins. :raises Refusal: the size is not a number"""
    text = request.parameter(b"n") or ""
    if text and not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Refusal(400, f"n is a number, not {text[:40]!r}", "PAGINATION_NUMBER_INVALID")
    return (min(int(text), MOST) if text else MOST), (request.parameter(b"last") or "")


def next_page(path: bytes, **query: str) -> tuple[bytes, bytes]:
    """The header that links to the next page of a list."""
    return b"Link", b'<%s?%s>; rel="next"' % (path, urlencode(query).encode("ascii"))
