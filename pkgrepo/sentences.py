"""Sentences that rooms without a common ancestor say; no library is imported, so that errors need none."""

from __future__ import annotations

import os

TOO_MANY_OPEN_FILES = "the server has too many files open; try again in a moment"


def sentence_of(error: OSError) -> str:
    """The message of an OSError with the file name, without the errno."""
    if error.filename is None:
        return str(error.strerror or error)
    return f"{os.fsdecode(error.filename)} cannot be used: {error.strerror}"
