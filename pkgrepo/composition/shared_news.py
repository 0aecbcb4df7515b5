"""
What the workers of a server tell each other about what only the memory of a process holds.

===============  ===============================================================================================
topic            content
===============  ===============================================================================================
login.failed     the keys of a failed login, which all processes count
login.done       account and address of a login, which all processes trust from now on
audit            a question: rows of the audit log that wait in memory are written before it is answered
proxy.files      the id of a proxy repository, of whose files nothing that is only in memory counts any more
proxy.documents  the same, and the keys of documents that were removed
proxy.winner     the id of a proxy, a package, a version, and the route that has it; an empty route: that is open again
===============  ===============================================================================================
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from pkgrepo.auth.login.throttle import Key, Throttle
from pkgrepo.management.api.audit_log import AuditLog
from pkgrepo.model import Repository
from pkgrepo.process.workers.peers import Peers
from pkgrepo.proxy.addressed.winners import Winners
from pkgrepo.proxy.documents.kept_answers import KeptAnswers
from pkgrepo.proxy.resolving.package_files import PackageFiles
from pkgrepo.repositories.registry import Registry

FAILED, DONE, AUDIT = "login.failed", "login.done", "audit"
FILES, DOCUMENTS, WINNER = "proxy.files", "proxy.documents", "proxy.winner"

_encode = msgspec.msgpack.encode
_keys = msgspec.msgpack.Decoder(list[tuple[str, str]])
_login = msgspec.msgpack.Decoder(tuple[str, str])
_id = msgspec.msgpack.Decoder(int)
_winner = msgspec.msgpack.Decoder(tuple[int, str, str, str])
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
    peers.subscribe(FAILED, lambda data: throttle.add_failure(_keys.decode(data)))
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

    def winner(self, repository_id: int, package_key: str, version_key: str, route: str) -> None:
        """Tell them which route has served a version."""
        self._peers.publish(WINNER, _encode((repository_id, package_key, version_key, route)))


def receive_winners(peers: Peers, winners: Winners) -> None:
    """Remember which routes have served versions in other processes."""
    peers.subscribe(WINNER, lambda data: winners.add(*_winner.decode(data)))


def receive_purges(peers: Peers, registry: Registry, kept: KeptAnswers, files: PackageFiles) -> None:
    """Forget what other processes have purged."""

    def forget_files(data: bytes) -> None:
        repository = registry.find_id(_id.decode(data))
        if repository is not None:
            kept.forget_absences(repository)
            files.forget_here(repository)

    def forget_documents(data: bytes) -> None:
        kept.forget_here(*_documents.decode(data))

    peers.subscribe(FILES, forget_files)
    peers.subscribe(DOCUMENTS, forget_documents)
