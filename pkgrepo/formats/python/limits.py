"""How long the parts of a distribution may be that are read whole."""

from __future__ import annotations

from typing import Final

from pkgrepo.archives.limits import MOST_ENTRIES

METADATA_SIZE: Final = 8 * 1024 * 1024  # bytes of METADATA or PKG-INFO
RECORD_SIZE: Final = 32 * 1024 * 1024  # bytes of RECORD; some 300 for each of the most entries
RECORD_ROWS: Final = 4 * MOST_ENTRIES  # lines of it, and half its commas; an entry has one line and two commas
