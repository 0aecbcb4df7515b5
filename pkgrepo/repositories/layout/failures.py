"""The errors that keep something out of the readable layout, and how they are worded."""

from __future__ import annotations

from pkgrepo.errors import PkgrepoError

FAILURES = (OSError, PkgrepoError)  # of the disk; of blobs that are missing and storages that cannot be opened


def reason_of(error: BaseException) -> str:
    """Return why something failed, without a path."""
    return error.strerror or "the disk failed" if isinstance(error, OSError) else str(error)
