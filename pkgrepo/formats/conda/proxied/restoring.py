"""
The documents of an upstream channel as far as its files are kept: with their records as the channel had them then.

``current_repodata.json`` has all of these records too, which are more than clients need. Every channel has the folder
``noarch``; others of which no file is kept are not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from pkgrepo.formats.conda.index.documents import CHANNELDATA, CURRENT, RUN_EXPORTS
from pkgrepo.formats.conda.index.packages import PackageRecords, read_all
from pkgrepo.formats.conda.index.texts import CHANNELDATA_HEAD, EXPORTS_TAIL, TAIL, channeldata_entry, folder_head
from pkgrepo.formats.conda.names import CONDA, NOARCH, TAR_BZ2
from pkgrepo.interfaces import Reader
from pkgrepo.model import Origin
from pkgrepo.proxy.documents.held import DocumentRequest
from pkgrepo.proxy.parts.values import Context, Normalised
from pkgrepo.storage.catalog.packages import files, packages, versions

from .normaliser import normalise_channeldata, normalise_exports, normalise_repodata
from .questions import channeldata_question, exports_question, repodata_question

_PAGE: Final = 200  # packages that are read at once


def restore_documents(reader: Reader, repository_id: int) -> Iterator[tuple[DocumentRequest, Origin, Normalised]]:
    """The documents of all folders and of the channel, with the origin of the file of each that was fetched last."""
    origins = _origins(reader, repository_id)
    if not origins:
        return
    newest = max(origins.values(), key=lambda each: each.fetched_ms)
    kept = [package for _, package in read_all(reader, repository_id)]
    for subdir, origin in ({NOARCH: newest} | origins).items():
        found = [package.folders[subdir] for package in kept if subdir in package.folders]
        records = _folder(subdir, [each.records for each in found], TAIL)
        exports = _folder(subdir, [each.exports for each in found], EXPORTS_TAIL)
        context = Context(subdir, origin.url)  # of a file; addresses of others are relative to its folder
        yield repodata_question(subdir), origin, normalise_repodata(records, context)
        yield repodata_question(subdir, CURRENT), origin, normalise_repodata(records, context)
        yield exports_question(subdir, RUN_EXPORTS), origin, normalise_exports(exports, context)
    about = _channeldata(kept)
    yield channeldata_question(CHANNELDATA), newest, normalise_channeldata(about, Context("", newest.url))


def _origins(reader: Reader, repository_id: int) -> dict[str, Origin]:
    """The origin of the file that was fetched last, by folder."""
    found: dict[str, Origin] = {}
    after = ""
    while page := packages.list_packages(reader, repository_id, after=after, limit=_PAGE):
        for package in page:
            for version in versions.list_versions(reader, package.id):
                for file in files.files_of_version(reader, version.id):
                    subdir, origin = file.path.partition("/")[0], file.origin
                    if origin is not None and (subdir not in found or found[subdir].fetched_ms < origin.fetched_ms):
                        found[subdir] = origin
        after = page[-1].key
    return found


def _folder(subdir: str, texts: Sequence[Mapping[str, bytes]], tail: bytes) -> bytes:
    old, new = (b"".join(each[ending] for each in texts)[1:] for ending in (TAR_BZ2, CONDA))
    return b"".join((folder_head(subdir), old, b'},"packages.conda":{', new, tail))


def _channeldata(kept: Sequence[PackageRecords]) -> bytes:
    entries = b"".join(map(channeldata_entry, kept))[1:]
    subdirs = msgspec.json.encode(sorted({subdir for each in kept for subdir in each.folders}))
    return b"".join((CHANNELDATA_HEAD, entries, b'},"subdirs":', subdirs, b"}"))
