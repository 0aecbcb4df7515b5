"""Computes several digests over a stream of bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final, Protocol

from pkgrepo.errors import DigestMismatch

# The Python index names blake2b with 32 bytes; hashlib's own ``blake2b`` has 64.
BLAKE2B_256 = "blake2b_256"
# Bytes in one call for which hashlib keeps the GIL. With more it gives the GIL up, and waits for it afterwards while
# other threads have it: among publishes of 9 KB, beside other work, a call took 70 us, most of it that wait.
HOLDING: Final = 2047
FEW: Final = 32 * 1024  # bytes that are hashed in such parts; 0.1 ms


class Hash(Protocol):
    """The methods of ``hashlib``'s objects that are used; their classes have no common base."""

    @property
    def digest_size(self) -> int:
        """In bytes; 0 for algorithms with a digest of any length."""

    def copy(self) -> Hash:
        """A new object that has seen the same bytes."""

    def update(self, data: bytes | memoryview, /) -> None:
        """Add the next bytes."""

    def hexdigest(self) -> str:
        """Lower-case hex of the bytes so far."""


def new_hash(algorithm: str) -> Hash:
    """
    Return a new hash object for a ``hashlib`` name or ``blake2b_256``.

    :raises ValueError: the name is unknown, or its digest has no fixed length
    """
    return _prototype(algorithm).copy()


@cache
def _prototype(algorithm: str) -> Hash:
    """One that has seen no bytes, to be copied: OpenSSL searches its providers for each that is made by name."""
    if algorithm == BLAKE2B_256:
        return hashlib.blake2b(digest_size=32, usedforsecurity=False)
    made: Hash = hashlib.new(algorithm, usedforsecurity=False)
    if not made.digest_size:
        raise ValueError(f"{algorithm} has no digest of fixed length")
    return made


class Digester:
    """
    Computes sha256 and the given algorithms over all bytes given to ``update``.

    ``position`` is the number of these bytes.
    """

    def __init__(self, algorithms: Iterable[str]) -> None:
        self._hashes = {name: new_hash(name) for name in dict.fromkeys(("sha256", *algorithms))}
        self.position = 0

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The names of all algorithms, sha256 first."""
        return tuple(self._hashes)

    def update(self, data: bytes) -> None:
        """Add the next bytes."""
        if HOLDING < len(data) <= FEW:
            view = memoryview(data)
            for start in range(0, len(data), HOLDING):
                part = view[start : start + HOLDING]
                for each in self._hashes.values():
                    each.update(part)
        else:
            for each in self._hashes.values():
                each.update(data)
        self.position += len(data)

    def digests(self) -> dict[str, str]:
        """Return the digests of the bytes so far in lower-case hex, by algorithm; more bytes may follow."""
        return {name: each.hexdigest() for name, each in self._hashes.items()}


def check_digests(actual: Mapping[str, str], expected: Mapping[str, str]) -> None:
    """
    Compare the expected digests with the actual ones.

    :raises DigestMismatch: one differs
    """
    for algorithm, digest in expected.items():
        if actual[algorithm] != digest:
            raise DigestMismatch(algorithm, digest, actual[algorithm])
