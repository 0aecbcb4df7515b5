"""The clock of a server, which is put forward and back while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

LIBRARIES: Final = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
WHY_NONE: Final = "" if LIBRARIES else "a clock that is put forward or back needs libfaketime"


def environment(file: Path) -> Mapping[str, str]:
    """Variables of a server whose clock is as :func:`put` says; monotonic clocks are those of the machine."""
    return {
        "LD_PRELOAD": str(LIBRARIES[0]),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_CACHE_DURATION": "1",  # seconds for which a process does not look into the file
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def put(file: Path, seconds: float) -> None:
    """Put the clock forward by this much, compared with that of the machine, or back."""
    new = file.with_suffix(".new")
    new.write_text(f"{seconds:+.3f}s")
    new.replace(file)
