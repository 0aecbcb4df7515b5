"""
Which documents a channel has, and how each is made of its packages.

=====================================  ==========================================================================
document                               content
=====================================  ==========================================================================
``<subdir>/repodata.json``             all records
``.../repodata_from_packages.json``    the same: no record is changed after its upload
``.../current_repodata.json``          those of the newest versions, and what these need
``.../run_exports.json``               the run exports of all files (CEP 12)
``.../repodata_shards.msgpack.zst``    the digests of shards, each with the records of one package (CEP 16)
``channeldata.json``                   a summary of each package (CEP 38)
=====================================  ==========================================================================

JSON documents are also there with the endings ``.zst`` and ``.bz2``. A form is the name of a document and a coding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

from attrs import evolve, frozen

from pkgrepo.repositories.publish.package_lists import PackageList
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.gil import GilReleaser

from . import packages as channel
from .current import current_text
from .packages import PackageRecords
from .shards import Shard, make_index
from .stored import CODINGS, PLAIN, StoredDocument, store
from .texts import channeldata_text, exports_text, repodata_text

REPODATA: Final = "repodata.json"
FROM_PACKAGES: Final = "repodata_from_packages.json"
CURRENT: Final = "current_repodata.json"
RUN_EXPORTS: Final = "run_exports.json"
SHARDS_INDEX: Final = "repodata_shards.msgpack.zst"
CHANNELDATA: Final = "channeldata.json"

_FOLDER_TEXTS: Final[dict[str, Callable[[PackageList[PackageRecords], str], list[bytes]]]] = {
    REPODATA: repodata_text,
    CURRENT: current_text,
    RUN_EXPORTS: exports_text,
}
FOLDER_DOCUMENTS: Final = frozenset(_FOLDER_TEXTS)

_EDITION: Final = b"1"  # changes with what documents of the same packages look like


@frozen
class Form:
    """A document of a folder, or with an empty ``subdir`` of the channel, in a coding."""

    subdir: str
    document: str
    coding: str = PLAIN

    @property
    def key(self) -> str:
        """The form as a text."""
        return f"{self.subdir}/{self.document}/{self.coding}"

    @classmethod
    def of(cls, key: str) -> Form:
        """The form with this key."""
        return cls(*key.split("/"))


class ChannelSource:
    """The source of the documents of hosted channels; see L{Source}."""

    serial = staticmethod(repositories.content_serial)
    read_all = staticmethod(channel.read_all)
    read_one = staticmethod(channel.read_one)

    def render(
        self, listed: PackageList[PackageRecords], serial: int, form: str, before: StoredDocument | None
    ) -> StoredDocument:
        """A document; one that shows what ``before`` did has its body. Blocks: 200 ms for 30,000 records."""
        made = Form.of(form)
        digest = _digest(listed, made)
        if before is not None and before.digest == digest:
            return evolve(before, serial=serial)
        if made.document == SHARDS_INDEX:
            return _shards_index(listed, serial, made.subdir, digest, before)
        texts = _texts(listed, made)
        size = sum(map(len, texts))
        return StoredDocument(serial, digest, store(CODINGS[made.coding](texts, size)))


def _digest(listed: PackageList[PackageRecords], form: Form) -> str:
    """The digest of what a document shows in each coding, from the digests of packages."""
    digest = hashlib.sha256(b"%b %b/%b" % (_EDITION, form.subdir.encode(), form.document.encode()))
    gil = GilReleaser()
    for package in listed.values():
        gil.release_if_due()
        if not form.subdir:
            digest.update(b"%b %b" % (hashlib.sha256(package.about).digest(), " ".join(package.folders).encode()))
        elif form.subdir in package.folders:
            digest.update(package.folders[form.subdir].digest)
    return digest.hexdigest()[:32]


def _texts(listed: PackageList[PackageRecords], form: Form) -> Sequence[bytes]:
    if form.document == CHANNELDATA:
        return channeldata_text(listed)
    return _FOLDER_TEXTS[form.document](listed, form.subdir)


def _shards_index(
    listed: PackageList[PackageRecords], serial: int, subdir: str, digest: str, before: StoredDocument | None
) -> StoredDocument:
    shards: dict[bytes, Shard] = {}
    digests: dict[str, bytes] = {}
    gil = GilReleaser()
    for package in listed.values():
        gil.release_if_due()
        if subdir in package.folders:
            shard = package.folders[subdir].shard
            shards[shard.digest] = shard
            digests[package.name] = shard.digest
    superseded = list[Shard]()
    if before is not None:
        superseded += before.superseded
        superseded += (before.shards[each] for each in before.shards.keys() - shards.keys())
    return StoredDocument(serial, digest, store([make_index(subdir, digests)]), shards, superseded)
