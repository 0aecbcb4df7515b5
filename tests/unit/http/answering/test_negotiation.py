"""What a client would rather have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.http.answering.negotiation import (
    accepts,
    best_encoding,
    best_media_type,
    names_media_type,
    parse_accept,
    parse_accept_encoding,
)

JSON, HTML, PLAIN = b"application/vnd.pypi.simple.v1+json", b"text/html", b"text/plain"
PIP = b"application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01"


@pytest.mark.parametrize(
    ("accept", "offers", "best"),
    [
        (None, [JSON, HTML], JSON),
        (b"", [JSON, HTML], JSON),
        (b"*/*", [JSON, HTML], JSON),
        (PIP, [HTML, JSON], JSON),
        (PIP, [PLAIN, HTML], HTML),
        (b"text/*", [JSON, HTML], HTML),
        (b"image/png", [JSON, HTML], None),
        (b"text/html;q=0, */*", [HTML, JSON], JSON),
        (b"text/html;q=0, */*", [HTML], None),
        (b"text/*;q=0.9, text/plain;q=0.1", [PLAIN, HTML], HTML),
        (b"*/*;q=0.1, text/html;q=0.001", [HTML, JSON], JSON),
        (b"text/html;q=0.123, text/plain;q=0.124", [HTML, PLAIN], PLAIN),
        (b"Text/HTML", [JSON, HTML], HTML),
        (b"text/html;level=1;q=0.3, text/html;q=0.7", [b"text/html;level=1", HTML], HTML),
        (b'text/html;level="1";q=1, text/html;q=0.7', [HTML, b"text/html;level=1"], b"text/html;level=1"),
        (b"text/html;q=1.1, text/plain", [HTML, PLAIN], PLAIN),
        (b"text/html;q=bad, text/plain", [HTML, PLAIN], PLAIN),
        (b"text/html;q=1;ext=x, text/plain;q=0.5", [PLAIN, HTML], HTML),
        (b"nonsense, text/html", [JSON, HTML], HTML),
        (b"text/html,,text/plain;q=0.5,", [PLAIN, HTML], HTML),
        (b'a/b;x="q=0,text/html", text/plain', [HTML, PLAIN], PLAIN),
        (b"*/*", [], None),
    ],
)
def test_best_media_type(accept: bytes | None, offers: list[bytes], best: bytes | None) -> None:
    assert best_media_type(accept, offers) == best


@pytest.mark.parametrize(
    ("accept", "offers", "best"),
    [
        (None, [b"gzip", b"identity"], b"identity"),
        (None, [b"gzip"], None),
        (b"", [b"gzip", b"identity"], b"identity"),
        (b"gzip, deflate", [b"gzip", b"identity"], b"gzip"),
        (b"gzip, deflate, br, zstd", [b"zstd", b"gzip", b"identity"], b"zstd"),
        (b"gzip;q=0.5, zstd;q=0.4", [b"zstd", b"gzip", b"identity"], b"gzip"),
        (b"gzip;q=0", [b"gzip", b"identity"], b"identity"),
        (b"identity;q=0, gzip;q=0.1", [b"identity", b"gzip"], b"gzip"),
        (b"identity;q=0", [b"identity"], None),
        (b"*;q=0", [b"gzip", b"identity"], None),
        (b"*;q=0, identity", [b"gzip", b"identity"], b"identity"),
        (b"*", [b"gzip", b"identity"], b"gzip"),
        (b"gzip;q=0.5, identity", [b"gzip", b"identity"], b"identity"),
        (b"X-GZIP", [b"gzip", b"identity"], b"gzip"),
        (b"br", [b"gzip", b"identity"], b"identity"),
    ],
)
def test_best_encoding(accept: bytes | None, offers: list[bytes], best: bytes | None) -> None:
    assert best_encoding(accept, offers) == best


def test_wildcards_do_not_name_a_type() -> None:
    assert accepts(b"*/*", JSON)
    assert not names_media_type(b"*/*", JSON)
    assert not names_media_type(None, JSON)
    assert names_media_type(b"*/*, " + PIP, JSON)
    assert not names_media_type(JSON + b";q=0", JSON)


def test_of_a_long_field_the_beginning_is_read() -> None:
    short = b",".join([b"a/b"] * 400)
    assert best_media_type(short + b"," + JSON, [b"text/html", JSON]) == JSON
    long = b",".join([b"a/b"] * 20_000)
    assert len(parse_accept(long)) < 1000
    assert best_media_type(long + b"," + JSON, [JSON]) is None
    half = b"gzip," + b" " * 3000 + b"br;q=0"  # what is cut off has no part in it
    assert [each.name for each in parse_accept_encoding(half)] == [b"gzip"]
    assert parse_accept(b"a/" + b"b" * 10_000) == []


@given(st.binary(max_size=100) | st.text(alphabet='a/*;q=01., "\\', max_size=60).map(str.encode))
def test_any_bytes_are_read(text: bytes) -> None:
    for entry in parse_accept(text) + parse_accept_encoding(text):
        assert 0 <= entry.weight <= 1000
    best_media_type(text, [JSON, HTML])
    best_encoding(text, [b"gzip", b"identity"])


TOKENS = st.text(alphabet="abcxyz-+.", min_size=1, max_size=6).map(str.encode)


@given(st.dictionaries(st.tuples(TOKENS, TOKENS), st.integers(0, 1000), min_size=1, max_size=6))
def test_offer_of_the_greatest_weight_wins(weights: dict[tuple[bytes, bytes], int]) -> None:
    types = {b"/".join(name): weight for name, weight in weights.items()}
    text = b", ".join(b"%s ; Q=%d.%03d" % (name, weight // 1000, weight % 1000) for name, weight in types.items())
    best = best_media_type(text, list(types))
    heaviest = max(types.values())
    if heaviest == 0:
        assert best is None
    else:
        assert best is not None
        assert types[best] == heaviest


def test_long_header_is_read_but_not_remembered() -> None:
    text = b", ".join(b"a/b%d" % number for number in range(180)) + b", text/html"
    assert best_media_type(text, [JSON, HTML]) == HTML
    assert best_encoding(text, [b"gzip", b"identity"]) == b"identity"
