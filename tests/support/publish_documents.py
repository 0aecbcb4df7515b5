"""Publish documents, fed to their scanner in pieces."""

import base64
import itertools
from collections.abc import Iterator
from typing import Any

from pkgrepo.formats.npm.limits import DOCUMENT as LIMITS
from pkgrepo.formats.npm.limits import DocumentLimits
from pkgrepo.formats.npm.publish.scanner import PublishScanner
from pkgrepo.formats.npm.publish.sent_document import AttachmentEnd, AttachmentStart, SentDocument

TARBALL = bytes(range(256)) * 4
DOCUMENT = {
    "_id": "x",
    "name": "x",
    "readme": 'a "data": "QUJD" \\ in { the ] text é \U0001f600',
    "versions": {"1.0.0": {"name": "x", "bin": {}, "list": [1, [2, {"data": "no"}], "_attachments"]}},
    "access": None,
    "_attachments": {
        "x-1.0.0.tgz": {
            "content_type": "application/octet-stream",
            "data": base64.b64encode(TARBALL).decode(),
            "length": len(TARBALL),
        }
    },
}


def scan(
    body: bytes, cuts: list[int] | None = None, limits: DocumentLimits = LIMITS
) -> tuple[SentDocument, dict[str, bytes]]:
    """The scanned document and its attachments, when the body is fed in pieces that end at these offsets."""
    scanner = PublishScanner(limits)
    attachments: dict[str, bytes] = {}
    name = None
    for piece in pieces(body, cuts or []):
        for event in scanner.feed(piece):
            if isinstance(event, AttachmentStart):
                assert name is None
                name = event.name
                attachments[name] = b""
            elif isinstance(event, AttachmentEnd):
                assert event.name == name
                assert event.size == len(attachments[event.name])
                name = None
            else:
                assert name is not None
                attachments[name] += event
    scanned = scanner.finish()
    assert scanned.sizes == {name: len(data) for name, data in attachments.items()}
    return scanned, attachments


def pieces(body: bytes, cuts: list[int]) -> Iterator[bytes]:
    edges = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    for begin, end in itertools.pairwise(edges):
        yield body[begin:end]


def blanked(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the strings removed that the scanner removes."""
    attachments = document.get("_attachments")
    if not isinstance(attachments, dict):
        return document
    left = {
        name: {
            key: "" if key == "data" and isinstance(value, str) and not name.endswith(".sigstore") else value
            for key, value in each.items()
        }
        if isinstance(each, dict)
        else each
        for name, each in attachments.items()
    }
    return {**document, "_attachments": left}
