"""What is made of odd and hostile pages of upstreams: files and members are left out, or the page is refused."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.index.pages import HTML_PAGE, JSON_PAGE
from pkgrepo.formats.python.proxied.listing import LARGEST_FILE
from pkgrepo.formats.python.proxied.normaliser import normalise
from pkgrepo.proxy.parts.file import PartsFile, write_parts
from pkgrepo.proxy.parts.values import Context, Entry, Normalised
from pkgrepo.repositories.publish.splicing import BASE
from tests.support.index_pages import (
    FULL,
    SDIST,
    SHA,
    URL,
    WHEEL,
    anchor,
    html,
    listed,
    page,
    read,
    read_one,
    reread,
    shown,
)


@pytest.mark.parametrize(
    "filename",
    [
        "demo_pkg-1.0.egg",
        "demo_pkg-1.0.exe",
        "demo_pkg-french.tar.gz",
        "demo_pkg-1.0-py3-none.whl",
        "../demo_pkg-1.0.tar.gz",
        "other-1.0.tar.gz",
        "démo-1.0.tar.gz",
        "",
    ],
)
def test_files_with_other_names_are_left_out(filename: str) -> None:
    assert [each.key for each in read(page(listed(), listed(filename)))[1]] == [WHEEL]


@pytest.mark.parametrize("url", ["ftp://h/x", "https://u:p@h.example/x", "https://[", "https://h:99999/", "file:///x"])
def test_files_that_cannot_be_fetched_are_left_out(url: str) -> None:
    assert read(page(listed(url=url)))[1] == []


@pytest.mark.parametrize(
    "file",
    [
        None,
        3,
        {},
        {"filename": 1, "url": 2},
        {"filename": WHEEL},
        {**FULL, "x": "a" * LARGEST_FILE},
    ],
)
def test_files_that_cannot_be_read_are_left_out(file: Any) -> None:
    assert [each.key for each in read(page(file, listed(SDIST)))[1]] == [SDIST]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hashes", [1]),
        ("hashes", {"sha256": "AB", "md5": 3, "crc": "00"}),
        ("size", -1),
        ("size", True),
        ("size", "3"),
        ("upload-time", "yesterday"),
        ("upload-time", "0001-01-01T00:00:00+23:59"),
        ("upload-time", 4),
        ("requires-python", {}),
        ("requires-python", "x" * 5000),
        ("core-metadata", 7),
        ("gpg-sig", "yes"),
        ("provenance", "http://["),
    ],
)
def test_odd_members_are_as_if_they_were_absent(key: str, value: Any) -> None:
    file = {name: each for name, each in FULL.items() if name != key}
    expected = shown(read_one(page(file)))
    assert shown(read_one(page({**file, key: value}))) == expected


@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"{}",
        b"{",
        b"[1]",
        b'{"name":"demo-pkg","files":{}}',
        page(name="other"),
        page(name="*"),
        page(name=None),
        page(meta={"api-version": "2.0"}),
        page(listed("other-1.0.tar.gz")),
        page().replace(b"demo", b"d\xff"),
        b"<html><head><title>Sign in</title></head><body><a href='/login'>x</a></body></html>",
        html(anchor("other-1.0.tar.gz")),
        html(head='<meta name="pypi:repository-version" content="2.0">'),
        b"<![<![",
        b"\x89PNG\r\n",
    ],
)
def test_what_is_no_page_of_this_project_is_refused(source: bytes) -> None:
    with pytest.raises(Invalid):
        read(source)


def test_zero_bytes_of_the_upstream_are_no_placeholders() -> None:
    source = html(anchor(attributes='data-yanked="a\x00b" data-requires-python="\x00>=3"'))
    entry = read_one(source)
    assert BASE not in entry.fragments[HTML_PAGE] + entry.fragments[JSON_PAGE]
    assert shown(entry)["yanked"] == "a b"


def test_markup_of_the_upstream_is_escaped() -> None:
    entry = read_one(page(listed(yanked='"><script>')))
    assert b"<script>" not in entry.fragments[HTML_PAGE]
    assert reread(entry)["yanked"] == '"><script>'


_TEXTS = st.sampled_from([WHEEL, SDIST, "demo-pkg", "https://h.example/x", "1.0", "", "\x00", "é"]) | st.text(
    max_size=9
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)


def _written(source: bytes) -> None:
    with suppress(Invalid):
        write_parts(io.BytesIO(), normalise(source, Context("demo-pkg", URL)))


@given(st.dictionaries(st.sampled_from([*FULL]), _VALUES), st.dictionaries(_TEXTS, _VALUES, max_size=3), _VALUES)
def test_no_json_raises_anything_but_invalid(file: dict[str, Any], top: dict[str, Any], status: Any) -> None:
    members = {**top, "project-status": status, "versions": status, "alternate-locations": status}
    value = {"name": "demo-pkg", **members, "meta": status, "files": [{**FULL, **file}, file]}
    _written(json.dumps(value).encode())


DECLARATIONS = [
    "<!--",
    "-->",
    "<![",
    "<!",
    "<?",
    "&#0;",
    "&#x110000;",
    "<base ",
    "<meta name='pypi:tracks' ",
    "<script>",
]
_MARKUP = st.lists(
    st.sampled_from([*"\"'> \n", "<a ", "href=", "</a>", f"/{WHEEL}", f"#sha256={SHA}", "data-yanked", *DECLARATIONS]),
    max_size=30,
)


@given(_MARKUP)
def test_no_html_raises_anything_but_invalid(markup: list[str]) -> None:
    _written(("<html>" + "".join(markup)).encode())


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_invalid(source: bytes) -> None:
    _written(source)


@pytest.mark.parametrize("size", [-1, 2**53 + 1, 2**64, 10**30, True, 1.5, "1"])
def test_a_size_that_is_none_is_left_out(size: Any) -> None:
    entry = read_one(page(listed(size=size)))
    assert "size" not in shown(entry)
    assert write_and_count(entry) == 1


def write_and_count(entry: Entry) -> int:
    out = io.BytesIO()
    write_parts(out, Normalised(top={}, entries=iter([entry])))
    return PartsFile(out.getvalue()).count
