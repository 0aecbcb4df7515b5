"""
The keys of objects below the prefix of a storage, and the locators of its copies.

==================================  ====================================================================
``format``                          version of this layout and the storage's id, one line each
``blobs/ab/<sha256>.<generation>``  a copy that was sent by one request, once its digest was known
``blobs/ab/<upload id>``            a copy that was sent in parts, while its bytes arrived
``uploads/<upload id>/<random>``    the last bytes of a suspended upload, too few for a part
==================================  ====================================================================

A locator is what follows ``blobs/``. Generations and upload ids are random, so no two commits share a locator.
"""

from __future__ import annotations

import re
import secrets

from pkgrepo.storage.blobs.paths import is_locator as is_digest_locator
from pkgrepo.storage.blobs.paths import is_upload_id

FORMAT = "format"
BLOBS = "blobs/"
UPLOADS = "uploads/"

_PARTS_LOCATOR = re.compile(r"([0-9a-f]{2})/\1[0-9a-f]{30}")


def parts_locator(upload_id: str) -> str:
    """Return the locator of the copy that an upload makes if it is sent in parts."""
    return f"{upload_id[:2]}/{upload_id}"


def is_locator(text: str) -> bool:
    """Whether the text is a well-formed locator."""
    return is_digest_locator(text) or _PARTS_LOCATOR.fullmatch(text) is not None


def new_rest_key(upload_id: str) -> str:
    """Return a new key for the last bytes of a suspended upload."""
    return f"{rest_prefix(upload_id)}{secrets.token_hex(8)}"


def rest_prefix(upload_id: str) -> str:
    """Return how all such keys of an upload begin."""
    return f"{UPLOADS}{upload_id}/"


def upload_of_rest(key: str) -> str | None:
    """Return the upload of such a key; None for other keys."""
    upload_id = key.removeprefix(UPLOADS).partition("/")[0]
    return upload_id if key.startswith(UPLOADS) and is_upload_id(upload_id) else None


def upload_of_parts(key: str) -> str | None:
    """Return the upload whose parts are sent to this key; None for keys that are not ours."""
    locator = key.removeprefix(BLOBS)
    return locator[3:] if key.startswith(BLOBS) and _PARTS_LOCATOR.fullmatch(locator) else None
