"""URLs of upstreams."""

import pytest

from pkgrepo.outbound.urls import join_path, parse_url, resolve_reference


@pytest.mark.parametrize(
    ("text", "origin", "canonical"),
    [
        ("http://Mirror.Example", ("http", "mirror.example", 80), "http://mirror.example/"),
        ("https://a.example:443/x%2fy?q=%20#f", ("https", "a.example", 443), "https://a.example/x%2fy?q=%20"),
        ("http://a:8080//x/../y?", ("http", "a", 8080), "http://a:8080//x/../y?"),
        ("http://[2001:DB8::1]:80/", ("http", "2001:db8::1", 80), "http://[2001:db8::1]/"),
        ("HTTPS://a_b.example./", ("https", "a_b.example.", 443), "https://a_b.example./"),
        ("http://127.1/", ("http", "127.1", 80), "http://127.1/"),
    ],
)
def test_canonical_text(text, origin, canonical):
    target = parse_url(text)
    assert (target.origin, target.text) == (origin, canonical)
    assert parse_url(target.text) == target


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.example",
        "//a.example/",
        "ftp://a.example/",
        "file:///etc/passwd",
        "http:/a.example",
        "http://",
        "http:///x",
        "http://:80/",
        "http://me@a.example/",
        "http://me:secret@a.example/",
        "http://@a.example/",
        "http://a.example:0/",
        "http://a.example:65536/",
        "http://a.example:x/",
        "http://a.example\\@b.example/",
        "http://a.example\t/",
        "http://a.example/\r\nX: y",
        "http://a b/",
        "http://ä.example/",
        "http://a%2eexample/",
        "http://a..example/",
        "http://[::1",
        "http://[fe80::1%25eth0]/",
        "http://[v1.x]/",
        "http://a.example/" + "x" * 9000,
    ],
)
def test_url_that_is_refused(text):
    with pytest.raises(ValueError, match=r"^it ") as caught:
        parse_url(text)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("base", "path", "joined"),
    [
        ("http://a", "x", "http://a/x"),
        ("http://a/npm/", "/@s%2fx?w=1", "http://a/npm/@s%2fx?w=1"),
        ("http://a/npm", "", "http://a/npm/"),
        ("http://a/npm", "http://b/", "http://a/npm/http://b/"),
    ],
)
def test_path_below_a_base(base, path, joined):
    assert join_path(parse_url(base), path).text == joined


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("y", "https://a/x/y"),
        ("/y?q#f", "https://a/y?q"),
        ("//b/y", "https://b/y"),
        ("http://b", "http://b/"),
        ("?q=1", "https://a/x/file?q=1"),
        ("/a b/\xfc", "https://a/a%20b/%FC"),
        ("/a%20b", "https://a/a%20b"),
        ("../../../y", "https://a/y"),
    ],
)
def test_redirects(location, target):
    assert resolve_reference(parse_url("https://a/x/file"), location).text == target


def test_authority():
    assert parse_url("https://[2001:db8::1]/").authority == b"[2001:db8::1]:443"
    assert parse_url("http://a/").authority == b"a:80"
