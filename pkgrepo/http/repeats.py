"""
Responses to requests that have the same bytes as an earlier one.

Clients of one kind send the same header fields with each request, and many of them ask for the same paths. A request
whose request line and header fields are, byte for byte, those of one that was answered from memory gets the same
answer without being parsed: what was checked strictly once would be found right again. So there is no second parser
here that could read a request differently.

Code that answers from memory says for how long a response may be repeated (L{Repeatable}). No response is repeated
when the ``generation`` has changed, or when their owner has called ``clear``.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from typing import Final

from attrs import frozen

LONGEST_S: Final = 5.0  # seconds for which a response is repeated before it is looked for again
MOST_KINDS: Final = 1000  # combinations of header fields
MOST_BYTES: Final = 32 * 1024 * 1024  # of responses; most of them are also in the cache that they came from
ENTRY_BYTES: Final = 1024  # of a response beside its bytes, roughly

LogRepeat = Callable[[str, bytes, float], None]  # gets the client's address, the request's id, and the seconds it took


@frozen
class RenderedResponse:
    """The bytes of a response: ``head`` is without the fields that every response has, ``body`` is what is sent."""

    status: int
    head: bytes
    body: bytes


@frozen
class Repeatable:
    """
    For how many seconds from now a response may be repeated.

    All of ``counts`` are called each time that it is, with the address of the client.
    """

    seconds: float = LONGEST_S
    counts: tuple[Callable[[str], object], ...] = ()


@frozen
class Repeat:
    """
    A kept answer: of which generation, until when by the reactor's clock, and what is called when it was sent.

    ``counts`` are called with the address of the client.
    """

    reply: RenderedResponse
    generation: int | None
    until: float
    counts: tuple[Callable[[str], object], ...]
    log: LogRepeat | None


class ClientKind:
    """
    The kept responses for one combination of header fields, by request line; None for a line that was seen once.

    ``client_address`` is the client's where a trusted proxy names it; it is empty where it is the peer's.
    """

    __slots__ = ("client_address", "repeats")

    def __init__(self) -> None:
        self.client_address = ""
        self.repeats: dict[bytes, Repeat | None] = {}


class Repeats:
    """
    The kept responses of a server.

    ``size`` is at most ``limit`` bytes; ``full`` of them are of use. Without a ``generation``, a function that returns
    a number, nothing is kept. ``trusts`` says whether the peer with an address may name the client: answers to such a
    peer depend on its address.
    """

    def __init__(
        self, trusts: Callable[[str], bool], *, most_bytes: int = MOST_BYTES, most_kinds: int = MOST_KINDS
    ) -> None:
        self.limit = self.full = most_bytes
        self._most_kinds = most_kinds
        self.generation: Callable[[], int] | None = None
        self.trusts = trusts
        self.hits = 0
        self.misses = 0
        self.size = 0  # bytes
        self.seen: int | None = None  # the generation, as of the last L{find}
        self._kinds: dict[tuple[bytes, str], ClientKind] = {}
        self._filled: list[ClientKind] = []
        self._key = secrets.token_bytes(32)  # the header fields may hold secrets, so only their digest is kept

    def __len__(self) -> int:
        return sum(len(kind.repeats) for kind in self._filled)

    def kind(self, raw_fields: bytes, peer: str) -> ClientKind:
        """The kind of clients that send these header fields."""
        digest = hashlib.blake2b(raw_fields, key=self._key, digest_size=16).digest()
        key = digest, (peer or "unix") if self.trusts(peer) else ""
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= self._most_kinds:
                self._kinds.clear()  # connections may still use some of them, and fill them
            kind = self._kinds[key] = ClientKind()
        return kind

    def find(self, kind: ClientKind, line: bytes, now: float) -> Repeat | None:
        """
        The response to a request line of a client of this kind, if one is kept and may be repeated.

        The generation is read first.
        """
        if self.generation is None:
            return None
        try:
            generation = self.generation()
        except Exception:  # noqa: BLE001 - it will be met again where the request is answered in the usual way
            return None
        self.seen = generation
        found = kind.repeats.get(line)
        if found is None or found.generation != generation or now >= found.until:
            self.misses += 1
            return None
        self.hits += 1
        return found

    def admit(self, kind: ClientKind, line: bytes) -> bool:
        """Whether to keep the response to a request line: not at its first sight, since most are asked for once."""
        if line in kind.repeats:
            return True
        if self.generation is not None:
            self._put(kind, line, None)
        return False

    def keep(self, kind: ClientKind, line: bytes, repeat: Repeat) -> None:
        """Keep the response to a request line, which was looked for after the last L{find}, and so is not older."""
        self._put(kind, line, repeat)

    def clear(self) -> None:
        """Forget all responses."""
        for kind in self._filled:
            kind.repeats.clear()
        self._filled.clear()
        self.size = 0

    def _put(self, kind: ClientKind, line: bytes, repeat: Repeat | None) -> None:
        size = _size(line, repeat)
        if self.size + size > self.limit:
            self.clear()
        if not kind.repeats:
            self._filled.append(kind)
        elif line in kind.repeats:
            self.size -= _size(line, kind.repeats[line])
        kind.repeats[line] = repeat
        self.size += size


def _size(line: bytes, repeat: Repeat | None) -> int:
    size = len(line) + ENTRY_BYTES
    return size if repeat is None else size + len(repeat.reply.head) + len(repeat.reply.body)
