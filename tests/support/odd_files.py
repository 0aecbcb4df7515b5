"""Small files that are what their names say, as far as proxies look at them."""

from __future__ import annotations

import bz2
import gzip

EMPTY_ZIP = b"PK\x05\x06" + bytes(18)
ARMOUR = b"-----BEGIN PGP SIGNATURE-----\n"


def zip_of(note: bytes) -> bytes:
    """A zip archive without entries that begins with some bytes."""
    return note + EMPTY_ZIP


def archive(ending: str) -> bytes:
    """A file for a name that ends so: ``.zip``, ``.tar.bz2`` or ``.tgz``."""
    if ending == ".zip":
        return EMPTY_ZIP
    return bz2.compress(b"x") if ending == ".tar.bz2" else gzip.compress(b"x", mtime=0)
