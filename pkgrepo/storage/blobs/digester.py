"""Digests of bytes as they pass."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Protocol

from pkgrepo.errors import DigestMismatch

# The Python index names blake2b with 32 bytes; hashlib's own ``blake2b`` has 64.
BLAKE2B_256 = "blake2b_256"


class Hash(Protocol):
    """What is used of ``hashlib``'s objects, whose classes have no common name."""

    @property
    def digest_size(self) -> int:
        """Bytes; 0 when the caller is to choose."""

    def update(self, data: bytes, /) -> None:
        """Take the next bytes."""

    def hexdigest(self) -> str:
        """Lower-case hex of the bytes so far."""


def new_hash(algorithm: str) -> Hash:
    """
    A fresh hash object for a ``hashlib`` name or ``blake2b_256``.

    :raises ValueError: nobody knows the name, or its digest has no fixed length
    """
    if algorithm == BLAKE2B_256:
        return hashlib.blake2b(digest_size=32, usedforsecurity=False)
    made: Hash = hashlib.new(algorithm, usedforsecurity=False)
    if not made.digest_size:
        raise ValueError(f"{algorithm} has no digest of fixed length")
    return made


class Digester:
    """
    sha256 and whatever else was asked for, over everything given to ``update``.

    ``position`` is how many bytes that was.
    """

    def __init__(self, algorithms: Iterable[str]) -> None:
        self._hashes = {name: new_hash(name) for name in dict.fromkeys(("sha256", *algorithms))}
        self.position = 0

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Every name, sha256 first."""
        return tuple(self._hashes)

    def update(self, data: bytes) -> None:
        """Take the next bytes. Above 2 KiB hashlib works without the interpreter lock."""
        for each in self._hashes.values():
            each.update(data)
        self.position += len(data)

    def digests(self) -> dict[str, str]:
        """Lower-case hex by algorithm, of the bytes so far; more may follow."""
        return {name: each.hexdigest() for name, each in self._hashes.items()}


def check_digests(actual: Mapping[str, str], expected: Mapping[str, str]) -> None:
    """
    Nothing, when every expected digest is the actual one.

    :raises DigestMismatch: the first that differs
    """
    for algorithm, digest in expected.items():
        if actual[algorithm] != digest:
            raise DigestMismatch(algorithm, digest, actual[algorithm])
