"""How pages name the kinds of background jobs."""

from __future__ import annotations

from typing import Final

KINDS: Final = {
    "gc": "garbage collection",
    "rebuild": "rebuild of metadata",
    "cache_purge": "purge of a cache",
    "verify": "verification",
}
