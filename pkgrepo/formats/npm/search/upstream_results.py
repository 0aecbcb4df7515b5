"""The answers of upstreams to searches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

import msgspec
from attrs import Factory, frozen

from pkgrepo.formats.npm import names
from pkgrepo.model import ReadLimits
from pkgrepo.proxy.uncached import UncachedQuestion
from pkgrepo.untrusted.strict_json import ERRORS

from .query import MOST_SIZE, Page

LIMITS: Final = ReadLimits(max_bytes=4 * 1024 * 1024, total_s=3.0)  # 250 results have 500 KiB; people wait for them


@frozen
class UpstreamResults:
    """A page of results: the objects of packages by name, the best first, and the number of all results."""

    objects: Mapping[str, msgspec.Raw] = Factory(dict)
    total: int = 0


class _Package(msgspec.Struct):
    name: str


class _Object(msgspec.Struct):
    package: _Package


class _Answer(msgspec.Struct):
    objects: list[msgspec.Raw]
    total: int = 0


def search_question(text: str, page: Page) -> UncachedQuestion:
    """The question for a page of the packages that match a text."""
    query = urlencode({"text": text, "size": page.size, "from": page.start})
    return UncachedQuestion("search", f"-/v1/search?{query}", LIMITS)


def read_results(body: bytes) -> UpstreamResults:
    """The results in an answer; none in an answer that cannot be read. Results without a name are left out."""
    try:
        body.decode()
        answer = msgspec.json.decode(body, type=_Answer)
    except ERRORS:
        return UpstreamResults()
    found: dict[str, msgspec.Raw] = {}
    for each in answer.objects[:MOST_SIZE]:
        try:
            name = msgspec.json.decode(each, type=_Object).package.name
        except ERRORS:
            continue
        if names.is_readable(name):
            found.setdefault(name, each)
    return UpstreamResults(found, max(answer.total, len(found)))
