"""The scanner of publish documents: base64 and brackets in pieces of any size."""

from __future__ import annotations

import base64
import binascii
import itertools
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid, TooLarge
from pkgrepo.formats.npm.limits import DocumentLimits
from pkgrepo.formats.npm.publish import scanner as scanner_module
from pkgrepo.formats.npm.publish.base64_decoder import Base64Decoder, Base64Error
from pkgrepo.formats.npm.publish.brackets import skip_brackets
from pkgrepo.formats.npm.publish.scanner import PublishScanner
from tests.support.publish_documents import DOCUMENT, TARBALL, blanked, scan

GOOD = base64.b64encode(bytes(range(1, 13)))
MEANT_OTHERWISE = b'= \\"'  # padding, a blank, the beginning of an escape, the end of the string


@pytest.mark.parametrize("at", range(len(GOOD)))
def test_invalid_characters_are_refused_at_their_offset(at: int) -> None:
    for foreign in set(range(256)) - set(MEANT_OTHERWISE):
        text = GOOD[:at] + bytes((foreign,)) + GOOD[at + 1 :]
        try:
            expected = binascii.a2b_base64(text, strict_mode=True)
        except binascii.Error:
            with pytest.raises(Base64Error) as caught:
                Base64Decoder().feed(text, last=True)
            assert caught.value.at == at
        else:
            assert Base64Decoder().feed(text) == expected


@pytest.mark.parametrize("size", [1, 3, 4, 5, 16])
def test_pieces_of_any_size_decode_alike(size: int) -> None:
    decoder = Base64Decoder()
    text = base64.b64encode(b"what was sent")
    decoded = b"".join(decoder.feed(text[at : at + size]) for at in range(0, len(text), size))
    assert decoded + decoder.feed(b"", last=True) == b"what was sent"


@pytest.mark.parametrize("text", [b"AQID\\/\\/\\/\\/", b"AQ ID////", b"AQID\\n////", b"AQ\\u0049D////"])
def test_escapes_and_blanks_change_nothing(text: bytes) -> None:
    assert Base64Decoder().feed(text, last=True) == bytes((1, 2, 3, 255, 255, 255))


def test_tarball_is_decoded_and_the_rest_is_kept() -> None:
    scanned, attachments = scan(json.dumps(DOCUMENT).encode())
    assert attachments == {"x-1.0.0.tgz": TARBALL}
    assert scanned.value() == blanked(DOCUMENT)


def test_chunk_borders_do_not_change_the_result() -> None:
    body = json.dumps(DOCUMENT, ensure_ascii=False, indent=1).replace("AwQF", r"\u0041wQF\n")
    body = body.replace("/", "\\/").encode()
    document = json.loads(body)
    assert b"\\/v" in body
    assert b"u0041wQF" in body
    for cut in range(len(body)):
        scanned, attachments = scan(body, [cut])
        assert attachments == {"x-1.0.0.tgz": TARBALL}
        assert scanned.value() == blanked(document)
    assert scan(body, list(range(len(body))))[1] == {"x-1.0.0.tgz": TARBALL}


def test_attachments_may_come_first() -> None:
    body = json.dumps({"_attachments": DOCUMENT["_attachments"], **DOCUMENT}).encode()
    assert body.index(b"_attachments") < body.index(b"readme")
    scanned, attachments = scan(body)
    assert attachments == {"x-1.0.0.tgz": TARBALL}
    assert scanned.value() == blanked(DOCUMENT)


def test_provenance_bundle_stays_in_the_document() -> None:
    document = {
        "_attachments": {
            "x-1.0.0.tgz": {"data": "QUJD"},
            "x-1.0.0.sigstore": {"data": '{"mediaType":"bundle"}', "length": 22},
        }
    }
    scanned, attachments = scan(json.dumps(document).encode())
    assert attachments == {"x-1.0.0.tgz": b"ABC"}
    assert scanned.value() == blanked(document)
    assert scanned.value()["_attachments"]["x-1.0.0.sigstore"]["data"] == '{"mediaType":"bundle"}'


def test_data_elsewhere_is_no_attachment() -> None:
    document = {
        "data": "!",
        "_attachment": {"a": {"data": "!"}},
        "versions": {"_attachments": {"a": {"data": "!"}}},
        "_attachments": {"a": {"stub": {"data": "!"}, "list": [{"data": "!"}], "Data": "!"}, "data": "!"},
    }
    scanned, attachments = scan(json.dumps(document).encode())
    assert attachments == {}
    assert scanned.value() == document


@pytest.mark.parametrize("document", [{}, {"_attachments": None}, {"_attachments": []}, {"_attachments": {}}])
def test_document_without_attachments_is_whole(document: dict[str, Any]) -> None:
    assert scan(json.dumps(document).encode())[0].value() == document


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", b""),
        ("QQ", b"A"),
        ("QQ==", b"A"),
        ("QUI", b"AB"),
        ("QUI=", b"AB"),
        (r"QU\nJ\r\nD\t", b"ABC"),
        ("QU JD", b"ABC"),
        (r"\/\/8=", b"\xff\xff"),
        (r"\u0051UJD", b"ABC"),
        (r"QQ\u003d\u003D", b"A"),
        (r"QQ=\n=", b"A"),
    ],
)
def test_base64_variants_are_accepted(text: str, data: bytes) -> None:
    body = b'{"_attachments":{"a.tgz":{"data":"%b"}}}' % text.encode()
    for cuts in ([], list(range(len(body)))):
        assert scan(body, cuts)[1] == {"a.tgz": data}


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("Q", 1),
        ("QUJDQ", 5),
        ("Q===", 4),
        ("QQ=", 3),
        ("QQ=Q", 3),
        ("QQ==QUJD", 4),
        ("QUI==", 5),
        ("=", 1),
        ("QU-D", 2),
        ("QU_D", 2),
        ("QU\x00JD", 2),
        ("QU\nJD", 2),
        ("QUJDé", 4),
        (r"QU\u00e9D", 2),
        (r"QU\"D", 2),
        (r"QU\\D", 2),
        (r"QU\bD", 2),
        (r"QU\u00", 2),
        (r"QU\u00zz", 2),
    ],
)
def test_invalid_base64_is_refused_with_its_offset(text: str, at: int) -> None:
    body = b'{"_attachments":{"a.tgz":{"data":"%b"}}}' % text.encode()
    where = body.index(b'"data":"') + 8 + at
    for cuts in ([], list(range(len(body)))):
        with pytest.raises(Invalid, match=f"'a.tgz' is not base64: byte {where} "):
            scan(body, cuts)


@pytest.mark.parametrize(
    ("body", "at"),
    [
        (b"[]", 0),
        (b'"x"', 0),
        (b"{]", 1),
        (b'{"a" 1}', 5),
        (b'{"a":}', 5),
        (b'{"a":1 2}', 7),
        (b'{"a":1,}', 7),
        (b'{"a":[}', 6),
        (b'{"a":{"b":[1,2}}', 14),
        (b'{"a":1}}', 7),
        (b'{"a":1} {', 8),
        (b'{"a":nil }', 9),
        (b'{"a":[1,,2]}', 8),
        (b'{"a":"\x01"}', 6),
        (b'{"a":"\xff"}', 6),
        (b'{"a":01}', 6),
        (b'\xef\xbb\xbf{"a":1}', 0),
    ],
)
def test_invalid_json_is_refused_with_its_offset(body: bytes, at: int) -> None:
    for cuts in ([], list(range(len(body)))):
        with pytest.raises(Invalid, match=f"(at|near) byte {at}$"):
            scan(body, cuts)[0].value()


def test_offset_behind_a_tarball_is_that_in_the_body() -> None:
    body = json.dumps(DOCUMENT).encode()[:-1] + b', "late": [1,,]}'
    with pytest.raises(Invalid, match=f"near byte {body.index(b',,]') + 1}$"):
        scan(body)[0].value()


@pytest.mark.parametrize("end", [0, 1, 20, -1])
def test_cut_off_document_is_refused(end: int) -> None:
    body = json.dumps(DOCUMENT).encode()[:end]
    with pytest.raises(Invalid, match=f"ends after {len(body)} bytes"):
        scan(body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1,"a":2}',
        b'{"a":1,"\\u0061":2}',
        b'{"versions":{"a":{"b":1,"b":1}}}',
        b'{"x":[{"c":":"},{"c":":","c":""}]}',
        b'{"_attachments":{"a":{"data":"QUJD","data":"QUJD"}}}',
        b'{"_attachments":{"a":{"data":"QUJD"},"a":{}}}',
        b'{"_attachments":{},"_attachments":{"a":{"data":"QUJD"}}}',
    ],
)
def test_duplicate_key_is_refused(body: bytes) -> None:
    with pytest.raises(Invalid, match=r"key '(a|b|c|data|_attachments)' twice"):
        scan(body)[0].value()


def test_document_is_limited_and_tarballs_are_not() -> None:
    scanner = PublishScanner(DocumentLimits(size=100))
    scanner.feed(b'{"_attachments":{"a.tgz":{"data":"')
    for _ in range(10):
        assert scanner.feed(b"QUJD" * 1000)
    with pytest.raises(TooLarge, match="limit of 100 bytes"):
        scanner.feed(b'"}},"readme":"' + b"x" * 100)


def test_depth_is_limited() -> None:
    def nested(depth: int) -> bytes:
        return b'{"a":' * depth + b"1" + b"}" * depth

    assert scan(nested(64))[0].value()
    with pytest.raises(Invalid, match="nested more than 64 deep"):
        scan(nested(65))


def test_attachments_are_counted() -> None:
    def with_attachments(count: int) -> bytes:
        return json.dumps({"_attachments": {f"{n}.tgz": {"data": "QUJD"} for n in range(count)}}).encode()

    assert len(scan(with_attachments(4))[1]) == 4
    with pytest.raises(Invalid, match="more than 4 attachments"):
        scan(with_attachments(5))


def test_members_keys_and_brackets_are_limited() -> None:
    with pytest.raises(Invalid, match="more than 1000 members"):
        scan(json.dumps(dict.fromkeys(map(str, range(1001)))).encode())
    with pytest.raises(Invalid, match="key that is too long"):
        scan(json.dumps({"k" * 65_537: 1}).encode())
    with pytest.raises(Invalid, match="more than 10 objects and arrays"):
        scan(b'{"a":[' + b",".join([b"[]"] * 10) + b"]}", limits=DocumentLimits(free_brackets=10))
    with pytest.raises(Invalid, match="more than 12 objects and arrays"):
        scan(
            b'{"a":[' + b",                                                ".join([b"[]"] * 13) + b"]}",
            limits=DocumentLimits(free_brackets=10, brackets=12),
        )
    with pytest.raises(Invalid, match="more than 10 values"):
        scan(b'{"a":[' + b",".join([b"1"] * 12) + b"]}", limits=DocumentLimits(values=10))


@pytest.mark.parametrize("text", [b"[],", b"{},", b"[[[]]],", b"["])
@pytest.mark.parametrize("cut", [1000, 1_000_000])
def test_a_document_of_brackets_is_refused_early(text: bytes, cut: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused whatever the size of the pieces; in long pieces before any bracket is matched."""
    looked: list[int] = []
    monkeypatch.setattr(scanner_module, "CLOSING", Spied(scanner_module.CLOSING, looked))
    scanner = PublishScanner()
    scanner.feed(b'{"a":[[')
    pieces = (text * (1_000_000 // len(text)))[:1_000_000]
    with pytest.raises(Invalid, match=r"objects and arrays|nested more than 64"):
        any(scanner.feed(pieces[at : at + cut]) for at in range(0, len(pieces), cut))
    assert len(looked) <= 2 * (DocumentLimits().free_brackets + 100)


class Spied(dict[int, int]):
    """A dict that records each look-up."""

    def __init__(self, inner: dict[int, int], looked: list[int]) -> None:
        super().__init__(inner)
        self._looked = looked

    def __contains__(self, key: object) -> bool:
        assert isinstance(key, int)
        self._looked.append(key)
        return super().__contains__(key)


def test_a_document_may_have_more_brackets_the_longer_it_is() -> None:
    limits = DocumentLimits(free_brackets=10)
    apart = b",".join([b'{"a":"' + b"b" * 40 + b'"}'] * 1000)
    assert len(scan(b'{"a":"' + b"x" * 400 + b'","b":[' + apart + b"]}", limits=limits)[0].value()["b"]) == 1000


TEXT = st.text(st.sampled_from('ab"\\{}[],:é'), max_size=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | TEXT,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(TEXT, children, max_size=4),
    max_leaves=30,
)


@pytest.mark.parametrize(
    ("text", "left", "opened", "size"),
    [
        (b'"a":1,"b":{"c":[]}', b"}", 2, 18),
        (b'"a":{"b":[1', b"}}]", 2, 11),
        (b"]},{", b"}}", 1, 4),
        (rb'"\"{":"\\","}":["\\\"["]', b"}", 1, 24),
        (b'"a":{},"be', b"}", 1, 7),
        (b'"a":{},"b\\', b"}", 1, 7),
        (b'"a":"{[","b":"}"', b"}", 0, 16),
    ],
)
def test_open_brackets_after_a_piece_are_known(text: bytes, left: bytes, opened: int, size: int) -> None:
    nesting = list(b"}}]" if text.startswith(b"]") else b"}")
    assert skip_brackets(text, nesting, 64, 100) == (size, opened)
    assert bytes(nesting) == left


@pytest.mark.parametrize("text", [b"1}", b"]", b"{]", b"[}}", b"}{", b'"a":[[[[['])
def test_pieces_that_need_the_slow_path_are_not_skipped(text: bytes) -> None:
    nesting = list(b"}")
    assert skip_brackets(text, nesting, 5, 100) == (0, 0)
    assert bytes(nesting) == b"}"


@pytest.mark.parametrize("pair", [b"[]", b"{}"])
@pytest.mark.parametrize("count", [4, 5, 100_000])
def test_nested_brackets_are_skipped_up_to_the_depth_limit(pair: bytes, count: int) -> None:
    opening, closing = pair[:1] + b"[", b"]" + pair[1:]
    text = opening * (count // 2) + pair[:1] * (count % 2) + pair[1:] * (count % 2) + closing * (count // 2)
    assert skip_brackets(text, list(b"}"), 5, 200_000) == ((len(text), count) if count == 4 else (0, 0))


def test_too_many_brackets_are_found_before_matching() -> None:
    nesting = list(b"}")
    assert skip_brackets(b"[]" * 100, nesting, 5, 99) == (0, 100)
    assert skip_brackets(b"[]" * 100, nesting, 5, 100) == (200, 100)


@given(VALUES, st.lists(st.integers(0, 5000), max_size=6), st.randoms(use_true_random=False))
def test_bulk_skipping_does_not_change_the_result(value: Any, cuts: list[int], rng: random.Random) -> None:
    whole = {"a": value, "versions": [value, {"x": value}], "z": rng.choice(["{", "]", ""])}
    body = json.dumps(whole, ensure_ascii=False).encode()
    edges = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    scanner = PublishScanner(bulk_size=1)
    for begin, end in itertools.pairwise(edges):
        scanner.feed(body[begin:end])
    assert scanner.finish().value() == whole


def test_brackets_are_counted_in_bulk_skipping() -> None:
    scanner = PublishScanner(DocumentLimits(free_brackets=3000))
    scanner.feed(b'{"a":[1')
    scanner.feed(b",[]" * 2000)
    with pytest.raises(Invalid, match="more than 3000 objects and arrays"):
        scanner.feed(b",[]" * 2000)


def test_mismatched_brackets_are_refused_with_their_offset_in_bulk_skipping() -> None:
    scanner = PublishScanner()
    scanner.feed(b'{"a":[1')
    with pytest.raises(Invalid, match="at byte 6012"):
        scanner.feed(b",{ }" * 1500 + b",[1,2}")
