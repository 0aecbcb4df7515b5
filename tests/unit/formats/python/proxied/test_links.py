"""The links of a page are resolved as any URL is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.formats.python.proxied.normaliser import Links
from pkgrepo.outbound.urls import parse_url, resolve_reference

BASE = "https://index.example:8443/root/simple/x/"

HOSTS = ["h.example", "H.example", "u:p@", ":80", ":443", ":0", "[::1]"]
PATHS = ["/", "..", ".", "a%2Fb", "a+b", "?", "#", " ", "\\", "é", "%", "x-1.0.whl", ";", ":", "\x00", "\n"]
PIECES = st.sampled_from(["http://", "https://", "HTTPS://", "//", *HOSTS, *PATHS])


def expected(reference: str) -> str | None:
    try:
        return resolve_reference(parse_url(BASE), reference.strip().encode().decode("latin-1")).text
    except ValueError:
        return None


@given(st.lists(PIECES, max_size=8).map("".join))
def test_every_link_is_resolved_as_a_location_is(reference: str) -> None:
    links = Links(BASE)
    assert links.find(reference) == expected(reference)
    assert links.find(reference) == expected(reference)


@pytest.mark.parametrize(
    "reference",
    [
        "https://files.example/a/b/x-1.0-py3-none-any.whl",
        "http://Files.Example:80/x",
        "https://files.example/a/../x",
        "https://files.example/a/./x",
        "https://files.example/..",
        "https://files.example/a/..x",
        "https://files.example//x",
        "https://files.example",
        "https://user@files.example/x",
        "https://files.example:0/x",
        "https://files.example/" + "x" * 9000,
        "../../f/x.whl",
    ],
)
def test_links_of_pages(reference: str) -> None:
    assert Links(BASE).find(reference) == expected(reference)
