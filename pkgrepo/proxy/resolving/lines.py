"""
The versions of a package in a proxy, as rules need them that compare a version with one before it.

They are those that the document of the upstream lists, and those that are kept and that it does not list any more, so
that removing old versions upstream does not make a new one the first.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from attrs import define, evolve, field

from pkgrepo.concurrency.single_flight import StampCache
from pkgrepo.errors import BlobMissing
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import File, RepositoryType
from pkgrepo.proxy.caching.documents import Documents
from pkgrepo.proxy.caching.questions import DocumentRequest, Held
from pkgrepo.proxy.format import Proxied
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.parts.layout import PartsDamaged
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.policy.judge import Judge, with_listed
from pkgrepo.repositories.policy.line import Line, Peer
from pkgrepo.storage.catalog.packages import files, packages

MOST_KEPT: Final = 64  # packages, of a megabyte each if they have 1,000 files


@define(eq=False, kw_only=True)
class Lines:
    """Reads them out of documents; ``formats`` are by name."""

    _catalog: ICatalog
    _documents: Documents
    _formats: Mapping[str, Proxied]
    _kept: StampCache[tuple[int, str, bytes], Line | None] = field(factory=lambda: StampCache(MOST_KEPT))

    async def of_document(self, judge: Judge, request: DocumentRequest, held: Held) -> Judge:
        """The judge of a proxy, with the versions in a document if its rules compare them."""
        if not judge.compares:
            return judge
        place = (judge.member.id, request.key, request.section)
        serial = await self._catalog.look(packages.package_serial, judge.member.id, judge.rules.package)
        stamp: Hashable = (
            held.document.fetched_ms,
            held.document.sha256,
            held.document.route,
            judge.rules.stamp,
            serial,
        )
        line = await self._kept.get(place, stamp, partial(self._read, judge, request, held))
        return evolve(judge, line=line)

    async def of_file(self, judge: Judge, path: str = "") -> Judge:
        """
        The judge, with the versions in the kept document that lists the file at a path; no upstream is asked.

        Without a path it is the only document of the package, if the format has one for each.
        """
        if not judge.compares or judge.line is not None or judge.member.type is not RepositoryType.PROXY:
            return judge
        format_ = self._formats[judge.member.format]
        document = format_.document_of(judge.rules.package, path)
        if not path and document != judge.rules.package:
            return judge
        request = format_.document_request(document)
        held = await self._documents.find_served(judge.member, request)
        return judge if held is None else await self.of_document(judge, request, held)

    async def _read(self, judge: Judge, request: DocumentRequest, held: Held) -> Line | None:
        proxy, package, document, section = judge.member, judge.rules.package, held.document, request.section

        kept: Sequence[Peer] = await self._catalog.scan(lambda reader: list(judge.stored_peers(reader)))

        async def find(path: str) -> RemoteFile | File | None:
            found = await self._documents.read(proxy, request, held, lambda parts: parts.find_path(path, section))
            if found is None:
                file: File | None = await self._catalog.look(files.find_file, proxy.id, path)
                return file
            entry, source = found
            return RemoteFile(proxy, package, document.route, source, entry, document.checked_ms)

        def line_in(parts: PartsFile) -> Line | None:
            return with_listed(judge, parts.entries(judge.kinds, section), document.route, find, kept).line

        with suppress(BlobMissing, PartsDamaged):
            return await self._documents.kept.read(proxy, held, line_in)
        return None
