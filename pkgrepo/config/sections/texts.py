"""Texts and numbers that several sections have in common."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pkgrepo.model.repositories import NAME

Name = Annotated[
    str,
    Meta(pattern=NAME, title="1 to 64 letters, digits, dots, dashes or underscores"),
]
User = Annotated[
    str,
    Meta(pattern=r"[A-Za-z0-9][A-Za-z0-9._-]{2,31}", title="3 to 32 letters, digits, dots, dashes or underscores"),
]
Address = Annotated[str, Meta(pattern=r"https?://[^\s]+", title="an address with https:// or http://")]
Sha256 = Annotated[str, Meta(pattern=r"[0-9a-f]{64}", title="64 lower-case hex digits")]

HOST_PATTERN = r"(?:\*\.)?[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*"
MOST_WORKERS = 256
KIB, MIB, GIB = 2**10, 2**20, 2**30

SQLITE = "sqlite:///"
POSTGRESQL = r"postgres(ql)?://(?![^@?]*:[^?]*@)(?!.*[?&](ssl)?password=).+"
