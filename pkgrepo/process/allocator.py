"""How the C library keeps memory that was freed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

KEPT = 8 * 1024 * 1024  # bytes at the end of the heap; a big upload has 2 MiB under way, several have more
MAPPED = 1024 * 1024  # bytes from which an allocation is given back at once

# malloc.h of glibc
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def keep_freed_buffers() -> bool:
    """
    Let buffers of transfers be made of memory that is there; False where the C library is another than glibc.

    Left alone, glibc returns what is free at the end of its heap from 128 KiB on, and gets it anew for the next read:
    a page fault and a cleared page for every 4 KiB received, which is a sixth of the processor time of a big upload.
    """
    mallopt: Callable[[int, int], int] | None = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_TRIM_THRESHOLD, KEPT)) and bool(mallopt(_M_MMAP_THRESHOLD, MAPPED))
