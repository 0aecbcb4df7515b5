"""
What versions of a package were trusted, over time: of a hosted one those that are stored, of a proxy all that the
document of the upstream lists, and those that are kept and that it does not list any more.

Rules hide nothing of it, so that no version can lower what others are compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from attrs import define, field

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.concurrency.single_flight import StampCache
from pkgrepo.errors import Invalid
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.caching.documents import Documents
from pkgrepo.proxy.caching.questions import DocumentRequest, Held
from pkgrepo.proxy.format import Proxied
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.parts.values import Entry
from pkgrepo.repositories.attestations import AttestedFile, Claim, Rank
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.policy.histories import released, stored_history, stored_releases
from pkgrepo.repositories.policy.judged import Declares
from pkgrepo.repositories.policy.trust import History, Released
from pkgrepo.sigstore.roots import TrustedRoot
from pkgrepo.storage.catalog.packages import packages

MOST_KEPT: Final = 256  # packages whose histories are kept in memory

Listed = tuple[DocumentRequest, Held]  # a document of an upstream


@define(eq=False, kw_only=True)
class Histories:
    """Makes them, once for a state; ``formats`` and ``proxied`` are by name. Attestations are verified by ``root``."""

    _catalog: ICatalog
    _documents: Documents
    _formats: Mapping[str, StoredFormat]
    _proxied: Mapping[str, Proxied]
    root: TrustedRoot
    _kept: StampCache[tuple[int, str], History] = field(factory=lambda: StampCache(MOST_KEPT))

    async def of(self, repository: Repository, package: str, listed: Listed | None = None) -> History:
        """
        The history of a package (a key), by the document of the upstream that is ``listed`` or that clients have got.

        :raises NotFound, UpstreamFailed: see L{Documents.read}
        """
        format_ = self._formats[repository.format]
        serial = await self._catalog.look(packages.package_serial, repository.id, package) or 0
        if repository.type is RepositoryType.PROXY and listed is None:
            request = self._proxied[repository.format].document_request(package)
            held = await self._documents.find_served(repository, request)
            listed = None if held is None else (request, held)
        stamp = serial, 0 if listed is None else listed[1].document.fetched_ms
        make = partial(self._make, repository, format_, package, listed)
        return await self._kept.get((repository.id, package), stamp, make)

    async def _make(
        self, repository: Repository, format_: StoredFormat, package: str, listed: Listed | None
    ) -> History:
        if listed is None:
            found: History = await self._catalog.scan(stored_history, format_, repository, package)
            return found
        request, held = listed
        stored = await self._catalog.scan(stored_releases, format_, repository, package)
        declares = self._proxied[repository.format].declares
        kinds = () if declares is None else declares.kinds

        def read(parts: PartsFile) -> History:
            entries = parts.entries(kinds, request.section)
            return listed_history(format_, declares, repository.id, package, entries, stored)

        return await self._documents.read(repository, request, held, read)


def listed_history(
    format_: StoredFormat,
    declares: Declares | None,
    repository_id: int,
    package: str,
    entries: Iterable[Entry],
    stored: Sequence[Released] = (),
) -> History:
    """
    The history by what a document of a package (a key) lists (``entries``), with what it claims of it, and by what is
    stored.

    Of what cannot be read nothing is known: it counts as the best.
    """
    attests, found, claims = format_.attests, [*stored], dict[str, Claim]()
    assert attests is not None, "rules ask for what there is"
    gil = GilReleaser()
    for entry in entries:
        if not entry.files:
            continue
        main, *_ = entry.files
        try:
            meta = {} if declares is None else declares.read(entry.fragments)
            claim = attests.claim_of_upstream(meta, [each.path for each in entry.files], entry.published_ms)
        except Invalid:
            claim = Claim(Rank.STAGED)
        else:
            if claim.rank:
                claims[main.path] = claim
        if entry.published_ms is not None:
            about = AttestedFile(package, entry.version, main.path, main.digests)
            found.append(released(format_, repository_id, about, entry.published_ms, claim))
        gil.release_if_due()
    return History(found, claims)
