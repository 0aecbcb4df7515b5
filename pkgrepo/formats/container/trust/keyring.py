"""The trusted keys of each repository: the keys in its configuration, else the keys of the server."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.container.configuration import trust_policy
from pkgrepo.formats.container.public_keys import KeyInvalid, PublicKey, parse_key
from pkgrepo.model import Repository
from pkgrepo.storage.catalog.images.trust import Keys

SETTING = "container.trusted_keys"
NO_KEY = (
    f"require_content_trust is on and no key is trusted: list public keys in trust.keys of the repository or in "
    f"{SETTING} of the server; until then every image waits, and readers see none"
)


@frozen
class KeySet:
    """Trusted keys with their ids, and the id of the whole set."""

    keys: tuple[PublicKey, ...]
    ids: tuple[str, ...]
    id: str


class Keyring:
    """Finds the trusted keys of a repository. ``server`` are public keys in PEM, for repositories without own keys."""

    def __init__(self, server: tuple[str, ...] = ()) -> None:
        self._server = server

    def check(self) -> None:
        """
        Check the keys of the server.

        :raises Invalid: a key is malformed or not supported
        """
        for number, text in enumerate(self._server, 1):
            try:
                parse_key(text)
            except KeyInvalid as error:
                raise Invalid(f"{SETTING}, key {number}: {error}") from None

    def keys(self, repository: Repository) -> KeySet | None:
        """The trusted keys of a repository; None if it requires no signatures."""
        policy = trust_policy(repository)
        return None if policy is None else _parse(tuple(policy.keys) or self._server)

    def ids(self, repository: Repository) -> Keys:
        """The ids of the trusted keys of a repository; None if it requires no signatures."""
        trusted = self.keys(repository)
        return None if trusted is None else trusted.ids

    def warnings(self, repository: Repository) -> list[str]:
        """Warnings about the keys of a repository, for its administrator."""
        return [NO_KEY] if self.ids(repository) == () else []


@lru_cache(maxsize=1024)
def _parse(texts: tuple[str, ...]) -> KeySet:
    keys = tuple({key.id: key for key in map(parse_key, texts)}.values())
    ids = tuple(key.id for key in keys)
    return KeySet(keys, ids, hashlib.sha256("".join(sorted(ids)).encode("ascii")).hexdigest())
