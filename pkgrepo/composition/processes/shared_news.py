"""
What the workers of a server tell each other about what only the memory of a process holds.

===============  ===============================================================================================
topic            content
===============  ===============================================================================================
login.failed     the keys of a failed login, which all processes count
login.done       account and address of a login, which all processes trust from now on
audit            a question: rows of the audit log that wait in memory are written before it is answered
proxy.settle     a question: what proxies have served and not stored yet is stored before it is answered
proxy.files      the id of a proxy repository, of whose files nothing that is only in memory counts any more
proxy.documents  the same, and the keys of documents that were removed
proxy.transfer   a notice about a file that is fetched, see L{pkgrepo.proxy.transfers.notices}; what is only for
                 workers of the same master goes through that
proxy.waiting    the name of a lease: a document is to be stored at once
proxy.absent     the id of a repository, and the row that says that no upstream has something
proxy.mistrust   the id of a proxy, and the path or identity of a file of which a wrong one was sent
proxy.chosen     the id of a proxy, a package, a version, and the route that has it; an empty route: that is open again
proxy.undecided  a question for such a route: the id of a proxy, a package, and a version
proxy.deciding   the same, in answer: the process that decides about the version has no route yet
===============  ===============================================================================================
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from pkgrepo.auth.login.throttle import Key, NewUnlocks, Throttle
from pkgrepo.concurrency.services import spawn
from pkgrepo.interfaces import ICatalog
from pkgrepo.process.workers.peers import Peers, Topic
from pkgrepo.proxy.addressed.chosen_routes import ChosenRoutes, Decisions
from pkgrepo.proxy.caching.kept import KeptResponses
from pkgrepo.proxy.caching.states import NegativeCache
from pkgrepo.proxy.leases import Turns
from pkgrepo.proxy.remote_files import MistrustedFiles
from pkgrepo.proxy.resolving.package_files import PackageFiles
from pkgrepo.proxy.transfers.sharing import Sharing
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument

AUDIT, SETTLE = "audit", "proxy.settle"
FAILED: Final = Topic("login.failed", list[Key])
DONE: Final = Topic("login.done", tuple[str, str])
FILES: Final = Topic("proxy.files", int)
DOCUMENTS: Final = Topic("proxy.documents", tuple[int, list[str]])
CHOSEN: Final = Topic("proxy.chosen", tuple[int, str, str, str])
UNDECIDED: Final = Topic("proxy.undecided", tuple[int, str, str])
DECIDING: Final = Topic("proxy.deciding", tuple[int, str, str])
TRANSFER: Final = Topic("proxy.transfer", bytes)
WAITING: Final = Topic("proxy.waiting", str)
ABSENT: Final = Topic("proxy.absent", tuple[int, UpstreamDocument])
MISTRUST: Final = Topic("proxy.mistrust", tuple[int, str])


def answer_after(peers: Peers, question: str, work: Callable[[], Awaitable[object]]) -> None:
    """Answer a question of other processes when this process has done what they want."""

    async def answer() -> bytes:
        await work()
        return b""

    peers.answer(question, answer)


def make_throttle(peers: Peers, *, limit: int, unlocks: NewUnlocks | None = None) -> Throttle:
    """Return the throttle of logins, which counts those of all processes."""
    throttle = Throttle(
        limit=limit,
        unlocks=unlocks,
        on_failure=lambda keys: FAILED.publish(peers, list(keys)),
        on_login=lambda *login: DONE.publish(peers, login),
    )

    def hear_failure(keys: list[Key]) -> None:
        spawn(throttle.hear_failure(keys), "the unlocks of logins could not be read")

    FAILED.subscribe(peers, hear_failure)
    DONE.subscribe(peers, lambda login: throttle.add_login(*login))
    return throttle


def make_mistrusted(peers: Peers) -> MistrustedFiles:
    """Return the files of which wrong bytes were sent in any process."""
    files = MistrustedFiles(lambda *place: MISTRUST.publish(peers, place))
    MISTRUST.subscribe(peers, lambda place: files.add(*place))
    return files


def make_chosen_routes(peers: Peers, catalog: ICatalog, decisions: Decisions | None = None) -> ChosenRoutes:
    """Return the routes that have versions, which all processes tell each other."""
    chosen_routes = ChosenRoutes(catalog, DecisionNews(peers).chosen_route, decisions)
    CHOSEN.subscribe(peers, lambda found: chosen_routes.add(*found))
    UNDECIDED.subscribe(peers, lambda version: chosen_routes.answer(*version))
    DECIDING.subscribe(peers, lambda version: chosen_routes.hear(*version))
    return chosen_routes


class DecisionNews:
    """What processes tell each other about a version that is being decided."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    def chosen_route(self, repository_id: int, package_key: str, version_key: str, route: str) -> None:
        """Tell the others which route has served a version."""
        CHOSEN.publish(self._peers, (repository_id, package_key, version_key, route))

    def undecided(self, repository_id: int, package_key: str, version_key: str) -> None:
        """Ask them which route has a version."""
        UNDECIDED.publish(self._peers, (repository_id, package_key, version_key))

    def deciding(self, repository_id: int, package_key: str, version_key: str) -> None:
        """Tell those that wait for the route of a version that this process decides about it."""
        DECIDING.publish(self._peers, (repository_id, package_key, version_key))


class TransferNotices:
    """
    Notices about transfers; see L{pkgrepo.proxy.transfers.notices.Notices}.

    ``peers`` are all other processes; ``workers`` are those of the same master, if there are any: they share its disk.
    """

    def __init__(self, peers: Peers, workers: Peers | None) -> None:
        self._peers = peers
        self._workers = workers
        self.has_near = workers is not None

    def send(self, data: bytes) -> None:
        """Send a notice to all others."""
        TRANSFER.publish(self._peers, data)

    def send_near(self, data: bytes) -> None:
        """Send a notice to the workers of the same master."""
        if self._workers is not None:
            TRANSFER.publish(self._workers, data)

    def subscribe(self, sharing: Sharing) -> None:
        """Pass on the notices of others."""
        TRANSFER.subscribe(self._peers, sharing.receive)
        if self._workers is not None and self._workers is not self._peers:
            TRANSFER.subscribe(self._workers, sharing.receive)


def receive_waiting(peers: Peers, turns: Turns) -> None:
    """Store documents at once for which other processes wait."""
    WAITING.subscribe(peers, turns.hurry)


def make_negative_cache(peers: Peers, clock: Clock) -> NegativeCache:
    """Return the memory of what upstreams do not have, of which all processes tell each other."""
    absences = NegativeCache(clock, lambda *absent: ABSENT.publish(peers, absent))
    ABSENT.subscribe(peers, lambda absent: absences.add(*absent))
    return absences


def receive_purges(peers: Peers, registry: Registry, kept: KeptResponses, files: PackageFiles) -> None:
    """Forget what other processes have purged."""

    def forget_files(repository_id: int) -> None:
        repository = registry.find_id(repository_id)
        if repository is not None:
            files.forget_here(repository)

    FILES.subscribe(peers, forget_files)
    DOCUMENTS.subscribe(peers, lambda purged: kept.forget_here(*purged))
