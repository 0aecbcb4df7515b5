"""Which form of the simple index each client gets."""

import pytest

from pkgrepo.formats.python.index.requests import choose_page_type

JSON = b"application/vnd.pypi.simple.v1+json"
V1_HTML = b"application/vnd.pypi.simple.v1+html"
HTML = b"text/html; charset=utf-8"

PIP = JSON + b", " + V1_HTML + b"; q=0.1, text/html; q=0.01"
UV = JSON + b", " + V1_HTML + b";q=0.2, text/html;q=0.01"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (PIP, JSON),
        (UV, JSON),
        (JSON + b", */*;q=0.1", JSON),
        (b"*/*", HTML),
        (None, HTML),
        (b"", HTML),
        (b"text/html", HTML),
        (b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", HTML),
        (V1_HTML, V1_HTML),
        (JSON + b", text/html", JSON),
        (b"text/html, " + JSON, JSON),
        (JSON + b";q=0.1, text/html;q=0.2", HTML),
        (JSON + b";q=0, text/html;q=0.1", HTML),
        (JSON + b";q=0", HTML),
        (JSON.upper(), JSON),
        (b"application/vnd.pypi.simple.latest+json", JSON),
        (b"application/vnd.pypi.simple.latest+html", V1_HTML),
        (b"application/vnd.pypi.simple.v2+json", HTML),
        (b"application/*", HTML),
        (b"image/png", HTML),
        (b"nonsense;;;", HTML),
    ],
)
def test_client_gets_the_form_it_likes_best(accept: bytes | None, expected: bytes) -> None:
    assert choose_page_type(accept, None) == expected


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        (JSON.decode(), JSON),
        ("application/vnd.pypi.simple.latest+json", JSON),
        (V1_HTML.decode(), V1_HTML),
        ("text/html", HTML),
        ("nonsense", HTML),
        ("\u20ac", HTML),
    ],
)
def test_parameter_wins_over_the_header(parameter: str, expected: bytes) -> None:
    assert choose_page_type(PIP, parameter) == expected
    assert choose_page_type(b"text/html", parameter) == expected
