"""
A backend of the library ``keyring``, which pip, uv and twine ask for passwords.

It is found by the entry point ``keyring.backends`` where pkgrepo and keyring are installed together. It answers for
addresses of servers that have a profile, and leaves all others to the other backends. It stores nothing.
"""

from __future__ import annotations

import os
from typing import Any

from keyring.backend import KeyringBackend
from keyring.credentials import SimpleCredential

from pkgrepo.client.credentials.lending import Lent, lend
from pkgrepo.errors import PkgrepoError

USER = "__token__"


class PkgrepoKeyring(KeyringBackend):
    """Short-lived tokens of the profiles of ``pkgrepo login``."""

    priority = 9  # before the keyring of the desktop, which knows these addresses only by an older login

    def get_password(self, service: str, username: str) -> str | None:
        """A token for the address of a server; None for others, and for names of users that are not the profile's."""
        lent = _lent(service)
        return lent.token if lent is not None and username in (USER, "token", "", lent.username) else None

    def get_credential(self, service: str, username: str | None) -> Any:
        """A name and a token for the address of a server."""
        lent = _lent(service)
        if lent is None or username not in (None, "", USER, "token", lent.username):
            return None
        return SimpleCredential(username or USER, lent.token)

    def set_password(self, service: str, username: str, password: str) -> None:
        """Leave it to the other backends."""
        raise NotImplementedError

    def delete_password(self, service: str, username: str) -> None:
        """Leave it to the other backends."""
        raise NotImplementedError


def _lent(service: str) -> Lent | None:
    """A token; a name that is no address of a server is not one of ours."""
    if "://" not in service and ":" not in service and "." not in service:
        return None
    try:
        return lend(service, os.environ)
    except (PkgrepoError, OSError) as error:
        # the other backends know nothing of this server: what is wrong must be seen
        raise RuntimeError(f"pkgrepo: {error}") from error
