"""What is made of a folder."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen


@frozen
class Packed:
    """
    A file that was made of a folder: ``what`` is the package in it, and ``h1`` the hash of a Go module, if it is one.

    ``notes`` are sentences for the user about what is not in it.
    """

    path: Path
    what: str
    h1: str = ""
    notes: tuple[str, ...] = ()
