"""Normalisers for tests. Worker processes import this module, so it imports little."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.proxy.parts.values import Context, Entry, FileSource, Normalised

MODULE = "tests.support.normalisers"


class _Document(msgspec.Struct):
    name: str
    versions: dict[str, msgspec.Raw]
    time: dict[str, int] = {}


class _Version(msgspec.Struct):
    version: str
    dist: dict[str, Any] = {}


def packument(source: bytes, context: Context) -> Normalised:
    """Normalise a document like npm's: its versions are decoded one by one."""
    try:
        document = msgspec.json.decode(source, type=_Document)
    except msgspec.MsgspecError as error:
        raise Invalid(f"{context.name} is not a packument: {error}", "/versions") from None
    return Normalised({"name": document.name, "url": context.url}, _entries(document))


def _entries(document: _Document) -> Iterator[Entry]:
    for number, (text, raw) in enumerate(document.versions.items()):
        version = msgspec.json.decode(raw, type=_Version)
        path = f"{document.name}/-/{document.name}-{text}.tgz"
        source = FileSource(path, version.dist.get("tarball", ""), None, {}, "application/octet-stream", {})
        fragments = {"full": bytes(raw), "short": msgspec.json.encode(version)}
        published_ms = document.time.get(text)
        yield Entry(b"%08d" % number, text, version.version, published_ms, False, fragments, [source])


def broken(source: bytes, context: Context) -> Normalised:
    """Fail as a program with an error does."""
    raise KeyError(context.name)


def crash(source: bytes, context: Context) -> Normalised:
    """End the process."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def hang(source: bytes, context: Context) -> Normalised:
    """Create the file that the document is named for, and never end."""
    Path(context.name).touch()
    while True:
        time.sleep(3600)


def hog(source: bytes, context: Context) -> Normalised:
    """Take all memory."""
    kept = []
    while True:
        kept.append(bytes(1024 * 1024))
