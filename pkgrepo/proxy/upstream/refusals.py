"""
What a refusal of an upstream says: the sentence in its answer, in any of the forms that package clients read.

Errors are JSON in the registries of npm and of containers and in most APIs, plain text in the gem API; Maven and pip
print the reason phrase only.
"""

from __future__ import annotations

from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from pkgrepo.concurrency.time_limits import TimedOut, within
from pkgrepo.errors import UpstreamFailed

from .response import UpstreamResponse

DECISIONS: Final = (403, 451)  # RFC 7725: 451 for legal reasons
MOST_BYTES: Final = 64 * 1024  # of a body that is read for its sentence
LONGEST_S: Final = 5.0  # until the end of the body
MOST_CHARACTERS: Final = 500  # of the sentence, which becomes a reason phrase again

_KEYS: Final = ("errors", "error", "message", "detail", "msg", "reason", "title")
_DEPTH: Final = 4


async def read_refusal(response: UpstreamResponse, reactor: IReactorTime) -> str:
    """The sentence with which an upstream refuses something, on one line; without any, its status."""
    body = bytearray()

    async def read() -> None:
        async for chunk in response.chunks():
            body.extend(chunk)
            if len(body) > MOST_BYTES:
                break

    with suppress(UpstreamFailed, TimedOut):  # what came before the end may be enough
        await within(LONGEST_S, Deferred.fromCoroutine(read()), reactor, "its sentence takes long")
    media_type = (response.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
    return find_sentence(bytes(body[:MOST_BYTES]), media_type, response.reason) or f"it answers {response.status}"


def find_sentence(body: bytes, media_type: str, reason: str) -> str:
    """The sentence in a body of this type, else the reason phrase if it is not the usual one of a status; or empty."""
    found = ""
    try:
        found = _of_json(msgspec.json.decode(body), _DEPTH)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if media_type in ("", "text/plain"):
            found = body.decode("utf-8", "replace")
    sentence = _on_one_line(found)
    if not sentence and reason.lower() not in {each.phrase.lower() for each in HTTPStatus}:
        sentence = _on_one_line(reason)
    return sentence


def _of_json(value: Any, depth: int) -> str:
    """The first text that is the value itself, or under one of the keys for errors."""
    if isinstance(value, str):
        return value
    if not depth:
        return ""
    inner: list[Any] = []
    if isinstance(value, dict):
        inner = [value[key] for key in _KEYS if key in value]
    elif isinstance(value, list):
        inner = value[:1]
    return next((found for each in inner if (found := _of_json(each, depth - 1))), "")


def _on_one_line(text: str) -> str:
    words = "".join(each if each.isprintable() else " " for each in text).split()
    line = " ".join(words)
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 3]}..."
