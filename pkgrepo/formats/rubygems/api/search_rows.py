"""What searches read of each gem: one fragment, written with each change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from attrs import frozen

from pkgrepo.model import Version
from pkgrepo.repositories.publish.index import PackageIndex
from pkgrepo.repositories.search_index import Entry, facet, join_text

ROW: Final = "ruby.row"
OWNER: Final = "owner"  # the kind of the facets with the names of a gem's owners
LONGEST_TEXT: Final = 500  # characters


@frozen
class Row:
    """A gem as searches see it, from its latest live version."""

    name: str
    summary: str
    owners: Sequence[str] = ()


_read = msgspec.json.Decoder(Row).decode
_encode = msgspec.json.Encoder().encode


def put_row(index: PackageIndex, latest: Version | None, owners: Sequence[str]) -> None:
    """Write the row of a gem from its latest version, or remove it if the gem has no live version."""
    if latest is None:
        index.remove_fragment(ROW, b"", "")
        return
    text = latest.meta.get("summary") or latest.meta.get("description") or ""
    index.put_fragment(ROW, b"", "", _encode(Row(index.package.name, text[:LONGEST_TEXT], owners)))


def read_entry(key: str, body: bytes, downloads: int) -> Entry:
    """The entry of the search index."""
    row = _read(body)
    facets = "".join(facet(OWNER, each) for each in row.owners)
    return Entry(key, join_text(row.name, (), row.summary), facets, deprecated=False, downloads=downloads)
