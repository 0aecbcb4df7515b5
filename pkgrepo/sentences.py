"""Sentences that rooms without a common ancestor say; nothing is imported, so that errors need no library."""

from __future__ import annotations

TOO_MANY_OPEN_FILES = "the server has too many files open; try again in a moment"
