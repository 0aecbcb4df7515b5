"""
The quarantine of images that wait for a signature, and its end.

Each tag and manifest in quarantine has an expiry time in the catalog (``expires_at``). A periodic task removes what
expired unsigned, so every process may run it, and a crash only delays it. Where the repository no longer requires
signatures, the task accepts what is still in quarantine.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.errors import PkgrepoError, StorageFull
from pkgrepo.interfaces import ICatalog, Transaction
from pkgrepo.model import SYSTEM, Repository
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.images.manifests import release_tag
from pkgrepo.repositories.publish.content import ContentWriter
from pkgrepo.repositories.publish.package_changes import append_package_event
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.images import trust
from pkgrepo.storage.catalog.images.trust import Keys
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.catalog.server.trash import FOR_GOOD

from .manifests import delete_manifest

log = Logger()

EVERY_S = 60.0
WINDOW_S = 3600  # seconds in quarantine, unless the repository sets it
BATCH = 100  # tags or manifests of one command, which then takes the writer some milliseconds


def remove_expired(tx: Transaction, repository: Repository, now_ms: int) -> int:
    """
    Remove up to ``BATCH`` tags and as many manifests whose quarantine has expired; how many, 0 if none is left.

    A tag points to the manifest that readers get by it again. Indexes are removed first, and the manifests to which
    they refer by later calls.
    """
    gone = 0
    for each in trust.expired_tags(tx, repository.id, now_ms, BATCH):
        gone += 1
        release_tag(tx, repository, each.package_key, each.name, SYSTEM, now_ms)
    for each in trust.expired_manifests(tx, repository.id, now_ms, BATCH):
        gone += 1
        delete_manifest(tx, repository, each.package_key, each.name, SYSTEM, now_ms, disposal=FOR_GOOD)
    if gone:
        repositories.bump_serial(tx, repository.id)
    return gone


def end_quarantine(tx: Transaction, repository: Repository, now_ms: int) -> None:
    """End the quarantine of everything in a repository that no longer requires signatures."""
    for key in trust.images_in_quarantine(tx, repository.id):
        package = packages.find_package(tx, repository.id, key)
        if package is not None:
            append_package_event(tx, package, "accepted", {}, SYSTEM, now_ms)
    trust.accept_all(tx, repository.id)
    repositories.bump_serial(tx, repository.id)


def extend_quarantine(tx: Transaction, repository: Repository, now_ms: int) -> None:
    """Begin the quarantine of everything in a repository again: without trusted keys nothing can be signed."""
    trust.set_quarantine_expiry(tx, repository.id, now_ms + window_ms(repository))


def window_ms(repository: Repository) -> int:
    """How long an image of a repository stays in quarantine, in milliseconds."""
    return 1000 * int((repository.settings.get("trust") or {}).get("window_s", WINDOW_S))


class QuarantineExpiry(PeriodicTask):
    """
    Ends expired quarantines every minute.

    ``verify`` verifies the stored signatures of an image with the keys that are trusted now, which may have been listed
    after the signatures came; it returns False if that fails. ``keys_of`` returns the ids of these keys, or None where
    no signature is required.
    """

    def __init__(
        self,
        *,
        catalog: ICatalog,
        registry: Registry,
        content: ContentWriter,
        verify: Callable[[Repository, str], Awaitable[bool]],
        keys_of: Callable[[Repository], Keys],
        clock: Clock,
        reactor: IReactorTime,
    ) -> None:
        super().__init__(self.run_once, reactor, every_s=EVERY_S, what="looking through what waits for signatures")
        self._verify = verify
        self._keys_of = keys_of
        self._catalog = catalog
        self._registry = registry
        self._content = content
        self._clock = clock

    async def run_once(self) -> None:
        """Look at each repository that has something in quarantine. It may be cancelled at any await."""
        for repository_id in await self._catalog.scan(trust.repositories_in_quarantine):
            await self._registry.refresh()
            repository = self._registry.find_id(repository_id)
            if repository is None:  # its rows are removed with it
                continue
            try:
                await self._expire(repository)
            except StorageFull:
                raise  # it would fail for the next repository as well
            except PkgrepoError:
                log.failure("what waits for signatures in {repository} is left as it is", repository=repository.path)

    async def _expire(self, repository: Repository) -> None:
        keys = self._keys_of(repository)
        if keys is None:
            await self._content.change(end_quarantine, repository)
            return
        if not keys:
            await self._content.change(extend_quarantine, repository)
            return
        for image in await self._catalog.scan(trust.images_in_quarantine, repository.id, self._clock.now_ms()):
            if not await self._verify(repository, image):
                return  # a signed image must not be removed because its signatures cannot be read
        dropped = 0
        while count := await self._content.change(remove_expired, repository):
            dropped += count
        if dropped:
            log.info(
                "dropped {count} tags and manifests of {repository} that no trusted key has signed in time",
                count=dropped,
                repository=repository.path,
            )
