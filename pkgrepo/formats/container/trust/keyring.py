"""The public keys whose signatures count: a repository's own, else the server's."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.container.configuration import trust_policy
from pkgrepo.model import Repository
from pkgrepo.storage.catalog.images.trust import Keys

from .signatures import KeyInvalid, TrustedKey, parse_key

SETTING = "container.trusted_keys"
NO_KEY = (
    f"require_content_trust is on and no key is trusted: list public keys in trust.keys of the repository or in "
    f"{SETTING} of the server; until then every image waits, and readers see none"
)


@frozen
class Trusted:
    """Keys, what they are called in the catalog, and what all of them together are called there."""

    keys: tuple[TrustedKey, ...]
    ids: tuple[str, ...]
    key_set: str


class Keyring:
    """Knows which keys a repository trusts; ``server`` are public keys in PEM, for repositories without their own."""

    def __init__(self, server: tuple[str, ...] = ()) -> None:
        self._server = server

    def check(self) -> None:
        """
        Read the server's keys.

        :raises Invalid: one is no public key whose signatures can count
        """
        for number, text in enumerate(self._server, 1):
            try:
                parse_key(text)
            except KeyInvalid as error:
                raise Invalid(f"{SETTING}, key {number}: {error}") from None

    def trusted(self, repository: Repository) -> Trusted | None:
        """The keys by which readers see the content of a repository; None where it needs none."""
        policy = trust_policy(repository)
        return None if policy is None else _parse(tuple(policy.keys) or self._server)

    def ids(self, repository: Repository) -> Keys:
        """What these are called in the catalog."""
        trusted = self.trusted(repository)
        return None if trusted is None else trusted.ids

    def warnings(self, repository: Repository) -> list[str]:
        """What is to be said about the keys of a repository."""
        return [NO_KEY] if self.ids(repository) == () else []


@lru_cache(maxsize=1024)
def _parse(texts: tuple[str, ...]) -> Trusted:
    keys = tuple({key.id: key for key in map(parse_key, texts)}.values())
    ids = tuple(key.id for key in keys)
    return Trusted(keys, ids, hashlib.sha256("".join(sorted(ids)).encode("ascii")).hexdigest())
