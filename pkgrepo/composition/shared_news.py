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
proxy.absent     the id of a repository, and the answer that no upstream has a document
proxy.no_file    the id of a repository, and the key of a file, or of what belongs to an image, that no upstream has;
                 until when that counts
proxy.mistrust   the id of a proxy, and the path or identity of a file of which a wrong one was sent
proxy.winner     the id of a proxy, a package, a version, and the route that has it; an empty route: that is open again
proxy.undecided  a question for such a route: the id of a proxy, a package, and a version
proxy.deciding   the same, in answer: the process that decides about the version has no route yet
===============  ===============================================================================================
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from pkgrepo.auth.login.throttle import Key, Throttle
from pkgrepo.management.api.audit_log import AuditLog
from pkgrepo.model import Repository
from pkgrepo.process.workers.peers import Peers
from pkgrepo.proxy.addressed.chosen_routes import ChosenRoutes
from pkgrepo.proxy.documents.kept_answers import KeptAnswers
from pkgrepo.proxy.leases import Turns
from pkgrepo.proxy.remembered import MistrustedFiles, NegativeCache
from pkgrepo.proxy.resolving.package_files import PackageFiles
from pkgrepo.proxy.transfers.sharing import Sharing
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument

FAILED, DONE, AUDIT = "login.failed", "login.done", "audit"
FILES, DOCUMENTS, SETTLE = "proxy.files", "proxy.documents", "proxy.settle"
CHOSEN, UNDECIDED, DECIDING = "proxy.winner", "proxy.undecided", "proxy.deciding"
TRANSFER, WAITING = "proxy.transfer", "proxy.waiting"
ABSENT, NO_FILE, MISTRUST = "proxy.absent", "proxy.no_file", "proxy.mistrust"

log = Logger()

_encode = msgspec.msgpack.encode
_keys = msgspec.msgpack.Decoder(list[tuple[str, str]])
_login = msgspec.msgpack.Decoder(tuple[str, str])
_id = msgspec.msgpack.Decoder(int)
_chosen_route = msgspec.msgpack.Decoder(tuple[int, str, str, str])
_version = msgspec.msgpack.Decoder(tuple[int, str, str])
_absent = msgspec.msgpack.Decoder(tuple[int, UpstreamDocument])
_mistrusted = msgspec.msgpack.Decoder(tuple[int, str])
_no_file = msgspec.msgpack.Decoder(tuple[int, str, int])
_documents = msgspec.msgpack.Decoder(tuple[int, list[str]])


class LoginNews:
    """Tells the other processes about logins; see L{pkgrepo.auth.login.throttle.News}."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    def failed(self, keys: Sequence[Key]) -> None:
        """Tell them about a failed one."""
        self._peers.publish(FAILED, _encode(keys))

    def logged_in(self, account: str, address: str) -> None:
        """Tell them about a successful one."""
        self._peers.publish(DONE, _encode((account, address)))


def receive_news(peers: Peers, throttle: Throttle) -> None:
    """Have the logins at other processes counted."""

    def hear_failure(data: bytes) -> None:
        hearing = Deferred.fromCoroutine(throttle.hear_failure(_keys.decode(data)))
        hearing.addErrback(lambda failure: log.failure("the unlocks of logins could not be read", failure))

    peers.subscribe(FAILED, hear_failure)
    peers.subscribe(DONE, lambda data: throttle.add_login(*_login.decode(data)))


def flush_others(peers: Peers) -> Callable[[], Awaitable[object]]:
    """A function that has the other processes write what waits for the audit log."""
    return lambda: peers.gather(AUDIT)


def answer_flushes(peers: Peers, audit_log: AuditLog) -> None:
    """Write what waits for the audit log when another process asks."""

    async def flush() -> bytes:
        await audit_log.flush_own()
        return b""

    peers.answer(AUDIT, flush)


def answer_settling(peers: Peers, settle: Callable[[], Awaitable[None]]) -> None:
    """Store what proxies have served when another process asks."""

    async def answer() -> bytes:
        await settle()
        return b""

    peers.answer(SETTLE, answer)


class ProxyNews:
    """Tells the other processes what was purged, and which routes have versions."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    def files(self, repository: Repository) -> None:
        """Tell them that nothing that is only in memory counts any more."""
        self._peers.publish(FILES, _encode(repository.id))

    def documents(self, repository: Repository, keys: Sequence[str]) -> None:
        """Tell them which documents were removed."""
        self._peers.publish(DOCUMENTS, _encode((repository.id, keys)))

    def chosen_route(self, repository_id: int, package_key: str, version_key: str, route: str) -> None:
        """Tell them which route has served a version."""
        self._peers.publish(CHOSEN, _encode((repository_id, package_key, version_key, route)))

    def undecided(self, repository_id: int, package_key: str, version_key: str) -> None:
        """Ask them which route has a version."""
        self._peers.publish(UNDECIDED, _encode((repository_id, package_key, version_key)))

    def deciding(self, repository_id: int, package_key: str, version_key: str) -> None:
        """Tell those who wait for the route of a version that this process decides about it."""
        self._peers.publish(DECIDING, _encode((repository_id, package_key, version_key)))

    def mistrusted(self, repository_id: int, path: str) -> None:
        """Tell them that a wrong file was sent."""
        self._peers.publish(MISTRUST, _encode((repository_id, path)))


def receive_mistrust(peers: Peers, files: MistrustedFiles) -> None:
    """Remember the files of which other processes have sent wrong bytes."""
    peers.subscribe(MISTRUST, lambda data: files.add(*_mistrusted.decode(data)))


def receive_chosen_routes(peers: Peers, chosen_routes: ChosenRoutes) -> None:
    """Remember which routes have served versions in other processes, and tell them those of this one."""
    peers.subscribe(CHOSEN, lambda data: chosen_routes.add(*_chosen_route.decode(data)))
    peers.subscribe(UNDECIDED, lambda data: chosen_routes.answer(*_version.decode(data)))
    peers.subscribe(DECIDING, lambda data: chosen_routes.hear(*_version.decode(data)))


class FetchNews:
    """
    What processes tell each other about fetches; see L{pkgrepo.proxy.transfers.notices.Notices}.

    ``peers`` are all other processes; ``workers`` are those of the same master, if there are any: they share its disk.
    """

    def __init__(self, peers: Peers, workers: Peers | None) -> None:
        self._peers = peers
        self._workers = workers
        self.has_near = workers is not None

    def send(self, data: bytes) -> None:
        """Send all others a notice about a transfer."""
        self._peers.publish(TRANSFER, data)

    def send_near(self, data: bytes) -> None:
        """Send one to the workers of the same master."""
        if self._workers is not None:
            self._workers.publish(TRANSFER, data)

    def waiting(self, lease: str) -> None:
        """Tell them that this process waits for a document."""
        self._peers.publish(WAITING, lease.encode())

    def absent(self, repository: Repository, document: UpstreamDocument) -> None:
        """Tell them that no upstream has a document."""
        self._peers.publish(ABSENT, _encode((repository.id, document)))

    def no_file(self, repository_id: int, key: str, until_ms: int) -> None:
        """Tell them that no upstream has a file."""
        self._peers.publish(NO_FILE, _encode((repository_id, key, until_ms)))

    def receive(self, sharing: Sharing, turns: Turns) -> None:
        """Handle what the others tell."""
        self._peers.subscribe(TRANSFER, sharing.receive)
        if self._workers is not None and self._workers is not self._peers:
            self._workers.subscribe(TRANSFER, sharing.receive)
        self._peers.subscribe(WAITING, lambda data: turns.hurry(data.decode()))

    def receive_absent(self, kept: KeptAnswers, files: NegativeCache) -> None:
        """Remember what upstreams do not have."""
        self._peers.subscribe(ABSENT, lambda data: kept.add_absent(*_absent.decode(data)))
        self._peers.subscribe(NO_FILE, lambda data: files.add(*_no_file.decode(data)))


def receive_purges(peers: Peers, registry: Registry, kept: KeptAnswers, files: PackageFiles) -> None:
    """Forget what other processes have purged."""

    def forget_files(data: bytes) -> None:
        repository = registry.find_id(_id.decode(data))
        if repository is not None:
            kept.forget_absent(repository)
            files.forget_here(repository)

    def forget_documents(data: bytes) -> None:
        kept.forget_here(*_documents.decode(data))

    peers.subscribe(FILES, forget_files)
    peers.subscribe(DOCUMENTS, forget_documents)
