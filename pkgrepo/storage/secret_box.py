"""
Secrets that the server must be able to read again, such as passwords for upstreams, encrypted for the catalog.

The key is in a file of the data folder and never in the catalog: neither a copy of the database nor the readable layout
tells a secret.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import secrets
from pathlib import Path
from typing import Final, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pkgrepo.errors import Conflict, SecretUnreadable
from pkgrepo.small_files import fsync_path, private_opener, tighten

KEY_BYTES: Final = 32  # AES-256
NONCE_BYTES: Final = 12  # NIST SP 800-38D 8.2.2: random ones suffice for 2**32 secrets of one key
VERSION: Final = "v1."


class SecretBox:
    """Seals and opens secrets with one key (AES-256-GCM, NIST SP 800-38D)."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)
        self.fingerprint = hashlib.sha256(b"pkgrepo credentials key " + key).hexdigest()[:32]  # does not reveal the key

    @classmethod
    def load(cls, path: Path) -> Self:
        """
        The box whose key is in the file ``path``, which is created with mode 0600 if it is missing. Blocks.

        Several processes may do so at the same time; all get the same key.

        :raises Conflict: the file holds no key; :raises OSError: it cannot be read or created
        """
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            _create(path)
            text = path.read_bytes()
        tighten(path)
        try:
            key = base64.b64decode(text.strip(), altchars=b"-_", validate=True)
        except binascii.Error:
            key = b""
        if len(key) != KEY_BYTES:
            raise Conflict(
                f"{path} holds no key: restore it from a backup, or move it away and set all credentials again"
            )
        return cls(key)

    def seal(self, secret: str, context: str) -> str:
        """Encrypt a secret; only the same ``context`` opens it, which names what the secret is for."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(nonce, secret.encode(), context.encode())
        return VERSION + base64.urlsafe_b64encode(sealed).decode("ascii")

    def open(self, sealed: str, context: str) -> str:
        """:raises SecretUnreadable: it was sealed with another key or context, or is damaged"""
        try:
            data = base64.b64decode(sealed.removeprefix(VERSION), altchars=b"-_", validate=True)
            return self._cipher.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], context.encode()).decode()
        except (InvalidTag, ValueError):
            raise SecretUnreadable from None


def _create(path: Path) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(draft, "xb", opener=private_opener) as file:
            file.write(base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # unlike a rename, it replaces no key that another process made meanwhile
        except FileExistsError:
            return
        fsync_path(path.parent)
    finally:
        draft.unlink(missing_ok=True)
