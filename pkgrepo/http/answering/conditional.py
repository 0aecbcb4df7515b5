"""Conditional requests and ranges: which part of a response a client gets (RFC 9110 sections 13 and 14)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache

from attrs import frozen
from twisted.web.http import stringToDatetime

from pkgrepo.http.reading.ranges import UnsatisfiableError, parse_range
from pkgrepo.http.responses import Response

from .negotiation import best_encoding

_ETAG = re.compile(rb'(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")')
_STRONG = re.compile(rb'W/"[^"]*"|("[\x21\x23-\x7e\x80-\xff]*")')  # a weak one has no group: it never matches here
_LONGEST_DATE = 40  # characters; RFC 9110 section 5.6.7 needs 33


@frozen
class Selection:
    """
    What to send: a status, and the bytes ``start`` to ``end`` (exclusive) of the body.

    ``etag`` is that of the client's current copy if it is in another content coding than the response.
    """

    status: int
    start: int
    end: int
    etag: bytes | None = None


@lru_cache(maxsize=1024)
def render_date(seconds: int) -> bytes:
    """``seconds`` since 1970 as an HTTP date."""
    return formatdate(seconds, usegmt=True).encode("ascii")


def parse_date(text: bytes) -> int | None:
    """Seconds since 1970, or None when ``text`` is no HTTP date (a condition on it is then ignored)."""
    return _parse_date(text) if len(text) <= _LONGEST_DATE else None


@lru_cache(maxsize=1024)
def _parse_date(text: bytes) -> int | None:
    try:
        return int(stringToDatetime(text))
    except (ValueError, IndexError, KeyError, OverflowError):
        return None


def select(method: bytes, fields: Mapping[bytes, bytes], answer: Response) -> Selection:
    """
    The status, and the part of the body, that a request with these header fields gets of ``answer``.

    412 when the client wants another state than the current one, 304 when its copy is current, 206 for one satisfiable
    range, 416 for one that is not. For several ranges, and for other units than bytes, the RFC allows to send the whole
    body.
    """
    size = answer.size
    if answer.status != 200 or method not in (b"GET", b"HEAD"):
        return Selection(answer.status, 0, size)
    if not is_wanted(fields, answer.etag, answer.last_modified):
        return Selection(412, 0, 0)
    if is_current(fields, answer.etag, answer.last_modified):
        return Selection(304, 0, 0)
    variant = None if answer.etag is None else _current_variant(fields, answer.variants)
    if variant is not None:
        return Selection(304, 0, 0, variant)
    wanted = fields.get(b"range")
    if wanted is None or not answer.ranges or method == b"HEAD" or not _range_applies(fields, answer):
        return Selection(200, 0, size)
    return _select_range(wanted, size)


def is_wanted(fields: Mapping[bytes, bytes], etag: bytes | None, last_modified: int | None) -> bool:
    """Whether the state is the one that the client wants; If-Match wins over If-Unmodified-Since (section 13.2.2)."""
    given = fields.get(b"if-match")
    if given is not None:
        return given == b"*" or (etag is not None and etag in (each for each in _STRONG.findall(given) if each))
    since = fields.get(b"if-unmodified-since")
    if since is None or last_modified is None:
        return True
    date = parse_date(since)
    return date is None or last_modified <= date


def is_current(fields: Mapping[bytes, bytes], etag: bytes | None, last_modified: int | None) -> bool:
    """Whether the client's copy is the current one; If-None-Match wins over If-Modified-Since (section 13.2.2)."""
    given = fields.get(b"if-none-match")
    if given is not None:
        return given == b"*" or (etag is not None and (given == etag or etag in _ETAG.findall(given)))
    since = fields.get(b"if-modified-since")
    if since is None or last_modified is None:
        return False
    date = parse_date(since)
    return date is not None and last_modified <= date


def _current_variant(fields: Mapping[bytes, bytes], variants: Mapping[bytes, bytes]) -> bytes | None:
    """
    The ETag of a current copy in a content coding that the client takes; None if it has none.

    A cache that is told that a copy is current gives it to its own client (RFC 9111 section 4.3.4), so a copy in a
    coding that is refused is not. A client that says nothing of codings takes each that it has.
    """
    given = fields.get(b"if-none-match")
    if given is None or not variants:
        return None
    tags, accepted = _ETAG.findall(given), fields.get(b"accept-encoding")
    for coding, etag in variants.items():
        if etag in tags and (accepted is None or best_encoding(accepted, (coding,)) is not None):
            return etag
    return None


def _range_applies(fields: Mapping[bytes, bytes], answer: Response) -> bool:
    condition = fields.get(b"if-range")
    if condition is None:
        return True
    if condition[:1] == b'"':
        return condition == answer.etag
    # Section 13.1.5: a date must match exactly; a weak tag never does (and is no date either).
    return answer.last_modified is not None and parse_date(condition) == answer.last_modified


def _select_range(value: bytes, size: int) -> Selection:
    try:
        found = parse_range(value, size)
    except UnsatisfiableError:
        return Selection(416, 0, 0)
    return Selection(200, 0, size) if found is None else Selection(206, *found)
