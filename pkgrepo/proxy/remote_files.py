"""Files of upstreams: whether a kept file is the one that an upstream lists now, and how verified ones are kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from attrs import define, evolve, frozen

from pkgrepo.auth.permissions.admission import Road, admit_server
from pkgrepo.concurrency.lru import Lru
from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import FileExists, existing
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import BlobInfo, File, NewFile, Origin, Repository
from pkgrepo.proxy.configuration import is_from, proxy_config_of
from pkgrepo.proxy.parts.values import Entry, FileSource
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.publish.content import ContentWriter
from pkgrepo.repositories.publish.index import Indexer
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files

MOST_MISTRUSTED: Final = 1000
LISTED = "listed"  # the attribute of a kept file that has the digests of the distribution it was listed with


@frozen(eq=False)
class RemoteFile:
    """
    A file that an upstream has, in the proxy that serves it.

    ``checked_ms`` is when the upstream last confirmed the document that lists it; 0 for a file that no document lists.
    """

    repository: Repository
    key: str
    route: str
    source: FileSource
    entry: Entry
    checked_ms: int = 0

    @property
    def url(self) -> str:
        """Its URL without query, which may hold a signature: that is as good as a password for a while."""
        return _plain_url(self.source)

    @property
    def identity(self) -> str:
        """A text that differs from that of another file which is listed at the same path later, or by another route."""
        return identity_of(self.route, self.source, self.entry)

    @property
    def listed_digests(self) -> Mapping[str, str]:
        """For a file without digests, those of the distribution that it was listed with; empty if there are none."""
        return _listed_digests(self.source, self.entry)

    def is_kept_as(self, file: File) -> bool:
        """
        Whether a kept file is this one, and its bytes are there.

        It is this one if it has the digests that the upstream announces. A file without any must have come from the
        same route and URL, and a companion have been listed with the same distribution.
        """
        announced = self.source.digests
        if not file.locator:
            return False
        if announced:
            known = {**file.digests, "sha256": file.sha256}
            common = announced.keys() & known.keys()
            return bool(common) and all(announced[each] == known[each] for each in common)
        origin = file.origin
        if origin is not None and (origin.route, origin.url) != (self.route, self.url):
            return False
        if self.source.size is not None and self.source.size != file.size:
            return False
        return dict(file.attrs.get(LISTED, self.listed_digests)) == self.listed_digests


def _plain_url(source: FileSource) -> str:
    return source.url.partition("#")[0].partition("?")[0]


def _listed_digests(source: FileSource, entry: Entry) -> Mapping[str, str]:
    if source.digests:
        return {}
    return next((dict(each.digests) for each in entry.files if each.digests), {})


def identity_of(route: str, source: FileSource, entry: Entry) -> str:
    """The L{RemoteFile.identity} of a file that an entry of a route's document lists."""
    if source.digests:
        return " ".join(f"{algorithm}={digest}" for algorithm, digest in sorted(source.digests.items()))
    listed = " ".join(f"{each}={digest}" for each, digest in sorted(_listed_digests(source, entry).items()))
    return f"{route} {_plain_url(source)} {listed}"


def is_former(proxy: Repository, file: File) -> bool:
    """Whether a kept file came from an upstream that the proxy does not have any more."""
    origin = file.origin
    return origin is not None and not is_from(proxy, origin.route, origin.address)


MakeRelease = Callable[[RemoteFile, Staged, BlobInfo, Pools], Awaitable[Release]]


@define(eq=False, kw_only=True)
class Keeper:
    """Publishes files of upstreams; ``makers`` of releases and ``indexers`` of packages are by format."""

    _catalog: ICatalog
    _content: ContentWriter
    _pools: Pools
    _clock: Clock
    _makers: Mapping[str, MakeRelease]
    _indexers: Mapping[str, Indexer]

    async def keep(self, remote: RemoteFile, staged: Staged, blob: BlobInfo) -> File:
        """
        Publish a file whose bytes are ``blob``, which has the digests that the upstream announced. Returns its row.

        It takes the place of another file that was listed at its path before, or that came from another upstream.
        Clients have the bytes already. Nothing else is done with them for a while, as long as no caller hurries.

        :raises Invalid: it is no file of this package
        """
        await self._content.wait_for_batch(remote.repository, blob.size)
        format_name = remote.repository.format
        release = await self._makers[format_name](remote, staged, blob, self._pools)
        kept = tuple(self._with_origin(remote, each) for each in release.files)
        release = evolve(release, kind="cached", files=kept, published_ms=self._published_ms(remote))
        path = remote.source.path
        before = await self._find(remote)
        former = before is not None and is_former(remote.repository, before)
        if remote.checked_ms or former:
            renews = former or (before is not None and not remote.is_kept_as(before))
            describes = release.overwrite or (renews and bool(release.meta))
            release = evolve(release, overwrite=True, renews=renews, describes=describes)
        with suppress(FileExists):  # another process was faster: what was kept first stays
            published = await self._content.keep(
                remote.repository,
                release,
                staged,
                admit_server(Road.PROXY, remote.repository),
                self._indexers[format_name],
            )
            found = next((each for each in published.files if each.path == path), None)
            if found is not None:
                return found
        return existing(await self._find(remote), "file", path)

    async def _find(self, remote: RemoteFile) -> File | None:
        found: File | None = await self._catalog.look(files.find_file, remote.repository.id, remote.source.path)
        return found

    def _published_ms(self, remote: RemoteFile) -> int | None:
        """When the upstream published the release; None if it does not say so, or names a time that cannot be."""
        said_ms = remote.entry.published_ms
        return said_ms if said_ms is not None and 0 < said_ms <= self._clock.now_ms() else None

    def _with_origin(self, remote: RemoteFile, file: NewFile) -> NewFile:
        if file.path != remote.source.path:  # it was found in the other one
            return evolve(file, attrs={**file.attrs, LISTED: dict(remote.source.digests)})
        origin = Origin(
            route=remote.route,
            url=remote.url,
            fetched_ms=self._clock.now_ms(),
            published_ms=remote.entry.published_ms,
            first_seen=remote.entry.first_seen,
            address=next(
                (each.url for each in proxy_config_of(remote.repository).routes if each.name == remote.route), ""
            ),
        )
        attrs: dict[str, Any] = {**file.attrs, **origin.attrs}
        if not remote.source.digests:
            attrs["unverified"] = True  # the upstream announced no digest
            attrs[LISTED] = dict(remote.listed_digests)
        return evolve(file, attrs=attrs)


Place = tuple[int, str]  # id of a repository, and the path of a file in it, or its identity


class MistrustedFiles:
    """
    Remembers places of files of which a wrong one was sent.

    ``on_note`` is told each, for other processes; ``add`` is for what they tell.
    """

    def __init__(self, on_note: Callable[[int, str], None] = lambda *_: None) -> None:
        self._on_note = on_note
        self._places: Lru[Place, bool] = Lru(MOST_MISTRUSTED)

    def __contains__(self, place: Place) -> bool:
        return place in self._places

    def note(self, place: Place) -> None:
        """Remember a place in all processes."""
        self.add(*place)
        self._on_note(*place)

    def add(self, repository_id: int, path: str) -> None:
        """Remember a place in this process."""
        self._places.put((repository_id, path), True)

    def discard(self, place: Place) -> None:
        """Forget a place: its file is kept."""
        self._places.pop(place)
