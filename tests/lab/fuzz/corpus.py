"""
The stored inputs of targets, as files of ``tests/data/fuzz``: valid ones, from which mutations begin, and failed ones.

A new target needs a valid input, written by hand or taken from a real program.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from .target import Finding

FOLDER = Path(__file__).parents[2] / "data" / "fuzz"
FAILED = "failed-"  # the names of inputs that broke a promise begin so
VALID = "valid-"  # and those of inputs that are accepted


def inputs(target: str, folder: Path = FOLDER) -> Iterator[tuple[str, bytes]]:
    """The names and the bytes of the stored inputs of a target, in order."""
    for path in sorted((folder / target).glob("*")):
        yield path.name, path.read_bytes()


def keep(finding: Finding, folder: Path = FOLDER) -> Path:
    """Write an input that failed, by its digest."""
    path = folder / finding.target / f"{FAILED}{hashlib.sha256(finding.data).hexdigest()[:12]}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(finding.data)
    return path
