"""What the scanner of publish documents hands out on the way, and what is left at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from attrs import frozen

from pkgrepo.untrusted.strict_json import decode_as, decode_json

T = TypeVar("T")


@frozen
class AttachmentStart:
    """The bytes that follow are those of this attachment; its name is what the client wrote."""

    name: str


@frozen
class AttachmentEnd:
    """All of an attachment was handed out: ``size`` bytes."""

    name: str
    size: int


Event = AttachmentStart | bytes | AttachmentEnd


@frozen
class SentDocument:
    """
    The document without its tarballs.

    ``text`` is its JSON, in which the ``data`` of each tarball is an empty string. ``sizes`` are those of the
    attachments that were handed out, in bytes. ``place`` tells where in the body a byte of ``text`` came from.
    """

    text: bytes
    sizes: Mapping[str, int]
    place: Callable[[int], int]

    def value(self) -> dict[str, Any]:
        """
        What the text says; a big one belongs into a thread.

        :raises Invalid: it is not JSON, or says a key twice
        """
        value: dict[str, Any] = decode_json(self.text, self.place)
        return value

    def value_as(self, type_: type[T]) -> T:
        """
        Those parts of a text that a type names, at a fraction of the time; who says a key twice, says the last.

        :raises Invalid: it is not JSON, or of another shape
        """
        return decode_as(self.text, type_, self.place)
