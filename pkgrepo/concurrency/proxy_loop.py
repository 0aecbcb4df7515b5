"""
The proxy repositories that a request has passed, so that a loop of proxies that lead to each other ends at once.

Requests to upstreams have the names of those repositories in the field ``Pkgrepo-Via``, like ``Via`` (RFC 9110 section
7.6.3), for which some servers send documents uncompressed. A name says nothing. It is the same in all processes of a
server, after L{use_key}, and another one in each copy of the server.

The names that a request has are in a context variable, so that all work which is begun to answer it knows them. Work
that was begun for another request, and that this one only waits for, has the names of that one: of two proxies that
are asked for the same by different clients at the same time, the loop ends by a timeout.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from contextvars import ContextVar
from typing import Final

FIELD: Final = b"Pkgrepo-Via"
MOST: Final = 20  # proxies on the way from a client to an upstream; a longer way is taken for a loop

_NAME: Final = re.compile(r"[0-9a-f]{16}")
_key = secrets.token_bytes(16)
_passed: ContextVar[tuple[str, ...]] = ContextVar("passed", default=())


def use_key(text: str) -> None:
    """Name repositories as all processes with the same text do."""
    global _key  # noqa: PLW0603 - one server in a process is the rule; of two the second has both named its way
    _key = hashlib.blake2b(text.encode(), digest_size=16).digest()


def receive(value: bytes) -> None:
    """Note the names in the field of a request, for all work that is begun from now on in this context."""
    names = (each.strip() for each in value[: 20 * (MOST + 1)].decode("latin-1").split(","))
    _passed.set(tuple(each for each in names if _NAME.fullmatch(each)))


def is_proxy_loop(repository_id: int) -> bool:
    """Whether the present request has passed this repository before, or too many."""
    passed = _passed.get()
    return bool(passed) and (len(passed) >= MOST or _name(repository_id) in passed)


def names_with(repository_id: int) -> str:
    """The field's value for a request of this repository to an upstream."""
    return ", ".join((*_passed.get(), _name(repository_id)))


def _name(repository_id: int) -> str:
    return hashlib.blake2b(b"%d" % repository_id, key=_key, digest_size=8).hexdigest()
