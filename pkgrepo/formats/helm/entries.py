"""
Entries of an index of charts, as this server writes them, and as those of other servers become them.

An index may name archives at any address: each gets one below this repository, and the digest that the index says is
verified. An entry that helm could not use, or whose archive is no file of an HTTP server, is left out alone. This
module runs in a child process and imports little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.proxy.parts.values import Context, Entry, FileSource, Normalised, section_of
from pkgrepo.untrusted.fields import absolute_url
from pkgrepo.untrusted.text import time_ms
from pkgrepo.untrusted.yaml_text import read_yaml

from .chart import fields_of
from .names import ARCHIVE_TYPE, PROVENANCE, PROVENANCE_TYPE, chart_path, sort_key

ENTRY: Final = "entry"  # the kind of fragments, and the only form of the documents of one chart
LARGEST: Final = 128 * 1024 * 1024  # bytes of an index that is in memory
LARGEST_ENTRY: Final = 256 * 1024  # bytes

_SHA256: Final = re.compile(r"(?:sha256:)?([0-9a-fA-F]{64})")
_OWN: Final = ("urls", "digest", "created")  # of an entry, beside the fields of the chart


def render_entry(fields: Mapping[str, Any], path: str, sha256: str, created_ms: int | None) -> bytes:
    """The entry of a chart, as JSON. Its address is relative to the index; its ``sha256`` may be empty."""
    entry = {**fields, "urls": [path], **({"digest": sha256} if sha256 else {})}
    if created_ms is not None:
        time = datetime.fromtimestamp(created_ms / 1000, UTC)
        entry["created"] = f"{time:%Y-%m-%dT%H:%M:%S}.{created_ms % 1000:03}Z"
    return msgspec.json.encode(entry)


def declared(fragments: Mapping[str, bytes]) -> dict[str, Any]:
    """The fields of a chart, from its entry, which was made here."""
    found = msgspec.json.decode(fragments[ENTRY], type=dict[str, Any])
    return {key: value for key, value in found.items() if key not in _OWN}


def normalise_index(source: bytes, context: Context) -> Normalised:
    """The parts of an index. :raises Invalid: it is none"""
    try:
        is_json = source.lstrip().startswith(b"{")
        found = msgspec.json.decode(source) if is_json else read_yaml(source.decode("utf-8-sig"), aliases=True)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"the index cannot be read: {error}") from None
    if not isinstance(found, dict) or not {"entries", "apiVersion"} & found.keys():
        raise Invalid("it is no index of charts")
    charts = found.get("entries")
    return Normalised({}, _entries(charts if isinstance(charts, dict) else {}, context.url))


def _entries(charts: Mapping[Any, Any], base: str) -> Iterator[Entry]:
    seen, size = set[str](), 0
    for name, listed in charts.items():
        for each in listed if isinstance(listed, list) else ():
            try:
                entry = _entry(name, each, base)
            except Invalid:
                continue
            size += len(entry.fragments[ENTRY])
            if size > LARGEST:
                raise Invalid(f"the entries of the index have more than {LARGEST} bytes")
            if entry.files[0].path not in seen:  # helm takes the first of two
                seen.add(entry.files[0].path)
                yield entry


def _entry(name: Any, value: Any, base: str) -> Entry:
    """The entry of one version. :raises Invalid: helm cannot use it, or it is not at an HTTP server"""
    fields = fields_of(value)
    version, urls, said = fields["version"], value.get("urls"), _SHA256.fullmatch(str(value.get("digest")))
    url = absolute_url(base, urls[0] if isinstance(urls, list) and urls else None)
    created_ms, path = time_ms(value.get("created")), chart_path(name, version)
    digests = {} if said is None else {"sha256": said[1].lower()}
    body = render_entry(fields, path, digests.get("sha256", ""), created_ms)
    if fields["name"] != name or len(body) > LARGEST_ENTRY:
        raise Invalid("it is another chart, or too long")
    archive = FileSource(path, url, None, digests, ARCHIVE_TYPE, {})
    provenance = FileSource(path + PROVENANCE, url + PROVENANCE, None, {}, PROVENANCE_TYPE, {})
    place = section_of(name) + sort_key(version)
    return Entry(place, version, version, created_ms, False, {ENTRY: body}, [archive, provenance])
