"""
Validators of what the API shows, and the check that a change starts from what its caller has seen.

A tag has two parts: one over what people set, one over what the server measures (sizes, counts, times of use). A GET is
answered 304 only when both are current; a change with If-Match needs only the first, or no busy repository could ever
be edited.
"""

from __future__ import annotations

import hashlib
import re

import msgspec

from .problems import Stale
from .schema import Record

_TAG = re.compile(rb'"([^"]*)"')


def tag_of(value: object) -> bytes:
    """The strong ETag of a value in its JSON form."""
    built = msgspec.to_builtins(value)
    measured = value.measured if isinstance(value, Record) else frozenset[str]()
    if not measured:
        return b'"%s"' % _hash(built, 32)
    set_by_people = {key: field for key, field in built.items() if key not in measured}
    rest = {key: field for key, field in built.items() if key in measured}
    return b'"%s-%s"' % (_hash(set_by_people, 24), _hash(rest, 8))


def check_unchanged(if_match: bytes | None, current: object) -> None:
    """
    Let a change pass when its caller has seen the ``current`` value (RFC 9110 section 13.1.1).

    :raises Stale: it has not; without a condition everything passes
    """
    if if_match is None or if_match.strip() == b"*":
        return
    tag = tag_of(current)
    wanted = _edited_part(tag[1:-1])
    if not any(_edited_part(each) == wanted for each in _TAG.findall(if_match)):
        raise Stale(tag.decode("ascii"))


def _edited_part(tag: bytes) -> bytes:
    return tag.partition(b"-")[0]


def _hash(value: object, digits: int) -> bytes:
    encoded = msgspec.json.encode(value, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:digits].encode("ascii")
