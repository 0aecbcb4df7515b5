"""Content negotiation of the simple index: HTML or JSON (PEP 691)."""

from __future__ import annotations

from pkgrepo.http.answering.negotiation import best_media_type, names_media_type

JSON_V1 = b"application/vnd.pypi.simple.v1+json"
HTML_V1 = b"application/vnd.pypi.simple.v1+html"
JSON_LATEST = b"application/vnd.pypi.simple.latest+json"
HTML_LATEST = b"application/vnd.pypi.simple.latest+html"
HTML = b"text/html"

PLAIN_HTML = b"text/html; charset=utf-8"

_CONCRETE = {JSON_V1: JSON_V1, JSON_LATEST: JSON_V1, HTML_V1: HTML_V1, HTML_LATEST: HTML_V1, HTML: PLAIN_HTML}


def choose_page_type(accept: bytes | None, format_parameter: str | None) -> bytes:
    """
    The content type of the answer, always with a concrete version.

    ``format_parameter`` (``?format=``) wins over Accept. JSON wins among types of equal quality. A wildcard alone, no
    Accept, or only unknown types get HTML: some tools parse HTML without asking for it.
    """
    if format_parameter is not None:
        return _CONCRETE.get(format_parameter.encode("latin-1", "replace"), PLAIN_HTML)
    named = [offer for offer in _CONCRETE if names_media_type(accept, offer)]
    best = best_media_type(accept, named) if named else None
    return _CONCRETE.get(best or HTML, PLAIN_HTML)
