"""
Images that wait for a signature: given trust when it comes, and dropped when it does not come in time.

What has to go says so itself (``expires_at``), so every process may look, and a crash delays it at most. A repository
whose rule was taken back accepts what still waits in it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pkgrepo.concurrency.periodic import PeriodicTask
from pkgrepo.errors import PkgrepoError, StorageFull
from pkgrepo.interfaces import ICatalog, Transaction
from pkgrepo.model import SYSTEM, Repository
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.publish.events import append_package_event
from pkgrepo.repositories.publish.publisher import Publisher
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.images import trust
from pkgrepo.storage.catalog.images.trust import Keys
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.server import repositories

from . import commands as images

log = Logger()

EVERY_S = 60.0
WINDOW_S = 3600  # seconds, where the repository does not say
BATCH = 100  # tags or manifests a command; some milliseconds of the writer


def drop_expired(tx: Transaction, repository: Repository, now_ms: int) -> int:
    """
    Drop some of the tags and manifests of a repository that waited in vain; how many, so 0 ends the round.

    Tags go back to what readers get by them. Indexes go before what they name, which later calls find.
    """
    gone = 0
    for each in trust.expired_tags(tx, repository.id, now_ms, BATCH):
        gone += 1
        images.release_tag(tx, repository, each.package_key, each.name, SYSTEM, now_ms)
    for each in trust.expired_manifests(tx, repository.id, now_ms, BATCH):
        gone += 1
        images.delete_manifest(tx, repository, each.package_key, each.name, SYSTEM, now_ms)
    if gone:
        repositories.bump_serial(tx, repository.id)
    return gone


def accept_waiting(tx: Transaction, repository: Repository, now_ms: int) -> None:
    """Accept all that waits in a repository whose rule was taken back."""
    for key in trust.waiting_images(tx, repository.id):
        package = packages.find_package(tx, repository.id, key)
        if package is not None:
            append_package_event(tx, package, "accepted", {}, SYSTEM, now_ms)
    trust.stop_waiting(tx, repository.id)
    repositories.bump_serial(tx, repository.id)


def wait_longer(tx: Transaction, repository: Repository, now_ms: int) -> None:
    """Begin the wait of all that waits in a repository anew, since nobody could have signed it: no key is trusted."""
    trust.wait_until(tx, repository.id, now_ms + window_ms(repository))


def window_ms(repository: Repository) -> int:
    """How long an image of a repository waits for a signature."""
    return 1000 * int((repository.settings.get("trust") or {}).get("window_s", WINDOW_S))


class QuarantineWatch(PeriodicTask):
    """
    Looks every minute for what waited in vain.

    ``catch_up`` holds the signatures that an image has against the keys that are trusted now: one may be listed only
    since its signature came. It is False when that fails. ``keys_of`` names these keys, or is None where nothing has to
    be signed.
    """

    def __init__(
        self,
        *,
        catalog: ICatalog,
        registry: Registry,
        publisher: Publisher,
        catch_up: Callable[[Repository, str], Awaitable[bool]],
        keys_of: Callable[[Repository], Keys],
        clock: Clock,
        reactor: IReactorTime,
    ) -> None:
        super().__init__(self.run_once, reactor, every_s=EVERY_S, what="looking through what waits for signatures")
        self._catch_up = catch_up
        self._keys_of = keys_of
        self._catalog = catalog
        self._registry = registry
        self._publisher = publisher
        self._clock = clock

    async def run_once(self) -> None:
        """Do the work once; it may be cancelled at any await."""
        for repository_id in await self._catalog.scan(trust.waiting_repositories):
            repository = self._registry.find_id(repository_id)
            if repository is None:  # removed; its rows go with it
                continue
            try:
                await self._tidy(repository)
            except StorageFull:
                raise  # the next repository would fare no better
            except PkgrepoError:
                log.failure("what waits for signatures in {repository} is left as it is", repository=repository.path)

    async def _tidy(self, repository: Repository) -> None:
        keys = self._keys_of(repository)
        if keys is None:
            await self._publisher.change(accept_waiting, repository)
            return
        if not keys:
            await self._publisher.change(wait_longer, repository)
            return
        for image in await self._catalog.scan(trust.waiting_images, repository.id, self._clock.now_ms()):
            if not await self._catch_up(repository, image):
                return  # one that was signed must not be dropped because its storage fails
        dropped = 0
        while count := await self._publisher.change(drop_expired, repository):
            dropped += count
        if dropped:
            log.info(
                "dropped {count} tags and manifests of {repository} that no trusted key has signed in time",
                count=dropped,
                repository=repository.path,
            )
