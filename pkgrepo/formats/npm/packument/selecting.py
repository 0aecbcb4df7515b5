"""Selects from the parts of a packument: a version by its number or tag, and the tags."""

from __future__ import annotations

import msgspec

from pkgrepo.formats.npm import semver
from pkgrepo.repositories.publish.index import Spliced


class _Head(msgspec.Struct):
    tags: dict[str, str] = msgspec.field(name="dist-tags")


def read_tags(spliced: Spliced) -> dict[str, str]:
    """The dist-tags of a packument in any form, as tag to version."""
    return msgspec.json.decode(spliced.head + spliced.tail, type=_Head).tags


def find_fragment(spliced: Spliced, selector: str) -> bytes | None:
    """The fragment of a version selected by its number, in any spelling that npm accepts, or by a tag; or None."""
    wanted = semver.find_version(selector) or semver.find_version(read_tags(spliced).get(selector, ""))
    if wanted is None:
        return None
    # A fragment begins with the version as text. Another one may be meant that differs in build metadata alone.
    for beginning in (f'"{wanted.text}":', f'"{wanted.key}":', f'"{wanted.key}+'):
        for fragment in spliced.fragments:
            if fragment.startswith(beginning.encode()):
                return fragment
    return None
