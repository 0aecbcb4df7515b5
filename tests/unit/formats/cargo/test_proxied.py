"""Documents of an upstream: what is passed on, and where its crates are."""

import json

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.cargo.index import INDEX
from pkgrepo.formats.cargo.proxied import LONGEST_LINE, normalise_index, read_config
from pkgrepo.proxy.parts.values import Context
from tests.support.crates import index_line

SUM = "ab" * 32
DL = "https://files.example/crates"


def normalise(source: bytes, dl: str = DL, name: str = "foo-a"):
    return list(
        normalise_index(source, Context(name, f"https://index.example/fo/o-/{name}", service={"dl": dl})).entries
    )


def raw(version: str = "0.1.0", **more) -> bytes:
    return json.dumps({**index_line("Foo-A", version, b""), "cksum": SUM, **more}).encode()


def test_lines_are_passed_on_byte_for_byte():
    lines = [raw("0.1.0", unknown={"a": [1.50]}), raw("0.2.0+b", pubtime="2026-01-02T03:04:05Z", v=2, features2={})]
    entries = normalise(b"\n".join([lines[0], b"", lines[1]]) + b"\n")
    assert [each.fragments[INDEX] for each in entries] == lines
    assert [(each.key, each.version, each.published_ms) for each in entries] == [
        ("0.1.0", "0.1.0", None),
        ("0.2.0", "0.2.0+b", 1_767_323_045_000),
    ]
    assert entries[0].sort < entries[1].sort
    (file,) = entries[1].files
    assert (file.path, file.digests) == ("foo-a/0.2.0+b/foo-a-0.2.0+b.crate", {"sha256": SUM})
    assert file.url == "https://files.example/crates/Foo-A/0.2.0+b/download"


@pytest.mark.parametrize(
    ("dl", "url"),
    [
        ("https://f.example/{crate}/{version}.crate", "https://f.example/Foo-A/0.1.0.crate"),
        ("https://f.example/{prefix}/{crate}", "https://f.example/Fo/o-/Foo-A"),
        ("https://f.example/{lowerprefix}?sum={sha256-checksum}", f"https://f.example/fo/o-?sum={SUM}"),
    ],
)
def test_the_address_of_a_crate_follows_the_template_of_the_upstream(dl, url):
    assert normalise(raw(), dl)[0].files[0].url == url


@pytest.mark.parametrize(
    "line",
    [raw("1.0"), raw(cksum="ab"), b'{"name":"Foo-A","v":9}', raw(cksum=SUM[:-1])],
    ids=["vers", "sum", "v", "cut"],
)
def test_a_line_of_a_form_that_is_not_known_is_left_out(line):
    assert [each.version for each in normalise(line + b"\n" + raw("9.0.0"))] == ["9.0.0"]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (b"<html><body>Sign in</body></html>", "no object of JSON"),
        (raw() + b"\n" + raw()[:-9], "no object of JSON"),
        (b'{"name":"Foo-A","vers":"1.0.0","cksum":"\xff"}', "no object of JSON"),
        (raw().replace(b"Foo-A", b"foo_a"), "not the document of foo-a"),
        (b'{"name":"' + b"a" * LONGEST_LINE + b'"}', "a line of more than"),
    ],
)
def test_a_document_that_cannot_be_used_is_refused(source, why):
    with pytest.raises(Invalid, match=why):
        normalise(source)


def test_a_hundred_thousand_versions_are_read():
    entries = normalise(b"\n".join(raw(f"0.0.{number}") for number in range(100_000)))
    assert len(entries) == 100_000


def test_the_configuration_tells_where_crates_are():
    source = json.dumps({"dl": DL, "api": "https://a.example", "auth-required": True}).encode()
    assert read_config(source, Context("config.json", "")).top == {"dl": DL, "api": "https://a.example"}


@pytest.mark.parametrize("source", [b"<html>", b"{}", b'{"dl":1}', b'{"dl":"ftp://a"}', b'{"dl":"{crate}"}'])
def test_another_document_is_no_configuration(source):
    with pytest.raises(Invalid, match="no configuration of an index"):
        read_config(source, Context("config.json", ""))
