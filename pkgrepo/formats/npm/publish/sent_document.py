"""The events of the scanner of publish documents, and the document without its tarballs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from pkgrepo.untrusted.strict_json import decode_json


@frozen
class AttachmentStart:
    """The data of an attachment begins; the bytes that follow are its own. ``name`` is as the client wrote it."""

    name: str


@frozen
class AttachmentEnd:
    """The data of an attachment ended after ``size`` bytes."""

    name: str
    size: int


ScanEvent = AttachmentStart | bytes | AttachmentEnd


@frozen
class SentDocument:
    """
    A publish document without its tarballs.

    ``text`` is its JSON; the ``data`` of each tarball is an empty string there. ``sizes`` are the bytes of each such
    attachment. ``place`` maps an offset in ``text`` to one in the body, for error messages.
    """

    text: bytes
    sizes: Mapping[str, int]
    place: Callable[[int], int]

    def value(self) -> dict[str, Any]:
        """
        The parsed document. Call it in a thread when the text is large.

        :raises Invalid: it is not JSON, or an object has a key twice
        """
        value: dict[str, Any] = decode_json(self.text, self.place)
        return value
