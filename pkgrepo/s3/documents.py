"""The XML documents of the S3 protocol: pages of lists, the parts of an upload, errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from xml.etree.ElementTree import Element, ParseError, SubElement, tostring

import defusedxml.ElementTree
from attrs import frozen
from defusedxml import DefusedXmlException

_MOST_DIGITS: Final = 19  # of a number; a size of 2**63 bytes has as many


class DocumentBroken(Exception):  # noqa: N818 - named for what is wrong
    """A document is not of the protocol."""


@frozen
class StoredObject:
    """An object in a list; ``key`` is whole, with the prefix of the storage."""

    key: str
    size: int
    modified_at: datetime


@frozen
class PartsUpload:
    """An upload in parts that is neither complete nor aborted."""

    key: str
    id: str
    begun_at: datetime


@frozen
class Part:
    """A part that was sent; ``sha256`` is in base64, None if the store does not say it."""

    number: int
    etag: str
    size: int
    sha256: str | None = None
    modified_at: datetime | None = None


@frozen
class Page:
    """A page of a list, whose items are of one of the classes above; ``after`` names the next one, None at the end."""

    items: Sequence[Any]
    after: tuple[str, str] | None


def read_objects(data: bytes) -> Page:
    """A page of ListObjectsV2. :raises DocumentBroken: the bytes are no such page"""
    root = _parse(data)
    found = [
        StoredObject(_text(each, "Key"), _number(_text(each, "Size")), _time(_text(each, "LastModified")))
        for each in _all(root, "Contents")
    ]
    return Page(found, (found[-1].key, "") if found and _is_truncated(root) else None)


def read_uploads(data: bytes) -> Page:
    """A page of ListMultipartUploads. :raises DocumentBroken: the bytes are no such page"""
    root = _parse(data)
    found = [
        PartsUpload(_text(each, "Key"), _text(each, "UploadId"), _time(_text(each, "Initiated")))
        for each in _all(root, "Upload")
    ]
    return Page(found, (found[-1].key, found[-1].id) if found and _is_truncated(root) else None)


def read_parts(data: bytes) -> Page:
    """A page of ListParts. :raises DocumentBroken: the bytes are no such page"""
    root = _parse(data)
    found = [
        Part(
            _number(_text(each, "PartNumber")),
            _text(each, "ETag"),
            _number(_text(each, "Size")),
            _find(each, "ChecksumSHA256") or None,
            _time(_text(each, "LastModified")),
        )
        for each in _all(root, "Part")
    ]
    return Page(found, (str(found[-1].number), "") if found and _is_truncated(root) else None)


def read_upload_id(data: bytes) -> str:
    """The id in the response to CreateMultipartUpload. :raises DocumentBroken: there is none"""
    return _text(_parse(data), "UploadId")


def read_error_code(data: bytes) -> str:
    """The code of an error document, such as SlowDown; empty if the body is none."""
    try:
        root = _parse(data)
    except DocumentBroken:
        return ""
    return _find(root, "Code") if _local(root) == "Error" else ""


def render_parts(parts: Iterable[Part]) -> bytes:
    """The body of CompleteMultipartUpload."""
    root = Element("CompleteMultipartUpload", xmlns="http://s3.amazonaws.com/doc/2006-03-01/")
    for part in parts:
        each = SubElement(root, "Part")
        SubElement(each, "PartNumber").text = str(part.number)
        SubElement(each, "ETag").text = part.etag
        if part.sha256 is not None:
            SubElement(each, "ChecksumSHA256").text = part.sha256
    document: bytes = tostring(root, encoding="utf-8")
    return document


def _parse(data: bytes) -> Element:
    try:
        root: Element = defusedxml.ElementTree.fromstring(data)
    except (ParseError, DefusedXmlException, ValueError) as error:
        raise DocumentBroken(str(error)) from error
    return root


def _local(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _all(root: Element, name: str) -> Iterator[Element]:
    return (each for each in root if _local(each) == name)


def _find(element: Element, name: str) -> str:
    return next((each.text or "" for each in _all(element, name)), "")


def _text(element: Element, name: str) -> str:
    found = _find(element, name)
    if not found:
        raise DocumentBroken(f"no {name}")
    return found


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise DocumentBroken(f"{text[:100]!r} is no number")
    return int(text)


def _time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise DocumentBroken(f"{text!r} is no time") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _is_truncated(root: Element) -> bool:
    return _find(root, "IsTruncated") == "true"
