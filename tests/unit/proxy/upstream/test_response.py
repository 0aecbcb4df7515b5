"""Inflating bodies in small pieces."""

import gzip
import zlib

import pytest

from pkgrepo.proxy.upstream.response import (
    FREE_SIZE,
    MOST_MEMBERS,
    MOST_RATIO,
    PIECE,
    BadCoding,
    Inflater,
    make_inflater,
)

TEXT = bytes(range(256)) * 4000


def inflate(body, step=1 << 16):
    inflater = Inflater()
    pieces = [piece for at in range(0, len(body), step) for piece in inflater.feed(body[at : at + step])]
    inflater.end()
    return pieces


@pytest.mark.parametrize("step", [1, 7, 1 << 16])
def test_pieces_are_small_and_complete(step):
    pieces = inflate(gzip.compress(TEXT), step)
    assert b"".join(pieces) == TEXT
    assert max(map(len, pieces)) <= PIECE


@pytest.mark.parametrize("step", [1, 1 << 16])
def test_members_are_joined(step):
    body = gzip.compress(b"one") + gzip.compress(b"") + gzip.compress(b"two")
    assert b"".join(inflate(body, step)) == b"onetwo"


def test_bomb_is_noticed_before_it_is_inflated():
    bomb = gzip.compress(bytes(FREE_SIZE), 9) * 20
    pieces = Inflater().feed(bomb)
    sizes = []
    with pytest.raises(BadCoding, match="inflates to more than"):
        sizes.extend(map(len, pieces))
    assert sum(sizes) <= max(FREE_SIZE, len(bomb) * MOST_RATIO)


def test_high_ratio_of_a_small_body_is_allowed():
    assert sum(map(len, inflate(gzip.compress(bytes(FREE_SIZE), 9)))) == FREE_SIZE


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"<html>", "not in gzip"),
        (zlib.compress(TEXT), "not in gzip"),
        (gzip.compress(TEXT)[:-1], "ends within"),
        (gzip.compress(TEXT)[:5], "ends within"),
        (gzip.compress(TEXT)[:-5] + b"damage", "not in gzip"),
        (gzip.compress(b"") * (MOST_MEMBERS + 1), "too many"),
    ],
    ids=["text", "zlib", "no end", "no data", "damage", "members"],
)
def test_damaged_body(body, sentence):
    with pytest.raises(BadCoding, match=sentence):
        inflate(body)


def test_empty_body_is_complete():
    assert inflate(b"") == []


@pytest.mark.parametrize("encodings", [[], [""], ["identity"], ["Identity, "]])
def test_body_without_a_coding(encodings):
    assert make_inflater(encodings) is None


@pytest.mark.parametrize("encodings", [["gzip"], ["X-GZIP"], ["identity", "gzip"]])
def test_gzip_is_decoded(encodings):
    assert isinstance(make_inflater(encodings), Inflater)


@pytest.mark.parametrize("encodings", [["br"], ["deflate"], ["gzip, gzip"], ["gzip", "br"]])
def test_other_codings_are_refused(encodings):
    with pytest.raises(BadCoding):
        make_inflater(encodings)
