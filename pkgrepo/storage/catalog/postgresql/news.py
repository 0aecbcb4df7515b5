"""
News between the processes of all nodes, as notifications of the database.

A notification is a text of less than 8000 bytes, so longer news are sent in parts. The server delivers those of one
connection in order; news that lack a part, since a connection was lost, are dropped.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Iterator
from itertools import count
from typing import Final

CHANNEL: Final = "pkgrepo_news"
PART: Final = 7_500  # characters of base64 in a part
MOST_SENDERS: Final = 1_000  # whose unfinished news are kept


class NewsParts:
    """Divides the news of this process into payloads, and joins those of others."""

    def __init__(self) -> None:
        self._own = secrets.token_hex(8)
        self._numbers = count()
        self._unfinished: dict[str, tuple[int, list[str]]] = {}

    def split(self, data: bytes) -> Iterator[str]:
        """The payloads of one piece of news."""
        number, text = next(self._numbers), base64.b64encode(data).decode("ascii")
        parts = [text[at : at + PART] for at in range(0, len(text), PART)] or [""]
        for index, part in enumerate(parts):
            yield f"{self._own} {number} {len(parts) - index - 1} {part}"

    def join(self, payload: str) -> bytes | None:
        """The news that are complete with this payload; None if they are not, or are of this process or no news."""
        try:
            sender, number, left, part = payload.split(" ")
            if sender == self._own:
                return None
            return self._add(sender, int(number), int(left), part)
        except (ValueError, binascii.Error):
            return None

    def _add(self, sender: str, number: int, left: int, part: str) -> bytes | None:
        found, parts = self._unfinished.pop(sender, (number, []))
        if found != number:
            parts = []
        parts.append(part)
        if not left:
            return base64.b64decode("".join(parts), validate=True)
        while len(self._unfinished) >= MOST_SENDERS:
            del self._unfinished[next(iter(self._unfinished))]
        self._unfinished[sender] = (number, parts)
        return None
