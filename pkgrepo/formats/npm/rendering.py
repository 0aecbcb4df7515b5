"""Parts that the documents and answers of several inner rooms render alike."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from pkgrepo.http.answers import Fields

NO_STORE: Final[Fields] = ((b"Cache-Control", b"no-store"),)


def format_time(time: datetime) -> str:
    """A time as JavaScript writes it: UTC, milliseconds, ``Z``."""
    utc = time.astimezone(UTC)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"
