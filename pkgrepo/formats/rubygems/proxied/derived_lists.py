"""
Lists that follow from the list ``/versions`` of a repository: ``/names``, and those of the legacy index.

They are written from its file, in a thread. Memory is needed for the names, or the names and versions, of all gems.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.formats.rubygems.index.info import info_md5
from pkgrepo.formats.rubygems.index.list_files import ListFile, ListWriter
from pkgrepo.formats.rubygems.legacy import LATEST, PRERELEASES, first_row, list_head, list_row
from pkgrepo.formats.rubygems.names import RUBY, is_full_version, is_name, is_prerelease, order_key

READ: Final = 1024 * 1024  # bytes of a list read at a time
COMPRESSED: Final = 256 * 1024  # bytes of rows compressed at a time

_EMPTY_MD5: Final = info_md5([]).encode("ascii")  # in the last line of a gem without versions
_GZIP: Final = zlib.MAX_WBITS | 16


def write_names(listed: ListFile) -> ListFile:
    """``/names``: the gems with live versions. Blocks."""
    live: dict[bytes, bool] = {}
    gil = GilReleaser()
    for line in _lines(listed):
        live[line.partition(b" ")[0]] = line.rpartition(b" ")[2] != _EMPTY_MD5
        gil.release_if_due()
    writer = ListWriter.new()
    names = sorted(name for name, is_live in live.items() if is_live)
    writer.add(b"---\n" + b"\n".join(names) + b"\n")
    return writer.end()


def write_specs(listed: ListFile, file: str) -> ListFile:
    """
    The list of the legacy index with this file name, as a gzip file. Blocks.

    What no client could install is left out.
    """
    chosen = _choose(listed, file.removesuffix(".gz"))
    writer, packer = ListWriter.new(), zlib.compressobj(wbits=_GZIP)
    rows = bytearray(list_head(sum(text.count(",") + 1 for text in chosen.values())))
    for number, row in enumerate(_rows(chosen)):
        rows += row if number else first_row(row)
        if len(rows) >= COMPRESSED:
            writer.add(packer.compress(rows))
            rows.clear()
    writer.add(packer.compress(rows) + packer.flush())
    return writer.end()


def _choose(listed: ListFile, form: str) -> Mapping[str, str]:
    """The versions in a list of the legacy index by gem, joined by commas."""
    events: dict[bytes, bytes] = {}
    gil = GilReleaser()
    for line in _lines(listed):
        raw, _, rest = line.partition(b" ")
        versions = rest.partition(b" ")[0]
        before = events.get(raw)
        events[raw] = versions if before is None else before + b"," + versions
        gil.release_if_due()
    chosen: dict[str, str] = {}
    for raw in sorted(events):
        name = raw.decode("ascii", "replace")
        versions_now = _select(_live(events.pop(raw).decode("ascii", "replace")), form) if is_name(name) else ()
        if versions_now:
            chosen[name] = ",".join(versions_now)
        gil.release_if_due()
    return chosen


def _live(events: str) -> Iterable[str]:
    """The versions that were added and not yanked since."""
    live: dict[str, None] = {}
    for each in events.split(","):
        if each.startswith("-"):
            live.pop(each[1:], None)
        else:
            live[each] = None
    return live


def _select(versions: Iterable[str], form: str) -> Iterable[str]:
    split = [(text, *text.partition("-")[::2]) for text in versions if is_full_version(text)]
    if form != LATEST:
        return [text for text, number, _ in split if is_prerelease(number) == (form == PRERELEASES)]
    by_platform: dict[str, list[str]] = {}
    for text, number, platform in split:
        if not is_prerelease(number):
            by_platform.setdefault(platform, []).append(text)
    return [max(texts, key=_order) if len(texts) > 1 else texts[0] for texts in by_platform.values()]


def _order(text: str) -> bytes:
    return order_key(text.partition("-")[0])


def _rows(chosen: Mapping[str, str]) -> Iterator[bytes]:
    gil = GilReleaser()
    for name, versions in chosen.items():
        for text in versions.split(","):
            number, _, platform = text.partition("-")
            yield list_row(name, number, platform or RUBY)
        gil.release_if_due()


def _lines(listed: ListFile) -> Iterator[bytes]:
    """The lines behind the header."""
    start, rest, head = 0, b"", True
    while start < listed.size:
        data = listed.read(start, READ)
        start += len(data)
        *lines, rest = (rest + data).split(b"\n")
        if head:  # it is short
            lines, head = lines[lines.index(b"---") + 1 :], False
        yield from lines
