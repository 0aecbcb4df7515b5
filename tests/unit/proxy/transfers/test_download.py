"""Answers of upstreams to requests for a file, and for the rest of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from attrs import Factory, frozen

from pkgrepo.errors import NotFound, UpstreamFailed, UpstreamMismatch
from pkgrepo.proxy.transfers.download import Download, Origin, check_first, check_rest, fields_for_rest

ETAG = '"v1"'


@frozen
class Response:
    """The head of an answer; names of ``headers`` as they are asked for."""

    status: int = 200
    length: int | None = 100
    headers: Mapping[str, str] = Factory(dict)


def download(**values: Any) -> Download:
    unused: Any = None
    return Download(route="main", open=unused, stage=unused, record=unused, **values)


def first(response: Any, path: str = "a.tgz", **values: Any) -> Origin:
    return check_first(download(**values), path, response)


def rest(response: Any, origin: Origin, offset: int = 40, **values: Any) -> int | None:
    return check_rest(download(**values), "a.tgz", origin, offset, response)


WHOLE = first(Response(headers={"ETag": ETAG}))
BARE = first(Response())


@pytest.mark.parametrize(
    ("etag", "strong"),
    [(ETAG, ETAG), ('W/"v1"', None), ("v1", None), ('"a"b"', None), ('""', '""'), (None, None)],
)
def test_only_a_strong_etag_identifies_bytes(etag: str | None, strong: str | None) -> None:
    assert first(Response(headers={} if etag is None else {"ETag": etag})).etag == strong


@pytest.mark.parametrize(
    ("length", "announced", "size"), [(100, None, 100), (None, 100, 100), (100, 100, 100), (None, None, None)]
)
def test_size_comes_from_the_answer_or_from_the_document(
    length: int | None, announced: int | None, size: int | None
) -> None:
    assert first(Response(length=length), size=announced).size == size


def test_other_size_than_announced_is_another_file() -> None:
    with pytest.raises(UpstreamMismatch, match="has 100 bytes where 99 were announced"):
        first(Response(), size=99)


@pytest.mark.parametrize(
    ("status", "error"),
    [(404, NotFound), (410, NotFound), (403, UpstreamFailed), (206, UpstreamFailed), (304, UpstreamFailed)],
)
def test_only_200_is_a_file(status: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        first(Response(status=status))


@pytest.mark.parametrize("media_type", ["text/html", "Text/HTML; charset=utf-8", "application/xhtml+xml"])
def test_page_is_a_file_only_where_the_path_says_so(media_type: str) -> None:
    page = Response(headers={"Content-Type": media_type})
    with pytest.raises(UpstreamFailed, match="web page"):
        first(page)
    assert first(page, "docs/index.html").size == 100


@pytest.mark.parametrize(
    ("origin", "offset", "expected", "fields"),
    [
        (WHOLE, 40, {}, {"Range": "bytes=40-", "If-Range": ETAG}),
        (WHOLE, 40, {"sha1": "00"}, {"Range": "bytes=40-", "If-Range": ETAG}),
        (BARE, 40, {"sha1": "00"}, {"Range": "bytes=40-"}),
        (BARE, 40, {}, None),  # nothing would show that the rest is of the same file
        (WHOLE, 0, {}, None),
        (WHOLE, 100, {}, None),
        (first(Response(length=None, headers={"ETag": ETAG})), 40, {}, None),
        # Compressed in transfer: positions in what was sent are others.
        (first(Response(length=None, headers={"ETag": ETAG}), size=100), 40, {"sha1": "00"}, None),
    ],
)
def test_rest_is_asked_for_if_it_can_be_recognised(
    origin: Origin, offset: int, expected: dict[str, str], fields: dict[str, str] | None
) -> None:
    assert fields_for_rest(download(expected=expected), origin, offset) == fields


def part(content_range: str | None = "bytes 40-99/100", etag: str | None = ETAG, length: int | None = 60) -> Response:
    fields = {"Content-Range": content_range, "ETag": etag}
    return Response(206, length, {name: value for name, value in fields.items() if value is not None})


def test_rest_of_the_same_file_continues_it() -> None:
    assert rest(part(), WHOLE) == 0
    assert rest(part(etag=None), BARE, expected={"sha1": "00"}) == 0


@pytest.mark.parametrize(
    "response",
    [
        part("bytes 41-99/100"),
        part("bytes 40-99/101"),
        part("bytes 40-98/100", length=59),
        part("bytes 40-99/*"),
        part("bytes */100"),
        part(None),
        part(etag='"v2"'),
        part(etag=None),
        part(length=None),
    ],
)
def test_part_of_another_file_is_refused(response: Response) -> None:
    with pytest.raises(UpstreamMismatch):
        rest(response, WHOLE)


def test_whole_file_again_is_skipped_as_far_as_it_is_there() -> None:
    assert rest(Response(headers={"ETag": ETAG}), WHOLE) == 40
    assert rest(Response(), BARE, expected={"sha1": "00"}) == 40


@pytest.mark.parametrize(
    ("response", "origin"),
    [
        (Response(headers={"ETag": '"v2"'}), WHOLE),
        (Response(), WHOLE),
        (Response(length=101, headers={"ETag": ETAG}), WHOLE),
        (Response(), BARE),
    ],
)
def test_other_file_is_received_from_its_beginning(response: Response, origin: Origin) -> None:
    assert rest(response, origin) is None


def test_rest_that_is_gone_is_no_file() -> None:
    with pytest.raises(UpstreamFailed):
        rest(Response(status=416), WHOLE)
    with pytest.raises(NotFound):
        rest(Response(status=404), WHOLE)
