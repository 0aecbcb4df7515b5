"""
Strong ETags of records, and the check of If-Match.

An ETag has two parts: a hash of the fields that people set, and a hash of the fields that the server measures (sizes,
counts, times of use). A GET is answered with 304 when both parts match. If-Match compares only the first part:
otherwise a record could not be edited while its measured fields change with every download.
"""

from __future__ import annotations

import hashlib
import re

import msgspec

from .problems import PreconditionFailed
from .schema import Record

_TAG = re.compile(rb'"([^"]*)"')


def tag_of(value: object) -> bytes:
    """The strong ETag of a value, made from its JSON form."""
    built = msgspec.to_builtins(value)
    measured = value.measured if isinstance(value, Record) else frozenset[str]()
    if not measured:
        return b'"%s"' % _hash(built, 32)
    set_by_people = {key: field for key, field in built.items() if key not in measured}
    rest = {key: field for key, field in built.items() if key in measured}
    return b'"%s-%s"' % (_hash(set_by_people, 24), _hash(rest, 8))


def check_unchanged(if_match: bytes | None, current: object) -> None:
    """
    Compare If-Match with the ETag of the ``current`` value (RFC 9110 section 13.1.1).

    :raises PreconditionFailed: no ETag in it matches; without If-Match, and with ``*``, everything matches
    """
    if if_match is None or if_match.strip() == b"*":
        return
    tag = tag_of(current)
    wanted = _edited_part(tag[1:-1])
    if not any(_edited_part(each) == wanted for each in _TAG.findall(if_match)):
        raise PreconditionFailed(tag.decode("ascii"))


def _edited_part(tag: bytes) -> bytes:
    return tag.partition(b"-")[0]


def _hash(value: object, digits: int) -> bytes:
    encoded = msgspec.json.encode(value, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:digits].encode("ascii")
