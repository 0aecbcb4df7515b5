"""Conditions and ranges."""

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.http.answering.conditional import Selection, parse_date, render_date, select
from pkgrepo.http.responses import Response

ANSWER = Response(body=b"0123456789", etag=b'"a"', last_modified=1_700_000_000, ranges=True)
WHOLE = Selection(200, 0, 10)
FAILED = Selection(412, 0, 0)
CURRENT = Selection(304, 0, 0)
DATE = render_date(1_700_000_000)
EARLIER = render_date(1_699_999_999)


def fields(**given_fields: bytes) -> dict[bytes, bytes]:
    return {name.replace("_", "-").encode(): value for name, value in given_fields.items()}


@pytest.mark.parametrize(
    ("given_fields", "selection"),
    [
        (fields(), WHOLE),
        (fields(if_none_match=b'"a"'), CURRENT),
        (fields(if_none_match=b'W/"a"'), CURRENT),
        (fields(if_none_match=b'"b", W/"a"'), CURRENT),
        (fields(if_none_match=b'"b,", "a"'), CURRENT),
        (fields(if_none_match=b"*"), CURRENT),
        (fields(if_none_match=b'"b"'), WHOLE),
        (fields(if_none_match=b"a"), WHOLE),
        (fields(if_modified_since=DATE), CURRENT),
        (fields(if_modified_since=EARLIER), WHOLE),
        (fields(if_modified_since=b"yesterday"), WHOLE),
        (fields(if_none_match=b'"b"', if_modified_since=DATE), WHOLE),
        (fields(if_none_match=b'"a"', range=b"bytes=0-1"), CURRENT),
        (fields(range=b"bytes=0-1"), Selection(206, 0, 2)),
        (fields(range=b"bytes=3-"), Selection(206, 3, 10)),
        (fields(range=b"bytes=-3"), Selection(206, 7, 10)),
        (fields(range=b"bytes=-30"), Selection(206, 0, 10)),
        (fields(range=b"bytes=9-99"), Selection(206, 9, 10)),
        (fields(range=b"Bytes= 0-0 "), Selection(206, 0, 1)),
        (fields(range=b"bytes=10-"), Selection(416, 0, 0)),
        (fields(range=b"bytes=-0"), Selection(416, 0, 0)),
        (fields(range=b"bytes=2-1"), Selection(416, 0, 0)),
        (fields(range=b"bytes=-"), WHOLE),
        (fields(range=b"bytes=0-1,3-4"), WHOLE),
        (fields(range=b"lines=0-1"), WHOLE),
        (fields(range=b"bytes=a-b"), WHOLE),
        (fields(range=b"bytes=" + b"9" * 5000 + b"-"), WHOLE),
        (fields(range=b"bytes=0-1", if_range=b'"a"'), Selection(206, 0, 2)),
        (fields(range=b"bytes=0-1", if_range=b'"b"'), WHOLE),
        (fields(range=b"bytes=0-1", if_range=b'W/"a"'), WHOLE),
        (fields(range=b"bytes=0-1", if_range=DATE), Selection(206, 0, 2)),
        (fields(range=b"bytes=0-1", if_range=EARLIER), WHOLE),
        (fields(if_match=b'"a"'), WHOLE),
        (fields(if_match=b'"b", "a"'), WHOLE),
        (fields(if_match=b"*"), WHOLE),
        (fields(if_match=b'"b"'), FAILED),
        (fields(if_match=b'W/"a"'), FAILED),
        (fields(if_match=b"nonsense"), FAILED),
        (fields(if_match=b'"a"', if_none_match=b'"a"'), CURRENT),
        (fields(if_match=b'"b"', if_none_match=b'"a"'), FAILED),
        (fields(if_unmodified_since=DATE), WHOLE),
        (fields(if_unmodified_since=EARLIER), FAILED),
        (fields(if_unmodified_since=b"yesterday"), WHOLE),
        (fields(if_match=b'"a"', if_unmodified_since=EARLIER), WHOLE),
        (fields(range=b"bytes=3-", if_unmodified_since=DATE), Selection(206, 3, 10)),
        (fields(range=b"bytes=3-", if_unmodified_since=EARLIER), FAILED),
    ],
)
def test_client_gets_what_its_conditions_leave(given_fields: dict[bytes, bytes], selection: Selection) -> None:
    assert select(b"GET", given_fields, ANSWER) == selection


PLAIN, PACKED = b'"a"', b'"a-gz"'
CODED = Response(body=b"0123456789", etag=PLAIN, variants={b"identity": PLAIN, b"gzip": PACKED}, ranges=True)


@pytest.mark.parametrize(
    ("given_fields", "selection"),
    [
        (fields(if_none_match=PLAIN), CURRENT),
        (fields(if_none_match=PACKED), Selection(304, 0, 0, PACKED)),
        (fields(if_none_match=b'"b", W/"a-gz"', accept_encoding=b"gzip"), Selection(304, 0, 0, PACKED)),
        (fields(if_none_match=PACKED, accept_encoding=b"*"), Selection(304, 0, 0, PACKED)),
        (fields(if_none_match=PACKED, range=b"bytes=3-"), Selection(304, 0, 0, PACKED)),
        # A cache with both would give the packed one to a client that cannot read it.
        (fields(if_none_match=PACKED, accept_encoding=b"identity"), WHOLE),
        (fields(if_none_match=PACKED, accept_encoding=b"gzip;q=0"), WHOLE),
        (fields(if_none_match=b'"a-zst"'), WHOLE),
        (fields(range=b"bytes=3-", if_range=PACKED), WHOLE),
        (fields(if_match=PACKED), FAILED),
    ],
)
def test_a_copy_in_another_content_coding_is_current(given_fields: dict[bytes, bytes], selection: Selection) -> None:
    assert select(b"GET", given_fields, CODED) == selection


def test_an_answer_without_an_etag_is_always_sent() -> None:
    assert select(b"GET", fields(if_none_match=PACKED), evolve(CODED, etag=None)) == WHOLE


def test_range_is_ignored_for_head_and_where_ranges_are_not_offered() -> None:
    assert select(b"HEAD", fields(range=b"bytes=0-1"), ANSWER) == WHOLE
    assert select(b"GET", fields(range=b"bytes=0-1"), Response(body=b"0123456789")) == WHOLE


def test_conditions_concern_successful_reads_only() -> None:
    assert select(b"PUT", fields(if_none_match=b"*"), ANSWER).status == 200
    assert select(b"GET", fields(if_none_match=b"*"), Response(status=404)).status == 404


def test_empty_body_has_no_range() -> None:
    assert select(b"GET", fields(range=b"bytes=0-"), Response(ranges=True)).status == 416


@given(st.integers(0, 50), st.integers(0, 60) | st.none(), st.integers(0, 60) | st.none())
def test_range_is_what_a_slice_would_give(size: int, first: int | None, last: int | None) -> None:
    text = b"bytes=%s-%s" % tuple(b"" if part is None else b"%d" % part for part in (first, last))
    body = bytes(range(size))
    selection = select(b"GET", fields(range=text), Response(body=body, ranges=True))
    if first is None:
        expected = b"" if not last else body[-last:]
    else:
        expected = body[first:] if last is None else body[first : last + 1]
    if first is None and last is None:
        assert selection == Selection(200, 0, size)
    elif expected:
        assert selection.status == 206
        assert body[selection.start : selection.end] == expected
    else:
        assert selection.status == 416


@given(st.integers(0, 4_000_000_000))
def test_date_survives_the_wire(seconds: int) -> None:
    assert parse_date(render_date(seconds)) == seconds


@given(st.binary(max_size=60))
def test_any_bytes_are_a_date_or_none(text: bytes) -> None:
    parse_date(text)
